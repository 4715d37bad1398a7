"""What a batch took, and what it would have taken the other way (D20, D34, S4.2). Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.types import BatchReport, CallReport, GateVerdict


def build_report(
    batch_id: str,
    verdict: GateVerdict,
    calls: Sequence[CallReport],
    config: ToolConcurrencyConfig,
) -> BatchReport:
    """Only calls whose tool ran count towards the times."""
    ran = [call for call in calls if call.started is not None]
    durations = [call.duration_ms for call in ran]
    return BatchReport(
        batch_id=batch_id,
        verdict=verdict,
        calls=tuple(calls),
        wall_ms=_wall_ms(ran),
        sequential_ms=sum(durations),
        parallel_ms=sum(replay(part, config) for part in _by_segment(ran, verdict)),
        config=config,
    )


def _by_segment(ran: Sequence[CallReport], verdict: GateVerdict) -> list[list[float]]:
    """The durations of each segment that the batch has or would have; none known: all in one."""
    if not verdict.planned:
        return [[call.duration_ms for call in ran]]
    return [
        [call.duration_ms for call in ran if call.index in segment] for segment in verdict.planned
    ]


def replay(durations: Sequence[float], config: ToolConcurrencyConfig) -> float:
    """How long calls of these durations take together, started in order as slots come free.

    One batch alone holds at most ``per_batch_max`` of the slots, and its context at most
    ``per_context_max``.
    """
    slots = min(config.batch_slots, config.context_slots)
    free_at = [0.0] * slots
    end = 0.0
    for duration in durations:
        done = heapq.heappop(free_at) + duration
        heapq.heappush(free_at, done)
        end = max(end, done)
    return end


def time_one_by_one(model_time: float, durations: Sequence[float]) -> float:
    """T_seq = (n+1)M + sum(t_i): the model is asked again after each call (S4.2)."""
    return (len(durations) + 1) * model_time + sum(durations)


def time_together(model_time: float, durations: Sequence[float]) -> float:
    """T_par = 2M + max(t_i): one response asks for all, one answers (S4.2)."""
    return 2 * model_time + max(durations, default=0.0)


def overlap_ms(calls: Sequence[CallReport], complete: float) -> float:
    """Time in which at least one tool ran before ``complete``, when the message was whole (D24)."""
    early = [
        replace(call, ended=min(call.ended, complete))
        for call in calls
        if call.started is not None and call.started < complete and call.ended is not None
    ]
    return _wall_ms(early)


def _wall_ms(ran: Sequence[CallReport]) -> float:
    """Time in which at least one tool ran: not what a person took to answer in between (D22)."""
    spans = sorted(
        (call.started, call.ended)
        for call in ran
        if call.started is not None and call.ended is not None
    )
    covered, reached = 0.0, float("-inf")
    for start, end in spans:
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered * 1000
