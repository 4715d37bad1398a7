"""Batches that pass the gate: together, within the caps, in order, each call for itself."""

from __future__ import annotations

import asyncio
import threading

import pytest

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch.config import MAX_CALLS_PER_BATCH, ToolConcurrencyConfig
from midturn_core.dispatch.runner import BatchCall, PreparedCall
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    CallPhase,
    Event,
    ToolProgress,
    ToolResultReady,
    ToolUseStarted,
)
from midturn_core.model.messages import JsonObject, Outcome, ToolUse, ToolUseResult
from midturn_core.tool import BlockingRunner, ToolContext, ToolResult
from tests.core.dispatch.kit import (
    Bench,
    Latch,
    contents,
    ids,
    outcomes,
    reader,
    result_ids,
    safe,
    writer,
)


async def test_eight_calls_are_in_flight_at_once_with_a_cap_of_eight() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), reader("Read", latch), config=ToolConcurrencyConfig.on(8))
    batch = bench.start(*["Grep", "Read"] * 4)
    await latch.until_inside(8)
    latch.open()
    outcome = await batch
    assert result_ids(outcome) == ids(8)
    assert outcomes(outcome) == ["succeeded"] * 8
    assert outcome.report.verdict.parallel


async def test_eight_blocking_calls_are_on_eight_workers_at_once() -> None:
    barrier = threading.Barrier(8, timeout=20)

    async def meet(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(barrier.wait)
        return ToolResult(await context.run_blocking(lambda: threading.current_thread().name))

    bench = Bench(reader("Read", meet), config=ToolConcurrencyConfig.on(8))
    outcome = await bench.run(*["Read"] * 8)
    names = {f"tool-dispatch-worker-{n}" for n in range(1, 9)}
    assert set(contents(outcome)) <= names
    assert {t.name for t in threading.enumerate()} >= names
    await bench.dispatcher.close()


@pytest.mark.parametrize(("cap", "share", "expected"), [(3, None, 3), (8, 2, 2), (1, None, 1)])
async def test_no_more_calls_run_at_once_than_the_caps_allow(
    cap: int, share: int | None, expected: int
) -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=ToolConcurrencyConfig.on(cap, share))
    batch = bench.start(*["Grep"] * 7)
    await latch.until_inside(expected)
    latch.open()
    outcome = await batch
    assert latch.peak == expected
    assert latch.entered == ids(7)
    assert result_ids(outcome) == ids(7)


async def test_the_global_cap_holds_over_batches_of_several_contexts() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=ToolConcurrencyConfig.on(3, 2))
    first, second = bench.start(*["Grep"] * 4), bench.start(*["Grep"] * 4)
    await latch.until_inside(3)
    latch.open()
    await asyncio.gather(first, second)
    assert latch.peak == 3


async def test_a_bigger_cap_counts_from_the_next_batch_on() -> None:
    first, second = Latch(), Latch()
    bench = Bench(safe("A", first), safe("B", second), config=ToolConcurrencyConfig.on(2))
    batch = bench.start(*["A"] * 5)
    await first.until_inside(2)
    bench.dispatcher.configure(ToolConcurrencyConfig.on(5))
    first.open()
    await batch
    assert first.peak == 2
    batch = bench.start(*["B"] * 5)
    await second.until_inside(5)
    second.open()
    await batch


async def test_results_are_in_call_order_and_ready_events_in_completion_order() -> None:
    gates = {use: asyncio.Event() for use in ids(3)}

    async def wait(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await gates[context.tool_use_id].wait()
        return ToolResult(context.tool_use_id)

    bench = Bench(safe("Grep", wait))
    batch = bench.start("Grep", "Grep", "Grep")
    for done, name in enumerate(("call-2", "call-0", "call-1"), start=1):
        await bench.until(lambda: len(bench.started()) == 3)
        gates[name].set()
        await bench.until(lambda: len(bench.ready()) == done)  # noqa: B023 - awaited at once
    outcome = await batch
    assert contents(outcome) == ids(3)
    assert bench.ready() == ["call-2", "call-0", "call-1"]
    assert bench.started() == ids(3)


async def test_the_events_of_a_batch_tell_its_whole_story() -> None:
    bench = Bench(safe("Grep"), reader("Read"))
    await bench.run("Grep", "Read")
    assert isinstance(bench.events[0], BatchStarted)
    assert isinstance(bench.events[-1], BatchFinished)
    starts = bench.of(ToolUseStarted)
    assert [(s.index, s.count, s.title) for s in starts] == [
        (0, 2, "title of 0"),
        (1, 2, "title of 1"),
    ]
    assert bench.phases("call-0") == ["waiting", "running"]
    assert [event.index for event in bench.of(ToolResultReady)] == [0, 1]
    assert bench.of(BatchFinished)[0].report.count(Outcome.SUCCEEDED) == 2


async def test_a_failing_call_costs_no_other_call_anything() -> None:
    async def fail(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        raise OSError("disk on fire")

    async def fail_blocking(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        def leave() -> str:
            raise SystemExit(3)

        return ToolResult(await context.run_blocking(leave))

    bench = Bench(safe("Good"), safe("Raise", fail), safe("Exit", fail_blocking))
    outcome = await bench.run("Good", "Raise", "Exit", "Good")
    assert outcomes(outcome) == ["succeeded", "failed", "failed", "succeeded"]
    assert contents(outcome)[1] == "Error: OSError: disk on fire"
    assert "SystemExit" in contents(outcome)[2]
    assert outcome.results[1].is_error


async def test_a_failing_listener_disturbs_nothing() -> None:
    bench = Bench(safe("Grep"))

    def fail(event: Event) -> None:
        raise RuntimeError("a listener's mistake")

    outcome = await bench.dispatcher.dispatch(
        bench.batch("Grep", "Grep"), bench.runner, fail, bench.signals
    )
    assert outcomes(outcome) == ["succeeded", "succeeded"]


class BrokenRunner:
    """Fails in every stage it can, by the name of the call."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def title(self, tool_use: ToolUse) -> str:
        raise ValueError("no title")

    def may_start_early(self, call: BatchCall) -> bool:
        raise ValueError("nothing is known")

    async def prepare(self, call: BatchCall) -> PreparedCall | ToolUseResult | None:
        name = call.tool_use.id
        if name == "call-0":
            raise KeyError
        if name == "call-1":
            return None
        tool = self.bench.registry.get("Grep")
        assert tool is not None
        return PreparedCall(call, tool, {})

    async def run(
        self, prepared: PreparedCall, run_blocking: BlockingRunner
    ) -> ToolUseResult | None:
        if prepared.call.tool_use.id == "call-2":
            return None
        if prepared.call.tool_use.id == "call-3":
            raise asyncio.CancelledError
        return ToolUseResult("someone else's", "Other", Outcome.SUCCEEDED, "fine")


@pytest.mark.parametrize("config", [ToolConcurrencyConfig.on(8), ToolConcurrencyConfig.off()])
async def test_a_broken_runner_still_leads_to_one_result_per_call(
    config: ToolConcurrencyConfig,
) -> None:
    bench = Bench(safe("Grep"), config=config)
    bench.runner = BrokenRunner(bench)
    outcome = await bench.run(*["Grep"] * 5)
    assert result_ids(outcome) == ids(5)
    assert outcomes(outcome) == ["failed"] * 4 + ["succeeded"]
    assert contents(outcome)[0] == "Error: Unknown error (KeyError)"
    assert contents(outcome)[1] == contents(outcome)[2] == "Error: no result was returned"
    assert sorted(bench.ready()) == ids(5)


async def test_a_call_that_waits_for_an_answer_holds_no_slot() -> None:
    asked, reply = asyncio.Event(), asyncio.Event()

    async def ask_first(pending: PendingCall) -> ToolUseResult | None:
        if pending.call.index == 0:
            pending.call.announce(CallPhase.ASKING)
            asked.set()
            await reply.wait()
            return denied(pending.call.tool_use, "the user said no")
        return None

    bench = Bench(safe("Grep"), config=ToolConcurrencyConfig.on(1), authorize=ask_first)
    batch = bench.start("Grep", "Grep")
    await asked.wait()
    await bench.until(lambda: bench.ready() == ["call-1"])
    reply.set()
    outcome = await batch
    assert outcomes(outcome) == ["denied", "succeeded"]
    assert bench.phases("call-0") == ["waiting", "asking"]
    assert outcome.results[0].duration_ms == 0


async def test_calls_beyond_the_limit_get_an_error_that_names_it() -> None:
    bench = Bench(safe("Grep"))
    outcome = await bench.run(*["Grep"] * (MAX_CALLS_PER_BATCH + 2))
    assert result_ids(outcome) == ids(MAX_CALLS_PER_BATCH + 2)
    assert all(not result.is_error for result in outcome.results[:MAX_CALLS_PER_BATCH])
    for late in outcome.results[MAX_CALLS_PER_BATCH:]:
        assert late.is_error
        assert late.content.startswith("Error: at most 50 calls")


async def test_calls_that_wait_take_together_far_less_than_one_after_another() -> None:
    async def wait(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(0.1)
        return ToolResult()

    together = (await Bench(safe("Fetch", wait)).run(*["Fetch"] * 8)).report
    alone = Bench(safe("Fetch", wait), config=ToolConcurrencyConfig.off())
    in_order = (await alone.run(*["Fetch"] * 3)).report
    assert together.wall_ms < together.sequential_ms / 2
    assert in_order.wall_ms >= in_order.sequential_ms
    assert in_order.parallel_ms < in_order.sequential_ms / 2
    assert in_order.verdict.would_pass


async def test_an_empty_batch_has_an_empty_outcome() -> None:
    assert (await Bench().run()).results == ()


async def test_progress_reaches_the_screen_from_any_thread_and_ends_with_the_result() -> None:
    late: list[ToolContext] = []

    async def talk(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        context.progress("from the loop")
        await context.run_blocking(lambda: context.progress("from a worker"))
        late.append(context)
        return ToolResult()

    bench = Bench(safe("Grep", talk))
    await bench.run("Grep")
    late[0].progress("too late")
    await asyncio.sleep(0)
    assert [event.note for event in bench.of(ToolProgress)] == ["from the loop", "from a worker"]


async def test_a_batch_with_one_writer_runs_one_at_a_time_in_order() -> None:
    running: list[str] = []

    async def alone(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        running.append(context.tool_use_id)
        assert len(running) == 1
        await asyncio.sleep(0)
        running.remove(context.tool_use_id)
        return ToolResult()

    bench = Bench(safe("Grep", alone), writer("Edit", alone))
    outcome = await bench.run("Grep", "Edit", "Grep")
    assert outcomes(outcome) == ["succeeded"] * 3
    assert bench.ready() == ids(3)
    assert not outcome.report.verdict.parallel
    assert outcome.report.verdict.tool_name == "Edit"
