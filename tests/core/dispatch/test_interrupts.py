"""What cuts a batch, at every point a call can stand: one true result per call, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from midturn_core.call_runner import PendingCall
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.events import BatchFinished, CallPhase
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, ToolUseResult
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import (
    DEADLINE,
    QUICK,
    Bench,
    Body,
    Latch,
    ProbeTool,
    contents,
    ids,
    outcomes,
    reader,
    result_ids,
    safe,
    shell,
    writer,
)

NOW = CancelReason.USER_MESSAGE
INTERRUPT = CancelReason.INTERRUPT
BOTH_MODES = pytest.mark.parametrize(
    "config", [ToolConcurrencyConfig.on(2), ToolConcurrencyConfig.off()], ids=["on", "off"]
)


class Steered:
    """A body that ends when the test says so or, when it cooperates, when its signal trips."""

    def __init__(self, cooperates: bool) -> None:
        self.cooperates = cooperates
        self.entered: list[str] = []
        self.gates = {use: asyncio.Event() for use in ids(4)}
        self.entry = asyncio.Event()

    async def __call__(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        use = context.tool_use_id
        self.entered.append(use)
        self.entry.set()
        waits: list[asyncio.Task[object]] = [asyncio.create_task(self.gates[use].wait())]
        if self.cooperates:
            waits.append(asyncio.create_task(context.signal.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.gates[use].is_set():
            return ToolResult(f"whole {use}")
        return ToolResult(f"part of {use}", stopped=True)

    async def until_entered(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while len(self.entered) < count:
                self.entry.clear()
                await self.entry.wait()


def expected(done: int, running: int, stop: str) -> list[str]:
    return ["succeeded"] * done + [stop] * running + ["skipped"] * (4 - done - running)


@BOTH_MODES
@pytest.mark.parametrize("done", range(5))
@pytest.mark.parametrize("reason", [NOW, INTERRUPT])
async def test_a_cut_after_any_number_of_calls_tells_what_became_of_each(
    config: ToolConcurrencyConfig, done: int, reason: CancelReason
) -> None:
    body = Steered(cooperates=True)
    bench = Bench(safe("Grep", body), config=config)
    width = 2 if config.enabled else 1
    batch = bench.start(*["Grep"] * 4)
    for index in range(done):
        await body.until_entered(index + 1)
        body.gates[f"call-{index}"].set()
        await bench.until(lambda: len(bench.ready()) > index)  # noqa: B023 - awaited at once
    running = min(width, 4 - done)
    await body.until_entered(done + running)
    (bench.signals.batch if reason is NOW else bench.turn).trip(reason)
    outcome = await batch
    assert result_ids(outcome) == ids(4)
    assert outcomes(outcome) == expected(done, running, "stopped")
    for result in outcome.results[:done]:
        assert result.content == f"whole {result.tool_use_id}"
    for result in outcome.results[done : done + running]:
        assert result.content.startswith("stopped after ")
        assert f" s: {reason.value}; the result may be incomplete" in result.content
        assert result.content.endswith(f"part of {result.tool_use_id}")
    for result in outcome.results[done + running :]:
        assert result.content == f"skipped: {reason.value}"
    assert sorted(bench.ready()) == ids(4)


@BOTH_MODES
@pytest.mark.parametrize("reason", [NOW, INTERRUPT])
async def test_a_batch_cut_before_it_begins_runs_nothing(
    config: ToolConcurrencyConfig, reason: CancelReason
) -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=config)
    bench.turn.trip(reason)
    outcome = await bench.run(*["Grep"] * 4)
    assert outcomes(outcome) == ["skipped"] * 4
    assert latch.entered == []
    assert outcome.report.cancelled_by is reason


@BOTH_MODES
@pytest.mark.parametrize("reason", [NOW, INTERRUPT])
async def test_a_waiting_question_is_withdrawn_and_its_call_skipped(
    config: ToolConcurrencyConfig, reason: CancelReason
) -> None:
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def ask(pending: PendingCall) -> ToolUseResult | None:
        pending.call.announce(CallPhase.ASKING)
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        return None

    bench = Bench(safe("Grep"), config=config, authorize=ask)
    batch = bench.start(*["Grep"] * 4)
    await asked.wait()
    bench.signals.batch.trip(reason)
    outcome = await batch
    assert contents(outcome) == [f"skipped: {reason.value}"] * 4
    assert withdrawn.is_set()


@pytest.mark.parametrize("tool", [writer, shell])
async def test_a_message_never_cuts_a_running_sequential_tool(
    tool: Callable[[str, Body], ProbeTool],
) -> None:
    body = Steered(cooperates=True)
    bench = Bench(tool("Change", body))
    batch = bench.start("Change", "Change")
    await body.until_entered(1)
    bench.signals.batch.trip(NOW)
    await bench.until(lambda: bench.ready() == ["call-1"])
    body.gates["call-0"].set()
    assert contents(await batch) == ["whole call-0", "skipped: the user sent a message"]


async def test_a_message_lets_a_running_read_finish() -> None:
    body = Steered(cooperates=False)
    bench = Bench(reader("Read", body), config=ToolConcurrencyConfig.on(2))
    batch = bench.start("Read", "Read", "Read")
    await body.until_entered(2)
    bench.signals.batch.trip(NOW)
    await bench.until(lambda: bench.ready() == ["call-2"])
    body.gates["call-0"].set()
    body.gates["call-1"].set()
    assert outcomes(await batch) == ["succeeded", "succeeded", "skipped"]


async def test_escape_cancels_the_call_that_a_message_waits_for() -> None:
    body = Steered(cooperates=True)
    bench = Bench(shell("Bash", body))
    batch = bench.start("Bash", "Bash")
    await body.until_entered(1)
    bench.signals.batch.trip(NOW)
    await bench.until(lambda: bench.ready() == ["call-1"])
    assert bench.dispatcher.cancel_call("call-0")
    assert not bench.dispatcher.cancel_call("call-1")
    outcome = await batch
    assert "the user cancelled this call" in contents(outcome)[0]
    assert contents(outcome)[0].endswith("part of call-0")
    assert outcomes(outcome) == ["stopped", "skipped"]
    assert not bench.dispatcher.cancel_call("call-0")


async def test_cancelling_one_call_leaves_the_others_alone() -> None:
    body = Steered(cooperates=True)
    bench = Bench(safe("Grep", body), config=ToolConcurrencyConfig.on(2))
    batch = bench.start("Grep", "Grep", "Grep")
    await body.until_entered(2)
    assert bench.dispatcher.cancel_call("call-2")
    assert bench.dispatcher.cancel_call("call-0")
    body.gates["call-1"].set()
    outcome = await batch
    assert outcomes(outcome) == ["stopped", "succeeded", "skipped"]
    assert contents(outcome)[2] == "skipped: the user cancelled this call"


async def test_an_interrupt_after_a_message_still_ends_the_running_call() -> None:
    body = Steered(cooperates=True)
    bench = Bench(shell("Bash", body))
    batch = bench.start("Bash", "Bash")
    await body.until_entered(1)
    bench.signals.batch.trip(NOW)
    await bench.until(lambda: bench.ready() == ["call-1"])
    bench.turn.trip(INTERRUPT)
    outcome = await batch
    assert "the user interrupted the turn" in contents(outcome)[0]
    assert contents(outcome)[1] == "skipped: the user sent a message"


async def test_an_interrupt_cancels_a_tool_that_does_not_obey_its_signal() -> None:
    body = Steered(cooperates=False)
    bench = Bench(shell("Bash", body), limits=QUICK)
    batch = bench.start("Bash")
    await body.until_entered(1)
    bench.turn.trip(INTERRUPT)
    outcome = await batch
    assert outcomes(outcome) == ["stopped"]
    assert "the user interrupted the turn; the result may be incomplete" in contents(outcome)[0]
    assert outcome.report.abandoned == 0


async def test_an_interrupt_keeps_the_result_of_a_write_that_finishes_in_time() -> None:
    body = Steered(cooperates=False)
    bench = Bench(writer("Edit", body))
    batch = bench.start("Edit", "Edit")
    await body.until_entered(1)
    bench.turn.trip(INTERRUPT)
    await bench.until(lambda: bench.ready() == ["call-1"])
    body.gates["call-0"].set()
    assert contents(await batch) == ["whole call-0", "skipped: the user interrupted the turn"]


async def test_a_write_that_hangs_is_given_up_and_its_result_says_so() -> None:
    entered, free = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        free.wait()

    async def write(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(hang)
        return ToolResult()

    bench = Bench(writer("Edit", write), safe("Grep"), limits=QUICK)
    batch = bench.start("Edit")
    await asyncio.to_thread(entered.wait)
    bench.turn.trip(INTERRUPT)
    outcome = await batch
    assert outcomes(outcome) == ["stopped"]
    assert "may still be running" in contents(outcome)[0]
    assert outcome.report.abandoned == bench.dispatcher.abandoned == 1
    free.set()


@BOTH_MODES
async def test_cancelling_the_dispatch_ends_every_call_and_raises(
    config: ToolConcurrencyConfig,
) -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=config, limits=QUICK)
    batch = bench.start(*["Grep"] * 4)
    await latch.until_inside(2 if config.enabled else 1)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert latch.inside == []
    assert sorted(bench.ready()) == ids(4)
    assert len(bench.of(BatchFinished)) == 1


async def test_cancelling_the_dispatch_twice_leaves_nothing_behind() -> None:
    latch = Latch()
    bench = Bench(reader("Read", latch))
    batch = bench.start("Read", "Read")
    await latch.until_inside(2)
    batch.cancel()
    await asyncio.sleep(0)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
    assert latch.inside == []
    assert sorted(bench.ready()) == ids(2)


async def test_a_signal_may_trip_on_another_thread() -> None:
    body = Steered(cooperates=True)
    bench = Bench(safe("Grep", body))
    batch = bench.start("Grep", "Grep")
    await body.until_entered(2)
    await asyncio.to_thread(bench.turn.trip, INTERRUPT)
    assert outcomes(await batch) == ["stopped", "stopped"]


@BOTH_MODES
async def test_fail_fast_starts_no_further_call_and_asks_cooperative_ones_to_stop(
    config: ToolConcurrencyConfig,
) -> None:
    body, entered = Steered(cooperates=True), asyncio.Event()

    async def fail(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        if config.enabled:
            await body.until_entered(1)
        entered.set()
        return ToolResult(error="no such file")

    config = ToolConcurrencyConfig(config.enabled, max_concurrency=2, fail_fast=True)
    bench = Bench(safe("Fail", fail), safe("Grep", body), config=config)
    outcome = await bench.run("Fail", "Grep", "Grep", "Grep")
    cut = "stopped" if config.enabled else "skipped"
    assert outcomes(outcome) == ["failed", cut, "skipped", "skipped"]
    assert contents(outcome)[0] == "Error: no such file"
    assert contents(outcome)[3] == "skipped: fail_fast"
    assert outcome.report.every_call_failed


async def test_what_a_person_decided_outweighs_a_failure_after_it() -> None:
    """The batch counts as cut by the person, and so not towards the stall guard (D39)."""
    body, cut = Steered(cooperates=True), asyncio.Event()

    async def fail(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await cut.wait()
        return ToolResult(error="no such file")

    config = ToolConcurrencyConfig(True, fail_fast=True)
    bench = Bench(safe("Fail", fail), safe("Grep", body), config=config)
    batch = bench.start("Fail", "Grep")
    await body.until_entered(1)
    assert bench.dispatcher.cancel_call("call-1")
    cut.set()
    report = (await batch).report
    assert report.cancelled_by is CancelReason.CALL_CANCELLED
    assert not report.every_call_failed


async def test_without_fail_fast_a_failure_stops_nothing() -> None:
    async def fail(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(error="no such file")

    bench = Bench(safe("Fail", fail), safe("Grep"), config=ToolConcurrencyConfig.on(1))
    outcome = await bench.run("Fail", "Grep", "Grep")
    assert outcomes(outcome) == ["failed", "succeeded", "succeeded"]
    assert not outcome.report.every_call_failed
