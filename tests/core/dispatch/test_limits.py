"""Time limits, second tries, and calls that do not end when they must (D22, D26, D28)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from midturn_core.call_runner import PendingCall
from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.events import CallPhase
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, ToolUseResult
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import (
    QUICK,
    Bench,
    Latch,
    contents,
    outcomes,
    reader,
    safe,
    shell,
)


async def forever(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.Event().wait()
    return ToolResult()


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_call_over_its_limit_fails_alone_in_both_modes(enabled: bool) -> None:
    config = ToolConcurrencyConfig(enabled, timeout_per_call=0.05)
    bench = Bench(safe("Slow", forever), safe("Grep"), config=config)
    outcome = await bench.run("Grep", "Slow", "Grep")
    assert outcomes(outcome) == ["succeeded", "timed out", "succeeded"]
    assert contents(outcome)[1].startswith("Error: Tool execution timeout")
    assert "0.05 s" in contents(outcome)[1]
    assert outcome.results[1].duration_ms >= 50


async def test_a_tool_with_a_limit_of_its_own_is_not_under_the_common_one() -> None:
    release = asyncio.Event()

    async def wait(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await release.wait()
        return ToolResult("done")

    config = ToolConcurrencyConfig(timeout_per_call=0.3, timeout_per_batch=0.3)
    bench = Bench(shell("Bash", wait, limit=60), safe("Grep"), config=config)
    batch = bench.start("Bash", "Grep")
    asyncio.get_running_loop().call_later(0.5, release.set)
    outcome = await batch
    assert outcomes(outcome) == ["succeeded", "succeeded"]


async def test_a_safe_tool_cannot_lengthen_the_limit_per_call() -> None:
    config = ToolConcurrencyConfig(True, timeout_per_call=0.05)
    bench = Bench(safe("Slow", forever, limit=600), config=config)
    assert outcomes(await bench.run("Slow", "Slow")) == ["timed out", "timed out"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_batch_limit_ends_running_and_waiting_calls(enabled: bool) -> None:
    config = ToolConcurrencyConfig(enabled, max_concurrency=1, timeout_per_batch=0.05)
    bench = Bench(safe("Slow", forever), config=config)
    outcome = await bench.run("Slow", "Slow", "Slow")
    assert outcomes(outcome) == ["timed out"] * 3
    assert "was not done when the batch reached its limit of 0.05 s" in contents(outcome)[0]
    assert "had not started when the batch" in contents(outcome)[1]


async def test_the_batch_limit_leaves_a_call_that_waits_and_has_a_limit_of_its_own() -> None:
    """D22."""
    config = ToolConcurrencyConfig(timeout_per_batch=0.05)
    bench = Bench(safe("Slow", forever), shell("Bash"), safe("Grep"), config=config)
    outcome = await bench.run("Slow", "Bash", "Grep")
    assert outcomes(outcome) == ["timed out", "succeeded", "timed out"]


async def test_the_batch_limit_counts_on_when_a_call_with_a_limit_of_its_own_is_over() -> None:
    """D22."""
    config = ToolConcurrencyConfig(timeout_per_batch=0.05)
    bench = Bench(shell("Bash"), safe("Slow", forever), config=config)
    outcome = await bench.run("Bash", "Slow")
    assert outcomes(outcome) == ["succeeded", "timed out"]
    assert "when the batch reached its limit" in contents(outcome)[1]


async def test_the_time_of_a_question_counts_towards_no_limit() -> None:
    answered = asyncio.Event()

    async def ask(pending: PendingCall) -> ToolUseResult | None:
        pending.call.announce(CallPhase.ASKING)
        await answered.wait()
        return None

    config = ToolConcurrencyConfig(True, timeout_per_call=0.3, timeout_per_batch=0.3)
    bench = Bench(safe("Grep"), config=config, authorize=ask)
    batch = bench.start("Grep", "Grep")
    asyncio.get_running_loop().call_later(0.5, answered.set)
    outcome = await batch
    assert outcomes(outcome) == ["succeeded", "succeeded"]


async def test_waiting_for_a_slot_counts_towards_no_call_limit() -> None:
    latch = Latch()
    bench = Bench(safe("Hold", latch), safe("Grep"), config=ToolConcurrencyConfig.on(1))
    holder = bench.start("Hold", "Hold")
    await latch.until_inside(1)
    bench.dispatcher.configure(ToolConcurrencyConfig(True, max_concurrency=1, timeout_per_call=0.3))
    waiter = bench.start("Grep", "Grep")
    asyncio.get_running_loop().call_later(0.5, latch.open)
    assert outcomes(await waiter) == outcomes(await holder) == ["succeeded"] * 2


async def test_a_timeout_is_shown_at_once_and_late_output_is_discarded() -> None:
    entered, free = threading.Event(), threading.Event()

    async def hang(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        def work() -> str:
            entered.set()
            free.wait()
            context.progress("late")
            return "late"

        return ToolResult(await context.run_blocking(work))

    config = ToolConcurrencyConfig(True, timeout_per_call=0.05)
    bench = Bench(reader("Read", hang), config=config)
    batch = bench.start("Read")
    await bench.until(lambda: bench.ready() == ["call-0"])
    assert not batch.done()
    free.set()
    outcome = await batch
    assert outcomes(outcome) == ["timed out"]
    assert outcome.report.abandoned == 0


async def test_abandoned_workers_do_not_block_later_batches() -> None:
    free = threading.Event()

    async def hang(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(free.wait)
        return ToolResult()

    async def work(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(await context.run_blocking(lambda: "worked"))

    for enabled in (True, False):
        # Long enough for both workers to begin on a busy machine.
        config = ToolConcurrencyConfig(enabled, max_concurrency=2, timeout_per_call=0.4)
        bench = Bench(reader("Hang", hang), reader("Read", work), config=config, limits=QUICK)
        outcome = await bench.run("Hang", "Hang")
        assert outcomes(outcome) == ["timed out"] * 2
        assert outcome.report.abandoned == 2
        assert contents(await bench.run("Read", "Read", "Read")) == ["worked"] * 3
        await bench.dispatcher.close()
    free.set()


async def test_a_coroutine_that_refuses_to_end_is_abandoned() -> None:
    free = asyncio.Event()

    async def refuse(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return ToolResult("late")

    config = ToolConcurrencyConfig(True, timeout_per_call=0.02)
    bench = Bench(safe("Stubborn", refuse), safe("Grep"), config=config, limits=QUICK)
    outcome = await bench.run("Stubborn", "Grep")
    assert outcomes(outcome) == ["timed out", "succeeded"]
    assert bench.dispatcher.abandoned == 1
    free.set()
    await asyncio.gather(*(t for t in asyncio.all_tasks() if t is not asyncio.current_task()))
    assert bench.ready() == ["call-1", "call-0"]


class Failing:
    """Fails a number of times, then succeeds."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.runs = 0

    async def __call__(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        self.runs += 1
        self.left -= 1
        return ToolResult(error="not yet") if self.left >= 0 else ToolResult("at last")


@pytest.mark.parametrize(
    ("times", "runs", "outcome", "retried"),
    [(0, 1, "succeeded", False), (1, 2, "succeeded", True), (5, 2, "failed", True)],
)
async def test_retry_failed_gives_one_second_try(
    times: int, runs: int, outcome: str, retried: bool
) -> None:
    body = Failing(times)
    bench = Bench(safe("Grep", body), config=ToolConcurrencyConfig(True, retry_failed=True))
    batch = await bench.run("Grep")
    assert body.runs == runs
    assert outcomes(batch) == [outcome]
    assert batch.results[0].retried is retried


async def test_only_safe_calls_are_tried_again_and_only_when_asked_for() -> None:
    unsafe, off = Failing(1), Failing(1)
    bench = Bench(shell("Bash", unsafe), config=ToolConcurrencyConfig(True, retry_failed=True))
    await bench.run("Bash")
    bench = Bench(safe("Grep", off), config=ToolConcurrencyConfig(True))
    await bench.run("Grep")
    assert (unsafe.runs, off.runs) == (1, 1)


async def test_a_call_that_was_asked_to_stop_has_no_second_try() -> None:
    """D26. It fails because it was asked, so a second try would fail the same way."""
    entered: list[str] = []

    async def until_asked(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        entered.append(context.tool_use_id)
        bench.signals.batch.trip(CancelReason.USER_MESSAGE)
        await context.signal.wait()
        return ToolResult(error="cut off")

    bench = Bench(safe("Grep", until_asked), config=ToolConcurrencyConfig(True, retry_failed=True))
    batch = await bench.run("Grep")
    assert (entered, outcomes(batch)) == (["call-0"], ["failed"])
    assert not batch.results[0].retried


async def test_a_retry_never_follows_the_limit() -> None:
    config = ToolConcurrencyConfig(True, retry_failed=True, timeout_per_call=0.02)
    latch = Latch()
    bench = Bench(safe("Slow", latch), config=config)
    assert outcomes(await bench.run("Slow", "Slow")) == ["timed out", "timed out"]
    assert len(latch.entered) == 2


async def test_a_pause_from_before_the_start_holds_the_clock_until_it_is_over() -> None:
    expired: list[str] = []
    clock = BatchClock(0.0, lambda: expired.append("now"))
    clock.pause()
    clock.start()
    clock.pause()
    clock.resume()
    await asyncio.sleep(0.01)
    assert expired == []
    clock.resume()
    await asyncio.sleep(0.01)
    assert expired == ["now"]
    clock.pause()
    clock.resume()
    clock.stop()
    await asyncio.sleep(0.01)
    assert expired == ["now"]
