"""The totals of a session: exact sums, both ways, and the estimates of S4.2 and S4.3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.report import build_report, time_one_by_one, time_together
from midturn_core.dispatch.speedup import RoundTrips, Speedup, SpeedupMeter, ToolTotals
from midturn_core.dispatch.types import BatchReport, CallReport, GateVerdict, SequentialCause
from midturn_core.events import BatchFinished, MessageEnded, SubagentEvent
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import Outcome, StopReason, ToolUse, Usage
from tests.core.dispatch.kit import Bench, reader, safe, writer

TOGETHER = GateVerdict(parallel=True, would_pass=True)
HELD_BACK = GateVerdict(parallel=False, cause=SequentialCause.DISABLED, would_pass=True)
MIXED = GateVerdict(parallel=False, cause=SequentialCause.SEQUENTIAL_TOOL, call_index=1)
FOUR = ToolConcurrencyConfig.on(4)


def report(
    verdict: GateVerdict,
    *durations_ms: float,
    names: Sequence[str] = (),
    config: ToolConcurrencyConfig = FOUR,
) -> BatchReport:
    """A batch whose calls took these times, together or one after another as it was judged."""
    calls: list[CallReport] = []
    clock = 0.0
    for index, duration in enumerate(durations_ms):
        use = ToolUse(f"call-{index}", names[index] if names else "Read")
        started = 0.0 if verdict.parallel else clock
        clock = started + duration / 1000
        calls.append(CallReport(index, use, Outcome.SUCCEEDED, duration, started, clock))
    return build_report("batch", verdict, calls, config)


def asked(seconds: float, *, cut: bool = False, usage: Usage | None = None) -> MessageEnded:
    return MessageEnded(StopReason.TOOL_USE, usage or Usage(), cut, seconds * 1000)


def test_the_worked_example_takes_4800_ms_one_by_one_and_2200_ms_batched() -> None:
    trips = RoundTrips().after(asked(0.9)).after(asked(0.9))
    totals = Speedup().after(report(TOGETHER, 400, 400, 400))
    assert totals.one_by_one_ms(trips) == pytest.approx(4800)
    assert totals.batched_ms(trips) == pytest.approx(2200)
    assert totals.one_by_one_ms(trips) == pytest.approx(time_one_by_one(900, [400] * 3))
    assert totals.batched_ms(trips) == pytest.approx(time_together(900, [400] * 3))


def test_calls_that_never_ran_spare_nothing() -> None:
    whole = report(TOGETHER, 1, 1, 1)
    cut = tuple(
        replace(call, outcome=Outcome.SKIPPED, started=None, ended=None, duration_ms=0.0)
        for call in whole.calls[1:]
    )
    totals = Speedup().after(replace(whole, calls=(whole.calls[0], *cut)), 10_000)
    assert (totals.round_trips_spared, totals.tokens_spared) == (0, 0)


def test_each_call_beyond_the_first_spares_one_round_trip_and_its_prefix() -> None:
    totals = Speedup().after(report(TOGETHER, 1, 1, 1), 10_000).after(report(MIXED, 1), 20_000)
    totals = totals.after(report(HELD_BACK, 1, 1), 30_000)
    assert totals.round_trips_spared == 3
    assert totals.tokens_spared == 2 * 10_000 + 30_000
    assert (totals.batches, totals.several, totals.calls) == (3, 2, 6)


def test_a_parallel_batch_counts_what_it_saved() -> None:
    totals = Speedup().after(report(TOGETHER, 100, 300, 200))
    assert (totals.together, totals.held_back) == (1, 0)
    assert totals.took_ms == pytest.approx(300)
    assert totals.sequential_ms == pytest.approx(600)
    assert totals.parallel_ms == pytest.approx(300)
    assert totals.saved_ms == pytest.approx(300)
    assert totals.missed_ms == 0


def test_a_batch_that_only_the_switch_held_back_counts_what_it_would_have_saved() -> None:
    totals = Speedup().after(report(HELD_BACK, 100, 300, 200))
    assert (totals.together, totals.held_back) == (0, 1)
    assert totals.took_ms == pytest.approx(600)
    assert totals.parallel_ms == pytest.approx(300)
    assert totals.saved_ms == 0
    assert totals.missed_ms == pytest.approx(300)


def test_a_batch_that_may_not_run_together_takes_the_same_both_ways() -> None:
    totals = Speedup().after(report(MIXED, 100, 300))
    assert totals.sequential_ms == totals.parallel_ms == pytest.approx(400)
    assert totals.saved_ms == totals.missed_ms == 0


def test_what_early_starts_hid_is_added_up() -> None:
    early = replace(report(TOGETHER, 100, 100), overlap_ms=60.0)
    assert Speedup().after(early).after(early).overlap_ms == 120


def test_would_be_times_keep_to_both_tiers() -> None:
    narrow = ToolConcurrencyConfig.on(8, 2)
    totals = Speedup().after(report(HELD_BACK, 100, 100, 100, 100, config=narrow))
    assert totals.parallel_ms == pytest.approx(200)


def test_the_tools_add_up_to_the_whole() -> None:
    names = ("Read", "Grep", "Read", "WebFetch")
    totals = Speedup().after(report(TOGETHER, 100, 300, 100, 500, names=names))
    totals = totals.after(report(MIXED, 50, 50, names=("Read", "Edit")))
    read, edit = totals.tools["Read"], totals.tools["Edit"]
    assert (read.calls, edit.calls) == (3, 1)
    assert (read.sequential_ms, edit.sequential_ms) == (250, 50)
    assert read.parallel_ms == pytest.approx(150)
    assert edit.parallel_ms == pytest.approx(50)
    assert sum(tool.calls for tool in totals.tools.values()) == totals.calls
    for both_ways in ("sequential_ms", "parallel_ms"):
        parts = sum(getattr(tool, both_ways) for tool in totals.tools.values())
        assert parts == pytest.approx(getattr(totals, both_ways))


def test_a_call_that_never_ran_counts_without_a_time() -> None:
    use = ToolUse("call-0", "Edit")
    denied = CallReport(0, use, Outcome.DENIED, 700.0, None, None)
    totals = Speedup().after(build_report("batch", MIXED, [denied], FOUR))
    assert totals.tools["Edit"] == ToolTotals(1, 0.0, 0.0)
    assert totals.sequential_ms == 0


def test_the_mean_round_trip_leaves_out_messages_that_were_cut() -> None:
    trips = RoundTrips()
    assert trips.mean_ms == 0
    for event in (asked(1.0), asked(9.0, cut=True), asked(2.0), asked(0.0)):
        trips = trips.after(event)
    assert (trips.count, trips.mean_ms) == (2, 1500.0)


def test_the_meter_takes_the_prefix_from_the_request_before_the_batch() -> None:
    meter = SpeedupMeter()
    usage = Usage(input_tokens=100, output_tokens=50, cache_read_tokens=900, cache_write_tokens=7)
    meter.observe(asked(0.5, usage=usage))
    meter.observe(BatchFinished(report(TOGETHER, 10, 10)))
    assert meter.totals.tokens_spared == 1007
    assert meter.round_trips.mean_ms == 500


def test_what_subagents_call_is_counted_apart() -> None:
    meter = SpeedupMeter()
    inner = BatchFinished(report(TOGETHER, 100, 300))
    sub = AgentRuntimeId("session", "sub-1")
    meter.observe(SubagentEvent(sub, "task", asked(9.0)))
    meter.observe(SubagentEvent(sub, "task", inner))
    meter.observe(BatchFinished(report(MIXED, 900, names=("Task",))))
    assert (meter.totals.calls, meter.subagents.calls) == (1, 2)
    assert meter.totals.sequential_ms == pytest.approx(900)
    assert meter.subagents.saved_ms == pytest.approx(100)
    assert meter.round_trips.count == 0


async def test_batches_of_the_real_dispatcher_are_counted_as_they_ran() -> None:
    bench = Bench(reader("Read"), safe("Grep"), writer("Edit"))
    meter = SpeedupMeter()
    for names in (("Read", "Grep"), ("Read", "Edit"), ("Grep",)):
        await bench.run(*names)
    bench.dispatcher.configure(ToolConcurrencyConfig.off())
    await bench.run("Read", "Read", "Grep")
    for event in bench.events:
        meter.observe(event)
    await bench.dispatcher.close()
    totals = meter.totals
    assert (totals.batches, totals.several, totals.together, totals.held_back) == (4, 3, 1, 1)
    assert {name: tool.calls for name, tool in totals.tools.items()} == {
        "Read": 4,
        "Grep": 3,
        "Edit": 1,
    }
