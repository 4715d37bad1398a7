"""What running calls together has saved in a session, and what it would have (S4.2, S4.3, D20).

Measured are the tools alone. What fewer round trips to the model save is an estimate on top of it:
nobody knows how long the requests that were never sent would have taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from midturn_core.dispatch.types import BatchReport, CallReport
from midturn_core.events import BatchFinished, Event, MessageEnded, SubagentEvent


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The model's round trips that came to their own end, from request to end of the message."""

    count: int = 0
    total_ms: float = 0.0

    @property
    def mean_ms(self) -> float:
        """The M of S4.2; 0 while none is known."""
        return self.total_ms / self.count if self.count else 0.0

    def after(self, event: MessageEnded) -> RoundTrips:
        """With one more; a message that was cut says nothing about how long one takes."""
        if event.cut or event.duration_ms <= 0:
            return self
        return RoundTrips(self.count + 1, self.total_ms + event.duration_ms)


@dataclass(frozen=True, slots=True)
class ToolTotals:
    """The calls of one tool. Times are milliseconds.

    ``parallel_ms`` is the tool's share of what its batches take together: as much of it as its
    durations have of theirs, so that the tools add up to the whole.
    """

    calls: int = 0
    sequential_ms: float = 0.0
    parallel_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Speedup:
    """Totals over finished batches. Times are milliseconds, of tools alone."""

    batches: int = 0
    several: int = 0
    """Batches of two calls or more."""
    together: int = 0
    """Batches that ran in parallel."""
    held_back: int = 0
    """Batches that only the switch kept from it."""
    calls: int = 0
    took_ms: float = 0.0
    sequential_ms: float = 0.0
    """What all calls would have taken one after another."""
    parallel_ms: float = 0.0
    """What they would have taken with every batch that may run together run together."""
    saved_ms: float = 0.0
    """What the batches that ran in parallel saved."""
    overlap_ms: float = 0.0
    """What ran before the message that asked for it was complete (D24)."""
    missed_ms: float = 0.0
    """What those that only the switch kept from it would have saved."""
    round_trips_spared: int = 0
    """A batch of which n calls ran takes two round trips to the model instead of n+1 (S4.1)."""
    tokens_spared: int = 0
    """Estimate: what those round trips would have sent again (S4.3)."""
    tools: Mapping[str, ToolTotals] = field(default_factory=lambda: MappingProxyType({}))
    """By name, in the order of their first calls."""

    def after(self, report: BatchReport, prefix_tokens: int = 0) -> Speedup:
        """With one more batch. ``prefix_tokens`` is what the request before it sent."""
        verdict, count = report.verdict, len(report.calls)
        missed = verdict.would_pass and not verdict.parallel
        parallel_ms = would_take_ms(report)
        spared = round_trips_spared(report)
        return replace(
            self,
            batches=self.batches + 1,
            several=self.several + (count >= 2),
            together=self.together + verdict.parallel,
            held_back=self.held_back + missed,
            calls=self.calls + count,
            took_ms=self.took_ms + report.wall_ms,
            sequential_ms=self.sequential_ms + report.sequential_ms,
            parallel_ms=self.parallel_ms + parallel_ms,
            saved_ms=self.saved_ms + saved_ms(report),
            overlap_ms=self.overlap_ms + report.overlap_ms,
            missed_ms=self.missed_ms + (report.wall_ms - parallel_ms if missed else 0.0),
            round_trips_spared=self.round_trips_spared + spared,
            tokens_spared=self.tokens_spared + spared * prefix_tokens,
            tools=_with_calls(self.tools, report, parallel_ms),
        )

    def one_by_one_ms(self, trips: RoundTrips) -> float:
        """Estimate: the session with one call per response, T_seq of S4.2."""
        return trips.total_ms + self.round_trips_spared * trips.mean_ms + self.sequential_ms

    def batched_ms(self, trips: RoundTrips) -> float:
        """Estimate: the session with every batch that may run together run together, T_par."""
        return trips.total_ms + self.parallel_ms


def saved_ms(report: BatchReport) -> float:
    """What running a batch in parallel saved; 0 for one that ran in order."""
    return max(report.sequential_ms - report.wall_ms, 0.0) if report.verdict.parallel else 0.0


def round_trips_spared(report: BatchReport) -> int:
    """What a batch of calls spares against one call per response; one that never ran had no
    answer that the model would have been asked with.
    """
    ran = sum(call.started is not None for call in report.calls)
    return max(ran - 1, 0)


def would_take_ms(report: BatchReport) -> float:
    """What a batch takes with parallel execution on: one that may not run together, its sum."""
    passes = report.verdict.parallel or report.verdict.would_pass
    return report.parallel_ms if passes else report.sequential_ms


class SpeedupMeter:
    """Watches the core's events of one session and keeps its totals.

    What subagents call is counted apart: the ``Task`` calls of the main agent contain it.
    """

    def __init__(self) -> None:
        self.totals = Speedup()
        self.subagents = Speedup()
        self.round_trips = RoundTrips()
        """Of the main agent."""
        self._prefix_tokens = 0

    def observe(self, event: Event) -> None:
        match event:
            case SubagentEvent(event=BatchFinished(report)):
                self.subagents = self.subagents.after(report)
            case MessageEnded(usage=usage):
                self.round_trips = self.round_trips.after(event)
                self._prefix_tokens = usage.context_tokens - usage.output_tokens
            case BatchFinished(report):
                self.totals = self.totals.after(report, self._prefix_tokens)
            case _:
                pass


def _with_calls(
    tools: Mapping[str, ToolTotals], report: BatchReport, parallel_ms: float
) -> Mapping[str, ToolTotals]:
    share = parallel_ms / report.sequential_ms if report.sequential_ms else 0.0
    counted = dict(tools)
    for call in report.calls:
        before, took = counted.get(call.tool_use.name, ToolTotals()), _ran_ms(call)
        counted[call.tool_use.name] = ToolTotals(
            before.calls + 1,
            before.sequential_ms + took,
            before.parallel_ms + took * share,
        )
    return MappingProxyType(counted)


def _ran_ms(call: CallReport) -> float:
    """Only calls whose tool ran count towards the times."""
    return call.duration_ms if call.started is not None else 0.0
