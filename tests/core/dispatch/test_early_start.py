"""Early start (D24): which calls may start while their message streams, and what comes of them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.early import EarlyBatch
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.dispatch.slots import Slots
from midturn_core.dispatch.types import BatchOutcome, SequentialCause
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    Event,
    ToolPhaseChanged,
    ToolProgress,
    ToolResultReady,
    ToolUseEndedEarly,
    ToolUseStarted,
    ToolUseStartedEarly,
)
from midturn_core.interceptors.interceptor import ToolInterceptor, ToolInterceptors
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, ToolUse, ToolUseResult
from midturn_core.read_files import ReadStamp
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, ToolContext, ToolResult
from tests.core.dispatch.kit import (
    CONTEXT,
    DEADLINE,
    QUICK,
    Bench,
    Latch,
    ProbeTool,
    contents,
    ids,
    outcomes,
    reader,
    result_ids,
    safe,
    shell,
    uses_of,
    writer,
)
from tests.support.agent_kit import until

STREAMING = ToolConcurrencyConfig(enabled=True, mixed="segments", start="streaming")


def begin(bench: Bench) -> EarlyBatch:
    batch = ToolBatch((), bench.registry, CONTEXT)
    early = bench.dispatcher.begin(batch, bench.runner, bench.emit)
    assert early is not None
    return early


def hear(early: EarlyBatch, *names: str) -> tuple[ToolUse, ...]:
    uses = uses_of(*names)
    for use in uses:
        early.hear(use)
    return uses


async def finish(bench: Bench, early: EarlyBatch, *uses: ToolUse) -> BatchOutcome:
    async with asyncio.timeout(DEADLINE):
        return await early.finish(uses, bench.signals)


def started_early(bench: Bench) -> list[str]:
    return [event.tool_use_id for event in bench.of(ToolUseStartedEarly)]


def in_batches(bench: Bench) -> list[Event]:
    return [e for e in bench.events if not isinstance(e, ToolUseStartedEarly | ToolUseEndedEarly)]


@pytest.mark.parametrize(
    "config",
    [
        ToolConcurrencyConfig.off(),
        ToolConcurrencyConfig.on(),
        ToolConcurrencyConfig(enabled=True, mixed="segments"),
        ToolConcurrencyConfig(enabled=False, mixed="segments", start="streaming"),
    ],
)
async def test_nothing_starts_early_unless_it_is_switched_on(config: ToolConcurrencyConfig) -> None:
    bench = Bench(safe("Grep"), config=config)
    assert bench.dispatcher.begin(bench.batch(), bench.runner, bench.emit) is None


async def test_a_closed_dispatcher_starts_nothing_early() -> None:
    bench = Bench(safe("Grep"), config=STREAMING)
    await bench.dispatcher.close()
    assert bench.dispatcher.begin(bench.batch(), bench.runner, bench.emit) is None


async def test_safe_calls_start_when_they_are_heard_until_one_is_not_safe() -> None:
    latch, alone = Latch(), Latch()
    bench = Bench(safe("Grep", latch), writer("Edit", alone), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Grep", "Grep", "Edit", "Grep")
    await latch.until_inside(2)
    assert started_early(bench) == ids(2)
    assert alone.entered == []
    latch.open()
    outcome = asyncio.create_task(finish(bench, early, *uses))
    await alone.until_inside(1)
    assert latch.entered == ids(2)
    alone.open()
    assert outcomes(await outcome) == ["succeeded"] * 4
    report = (await outcome).report
    assert [call.early for call in report.calls] == [True, True, False, False]
    assert report.verdict.segments == (range(2), range(2, 3), range(3, 4))
    assert report.overlap_ms > 0


@pytest.mark.parametrize(
    "first",
    [
        ToolUse("x", "Grop"),
        ToolUse("x", "Edit"),
        ToolUse("x", "Bash"),
    ],
)
async def test_behind_an_unsafe_or_unknown_call_nothing_starts_early(first: ToolUse) -> None:
    bench = Bench(safe("Grep"), writer("Edit"), shell("Bash"), config=STREAMING)
    early = begin(bench)
    early.hear(first)
    early.hear(ToolUse("y", "Grep"))
    outcome = await finish(bench, early, first, ToolUse("y", "Grep"))
    assert started_early(bench) == []
    assert outcome.report.overlap_ms == 0


async def test_a_call_that_may_need_a_question_or_is_not_valid_waits_for_its_message() -> None:
    latch = Latch()

    def all_but_the_first(pending: PendingCall) -> bool:
        return pending.call.index != 0

    bench = Bench(safe("Grep", latch), config=STREAMING, permits=all_but_the_first)
    early = begin(bench)
    broken = ToolUse("call-1", "Grep", {}, "cut at column 7")
    wrong = ToolUse("call-2", "Grep", {"bad": 1})
    uses = (ToolUse("call-0", "Grep"), broken, wrong, ToolUse("call-3", "Grep"))
    for use in uses:
        early.hear(use)
    await latch.until_inside(1)
    assert latch.entered == ["call-3"]
    latch.open()
    outcome = await finish(bench, early, *uses)
    assert outcomes(outcome) == ["succeeded", "failed", "failed", "succeeded"]
    assert started_early(bench) == ["call-3"]


async def test_a_denied_call_is_answered_after_its_message() -> None:
    async def refuse(pending: PendingCall) -> ToolUseResult:
        return denied(pending.call.tool_use, "no")

    bench = Bench(safe("Grep"), config=STREAMING, authorize=refuse, permits=lambda pending: False)
    early = begin(bench)
    uses = hear(early, "Grep", "Grep")
    assert bench.events == []
    assert outcomes(await finish(bench, early, *uses)) == ["denied", "denied"]


async def test_with_interceptors_nothing_starts_early() -> None:
    """What they say is known only when they have run, and they must not see dropped calls."""
    seen: list[str] = []
    watch = ToolInterceptor("watch", before=lambda call: seen.append(call.tool_use.id))
    bench = Bench(safe("Grep"), config=STREAMING, interceptors=ToolInterceptors(watch))
    early = begin(bench)
    hear(early, "Grep", "Grep")
    await early.drop()
    assert seen == []


async def test_no_more_calls_start_early_than_a_batch_may_have() -> None:
    config = ToolConcurrencyConfig(enabled=True, mixed="segments", start="streaming", max_calls=2)
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=config)
    early = begin(bench)
    uses = hear(early, "Grep", "Grep", "Grep")
    await latch.until_inside(2)
    latch.open()
    outcome = await finish(bench, early, *uses)
    assert latch.entered == ids(2)
    assert [call.early for call in outcome.report.calls] == [True, True, False]
    assert "at most 2 calls" in contents(outcome)[2]


async def test_early_calls_keep_to_both_tiers() -> None:
    config = ToolConcurrencyConfig(
        enabled=True, max_concurrency=3, per_batch_max=2, mixed="segments", start="streaming"
    )
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=config)
    early = begin(bench)
    uses = hear(early, *["Grep"] * 4)
    await latch.until_inside(2)
    assert bench.dispatcher.slots_in_use == 2
    outcome = asyncio.create_task(finish(bench, early, *uses))
    await bench.until(lambda: len(bench.of(ToolUseStarted)) == 4)
    assert latch.peak == 2
    latch.open()
    assert outcomes(await outcome) == ["succeeded"] * 4
    assert latch.peak == 2
    assert bench.dispatcher.slots_in_use == 0


async def test_events_of_early_calls_come_after_the_start_of_their_batch_in_their_order() -> None:
    first, second = Latch(), Latch()

    async def speak(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        context.progress("half way")
        return await first(tool_input, context)

    bench = Bench(safe("Grep", speak), safe("Glob", second), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Grep", "Glob")
    await first.until_inside(1)
    await second.until_inside(1)
    second.open()
    await bench.until(lambda: bool(bench.of(ToolUseEndedEarly)))
    assert in_batches(bench) == []
    outcome = asyncio.create_task(finish(bench, early, *uses))
    await bench.until(lambda: bool(bench.of(ToolResultReady)))
    shown = in_batches(bench)
    assert [type(event) for event in shown[:3]] == [BatchStarted, ToolUseStarted, ToolUseStarted]
    assert bench.started() == ids(2)
    assert bench.phases("call-0") == ["waiting", "running"]
    assert [event.note for event in bench.of(ToolProgress)] == ["half way"]
    assert bench.ready() == ["call-1"]
    first.open()
    await outcome
    assert bench.ready() == ["call-1", "call-0"]
    assert isinstance(bench.events[-1], BatchFinished)


async def test_the_screen_is_told_at_once_what_runs_and_what_has_ended() -> None:
    bench = Bench(safe("Grep"), config=STREAMING)
    early = begin(bench)
    hear(early, "Grep")
    await bench.until(lambda: bool(bench.of(ToolUseEndedEarly)))
    told = bench.of(ToolUseStartedEarly)
    assert [(event.tool_use_id, event.name, event.title) for event in told] == [
        ("call-0", "Grep", "title of 0")
    ]
    assert [event.tool_use_id for event in bench.of(ToolUseEndedEarly)] == ["call-0"]
    await early.drop()


async def test_one_early_call_is_a_batch_of_one() -> None:
    bench = Bench(safe("Grep"), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Grep")
    outcome = await finish(bench, early, *uses)
    assert outcome.report.verdict.cause is SequentialCause.SINGLE_CALL
    assert contents(outcome) == ["output of call-0"]


async def test_a_dropped_message_leaves_no_event_no_worker_and_no_slot() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=STREAMING, limits=QUICK)
    early = begin(bench)
    hear(early, "Grep", "Grep", "Grep")
    await latch.until_inside(3)
    await early.drop()
    assert latch.inside == []
    assert in_batches(bench) == []
    assert bench.dispatcher.slots_in_use == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_dropped_cooperative_call_is_asked_to_stop_and_an_obstinate_one_given_up() -> None:
    stopped = asyncio.Event()

    async def cooperate(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.signal.wait()
        stopped.set()
        return ToolResult("a part", stopped=True)

    async def refuse(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return await context.run_blocking(lambda: ToolResult(str(gate.wait(DEADLINE))))

    gate = threading.Event()
    bench = Bench(safe("Grep", cooperate), reader("Read", refuse), config=STREAMING, limits=QUICK)
    early = begin(bench)
    hear(early, "Grep", "Read")
    await bench.until(lambda: len(started_early(bench)) == 2)
    await early.drop()
    assert stopped.is_set()
    assert bench.dispatcher.abandoned == 1
    assert in_batches(bench) == []
    gate.set()


async def test_a_call_that_the_message_drops_in_its_middle_gives_no_other_its_result() -> None:
    bench = Bench(safe("Grep"), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Grep", "Grep")
    await bench.until(lambda: len(bench.of(ToolUseEndedEarly)) == 2)
    outcome = await finish(bench, early, uses[1])
    assert result_ids(outcome) == ["call-1"]
    assert [call.early for call in outcome.report.calls] == [False]


class OnItsOwnPlace(ProbeTool):
    """A tool of which each call may run beside others, on a place of its own."""

    places = Slots(1)

    def concurrency_of(self, tool_input: JsonObject) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.CONCURRENT_SAFE

    def why_alone(self, tool_input: JsonObject) -> str:
        return ""


async def test_a_call_on_a_place_of_its_own_does_not_start_for_a_mere_promise() -> None:
    """A subagent costs money; behind it other calls still start early."""
    sequential, outside = ConcurrencyBehavior.SEQUENTIAL, InterruptBehavior.EXTERNALLY_TERMINATED
    task = OnItsOwnPlace("Task", concurrency=sequential, interrupt=outside)
    bench = Bench(task, safe("Grep"), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Task", "Grep")
    await bench.until(lambda: len(bench.of(ToolUseEndedEarly)) == 1)
    outcome = await finish(bench, early, *uses)
    assert [(call.early, call.pooled) for call in outcome.report.calls] == [
        (False, False),
        (True, True),
    ]


async def test_a_call_that_the_message_drops_at_its_end_is_cut_and_forgotten() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=STREAMING, limits=QUICK)
    early = begin(bench)
    uses = hear(early, "Grep", "Grep")
    await latch.until_inside(2)
    outcome = asyncio.create_task(finish(bench, early, uses[0]))
    await bench.until(lambda: bool(bench.of(ToolUseStarted)))
    phases = [e for e in in_batches(bench) if isinstance(e, ToolPhaseChanged)]
    assert {event.tool_use_id for event in phases} == {"call-0"}
    await until(lambda: "call-1" not in latch.inside)
    latch.open()
    assert result_ids(await outcome) == ["call-0"]
    assert bench.ready() == ["call-0"]


@pytest.mark.parametrize("reason", [CancelReason.USER_MESSAGE, CancelReason.INTERRUPT])
async def test_a_message_that_is_cut_answers_each_call_with_the_truth(
    reason: CancelReason,
) -> None:
    async def at_once(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult("whole")

    async def cooperate(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.signal.wait()
        return ToolResult("a part", stopped=True)

    bench = Bench(safe("Quick", at_once), safe("Grep", cooperate), writer("Edit"), config=STREAMING)
    early = begin(bench)
    uses = hear(early, "Quick", "Grep", "Edit", "Quick")
    await bench.until(lambda: bool(bench.of(ToolUseEndedEarly)) and len(started_early(bench)) == 2)
    bench.signals.batch.trip(reason)
    outcome = await finish(bench, early, *uses)
    assert outcomes(outcome) == ["succeeded", "stopped", "skipped", "skipped"]
    assert contents(outcome)[0] == "whole"
    assert contents(outcome)[1].endswith("a part")
    assert contents(outcome)[2] == f"skipped: {reason.value}"


async def test_fail_fast_counts_a_failure_before_the_end_of_the_message() -> None:
    async def fail(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(error="no such file")

    config = ToolConcurrencyConfig(
        enabled=True, mixed="segments", start="streaming", fail_fast=True
    )
    bench = Bench(safe("Fail", fail), writer("Edit"), config=config)
    early = begin(bench)
    uses = hear(early, "Fail", "Edit")
    await bench.until(lambda: bool(bench.of(ToolUseEndedEarly)))
    assert not bench.signals.batch.tripped
    outcome = await finish(bench, early, *uses)
    assert contents(outcome) == ["Error: no such file", "skipped: fail_fast"]


async def test_what_a_dropped_call_has_read_does_not_count_as_read() -> None:
    path, stamp = Path("/a"), ReadStamp("hash", ((1, 2),))
    read, go_on = asyncio.Event(), asyncio.Event()

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        context.read_files.record(path, stamp)
        assert context.read_files.get(path) == stamp
        read.set()
        await go_on.wait()
        context.read_files.record(Path("/b"), stamp)
        return ToolResult("text")

    bench = Bench(safe("Read", body), config=STREAMING, limits=QUICK)
    dropped = begin(bench)
    hear(dropped, "Read")
    await read.wait()
    await dropped.drop()
    assert bench.reads.snapshot() == {}
    read.clear()
    kept = begin(bench)
    uses = hear(kept, "Read")
    await read.wait()
    assert bench.reads.get(path) is None
    outcome = asyncio.create_task(finish(bench, kept, *uses))
    await bench.until(lambda: bool(bench.of(BatchStarted)))
    assert bench.reads.get(path) == stamp
    go_on.set()
    await outcome
    assert bench.reads.get(Path("/b")) == stamp


async def test_cancelling_a_drop_ends_everything_on_the_spot() -> None:
    latch = Latch()
    bench = Bench(reader("Read", latch), config=STREAMING)
    early = begin(bench)
    hear(early, "Read")
    await latch.until_inside(1)
    drop = asyncio.create_task(early.drop())
    for _ in range(2):
        await asyncio.sleep(0)
        drop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drop
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
    assert latch.inside == []
    assert bench.dispatcher.slots_in_use == 0


async def test_closing_the_dispatcher_waits_for_a_message_that_has_started_calls() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=STREAMING, limits=QUICK)
    early = begin(bench)
    hear(early, "Grep")
    await latch.until_inside(1)
    closing = asyncio.create_task(bench.dispatcher.close(0.01))
    await until(lambda: not latch.inside)
    await early.drop()
    await closing
