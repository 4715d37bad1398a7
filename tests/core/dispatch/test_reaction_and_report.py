"""The pure parts: how a running call reacts to a reason, and the times of a batch."""

from __future__ import annotations

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.reaction import Reaction, StopLimits, StopPlan, plan_stop, react
from midturn_core.dispatch.report import (
    build_report,
    overlap_ms,
    replay,
    time_one_by_one,
    time_together,
)
from midturn_core.dispatch.types import BatchReport, CallReport, GateVerdict
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import Outcome, ToolUse
from midturn_core.tool import InterruptBehavior

LIMITS = StopLimits(join=5.0, grace=2.0)


@pytest.mark.parametrize("reason", [CancelReason.USER_MESSAGE, CancelReason.FAIL_FAST])
def test_a_message_asks_only_safe_cooperative_calls(reason: CancelReason) -> None:
    for interrupt in InterruptBehavior:
        asked = interrupt is InterruptBehavior.COOPERATIVE
        expected = Reaction.ASK if asked else Reaction.CONTINUE
        assert react(reason, True, interrupt) is expected
        assert react(reason, False, interrupt) is Reaction.CONTINUE


@pytest.mark.parametrize(
    "reason", [CancelReason.INTERRUPT, CancelReason.CALL_CANCELLED, CancelReason.SHUTDOWN]
)
@pytest.mark.parametrize("safe", [True, False])
def test_an_interrupt_ends_a_call_the_way_it_declares(reason: CancelReason, safe: bool) -> None:
    assert react(reason, safe, InterruptBehavior.COOPERATIVE) is Reaction.WIND_DOWN
    assert react(reason, safe, InterruptBehavior.EXTERNALLY_TERMINATED) is Reaction.WIND_DOWN
    assert react(reason, safe, InterruptBehavior.NON_INTERRUPTIBLE) is Reaction.LET_FINISH
    assert react(reason, safe, InterruptBehavior.THREAD_INTERRUPT) is Reaction.CANCEL


@pytest.mark.parametrize("interrupt", list(InterruptBehavior))
def test_a_limit_cancels_every_call(interrupt: InterruptBehavior) -> None:
    assert react(CancelReason.TIMEOUT, True, interrupt) is Reaction.CANCEL


@pytest.mark.parametrize(
    ("reaction", "cancel_at"),
    [(Reaction.CANCEL, 100.0), (Reaction.WIND_DOWN, 102.0), (Reaction.LET_FINISH, 105.0)],
)
def test_a_call_that_must_end_is_waited_for_at_most_five_seconds(
    reaction: Reaction, cancel_at: float
) -> None:
    plan = plan_stop(reaction, CancelReason.INTERRUPT, 100.0, LIMITS)
    assert plan == StopPlan(CancelReason.INTERRUPT, cancel_at, 105.0)


@pytest.mark.parametrize("reaction", [Reaction.CONTINUE, Reaction.ASK])
def test_a_call_that_goes_on_has_no_plan(reaction: Reaction) -> None:
    assert plan_stop(reaction, CancelReason.USER_MESSAGE, 100.0, LIMITS) is None


def report_of(*calls: tuple[Outcome, float | None, float | None]) -> BatchReport:
    reports = [
        CallReport(
            index,
            ToolUse(f"call-{index}", "Grep"),
            outcome,
            0.0 if start is None or end is None else (end - start) * 1000,
            start,
            end,
        )
        for index, (outcome, start, end) in enumerate(calls)
    ]
    return build_report("batch-1", GateVerdict(True), reports, ToolConcurrencyConfig.on(2))


def test_a_report_compares_what_it_took_with_both_other_ways() -> None:
    report = report_of(
        (Outcome.SUCCEEDED, 10.0, 10.5),
        (Outcome.FAILED, 10.0, 10.25),
        (Outcome.SKIPPED, None, None),
        (Outcome.SUCCEEDED, 10.25, 10.5),
    )
    assert report.wall_ms == 500
    assert report.sequential_ms == 1000
    assert report.parallel_ms == 500
    assert report.count(Outcome.FAILED, Outcome.SKIPPED) == 2


def test_the_time_a_person_took_to_answer_in_between_does_not_count() -> None:
    report = report_of(
        (Outcome.SUCCEEDED, 10.0, 10.25),
        (Outcome.SUCCEEDED, 10.125, 10.25),
        (Outcome.SUCCEEDED, 60.0, 60.5),
    )
    assert report.wall_ms == 750


def test_a_batch_that_ran_nothing_took_no_time() -> None:
    report = report_of((Outcome.SKIPPED, None, None))
    assert (report.wall_ms, report.sequential_ms, report.parallel_ms) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("cap", "share", "expected"),
    [(4, None, 40.0), (2, None, 60.0), (4, 1, 100.0), (1, None, 100.0)],
)
def test_the_replay_respects_both_tiers(cap: int, share: int | None, expected: float) -> None:
    assert replay([10, 20, 30, 40], ToolConcurrencyConfig.on(cap, share)) == expected


def test_the_replay_respects_the_share_of_a_context() -> None:
    alone = ToolConcurrencyConfig(enabled=True, max_concurrency=4, per_context_max=2)
    assert replay([10, 20, 30, 40], alone) == 60.0


def test_the_formula_of_the_worked_example() -> None:
    assert time_one_by_one(900, [400, 400, 400]) == 4800
    assert time_together(900, [400, 400, 400]) == 2200
    assert time_together(900, []) == 1800


def test_an_early_start_gains_what_ran_before_the_message_was_complete() -> None:
    """D24: one that goes on after that counts up to then, one that starts later not at all."""
    spans = [(1.0, 1.5), (1.2, 3.0), (2.5, 2.6)]
    calls = [
        CallReport(index, ToolUse(f"call-{index}", "Read"), Outcome.SUCCEEDED, 0.0, start, end)
        for index, (start, end) in enumerate(spans)
    ]
    assert overlap_ms(calls, complete=2.0) == pytest.approx(1000)
    assert overlap_ms(calls, complete=0.5) == 0
