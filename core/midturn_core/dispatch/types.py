"""The words between the turn loop and the dispatcher: configuration, verdict, batch, report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult


class SequentialCause(Enum):
    """Why a batch does not run in parallel (S1.51)."""

    DISABLED = "disabled"
    SINGLE_CALL = "single_call"
    SEQUENTIAL_TOOL = "sequential_tool"
    INTERRUPT_BEHAVIOR = "interrupt_behavior"
    UNKNOWN_TOOL = "unknown_tool"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """How the calls of a batch run, and what keeps them from running all together.

    ``parallel`` says that at least two calls run together. ``cause`` is None when all do;
    otherwise it, ``call_index`` and ``tool_name`` say why and which call decided, also for a
    batch that runs partly together (D23).

    ``would_pass`` is ``parallel`` with the switch ignored, for the what-if line (D20). When the
    switch decided and the batch would not have passed either, ``next_cause`` says why, and
    ``call_index`` and ``tool_name`` belong to it.
    """

    parallel: bool
    cause: SequentialCause | None = None
    call_index: int | None = None
    tool_name: str = ""
    why: str = ""
    """What the deciding tool itself says of its call, after the call's name."""
    would_pass: bool = False
    next_cause: SequentialCause | None = None
    segments: tuple[range, ...] = ()
    """The calls in the groups that run together, by 0-based index, one group after the other."""
    planned: tuple[range, ...] = ()
    """The segments with the switch ignored."""
    segments_would_help: bool = False
    """The batch is sequential, and with mixed = "segments" it would run partly together."""

    @property
    def partly(self) -> bool:
        """Some calls run together, but not all."""
        return self.parallel and len(self.segments) > 1


@dataclass(frozen=True, slots=True)
class CallReport:
    """One finished call of a batch: times in seconds on the monotonic clock.

    ``started`` and ``ended`` enclose the tool alone; both are None when it never ran.
    """

    index: int
    tool_use: ToolUse
    outcome: Outcome
    duration_ms: float
    started: float | None
    ended: float | None
    early: bool = False
    """It started before the message that asked for it was complete (D24)."""
    retried: bool = False
    abandoned: bool = False
    """It outlived its limit and could not be joined (D28)."""
    pooled: bool = False
    """While it ran it held a slot, of its batch and of the pool."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a batch took. ``wall_ms`` is the time in which at least one tool ran."""

    batch_id: str
    verdict: GateVerdict
    calls: tuple[CallReport, ...]
    wall_ms: float
    sequential_ms: float
    """The sum of the durations: what one after another would have taken."""
    parallel_ms: float
    """By replaying the durations through the two-tier limits, segment by segment: what it would
    have taken with parallel execution on."""
    abandoned: int = 0
    """Calls that outlived their limit and could not be joined (D28)."""
    cancelled_by: CancelReason | None = None
    """What cut the batch, if something did."""
    config: ToolConcurrencyConfig = ToolConcurrencyConfig()
    """The settings that were in force."""
    overlap_ms: float = 0.0
    """Time in which at least one tool ran before the message was complete: what an early start
    gained (D24)."""

    def count(self, *outcomes: Outcome) -> int:
        return sum(call.outcome in outcomes for call in self.calls)

    @property
    def every_call_failed(self) -> bool:
        """For the stall guard (D39): nothing succeeded, and nobody cut the batch."""
        return (
            bool(self.calls)
            and self.cancelled_by in (None, CancelReason.FAIL_FAST)
            and self.count(Outcome.SUCCEEDED) == 0
        )


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Exactly one result per tool use, in call order, and the report."""

    results: tuple[ToolUseResult, ...]
    report: BatchReport
