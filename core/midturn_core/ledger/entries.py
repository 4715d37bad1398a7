"""The ledger: what is kept of each batch, so that anybody can check it later.

Times are seconds on the monotonic clock of one run; those of different runs cannot be compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.dispatch.types import BatchOutcome, CallReport, SequentialCause
from midturn_core.ids import new_id
from midturn_core.model.messages import Outcome, ToolUseResult

THIS_RUN = new_id("run")
"""Names the process: its batches share a clock."""


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """One call. ``started`` and ``ended`` enclose the tool alone; None when it never ran."""

    tool_use_id: str
    name: str
    outcome: Outcome
    result_hash: str
    """``content_hash`` of what the model got."""
    started: float | None = None
    ended: float | None = None
    pooled: bool = False
    """While it ran it held a slot, of its batch and of the pool."""
    early: bool = False
    retried: bool = False
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class LedgerLimits:
    """How many pooled calls could run at once: in all, of one batch, and of one context."""

    max_concurrency: int
    per_batch_max: int
    per_context_max: int

    @classmethod
    def of(cls, config: ToolConcurrencyConfig) -> LedgerLimits:
        return cls(config.max_concurrency, config.batch_slots, config.context_slots)


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """One batch, with its calls in the order of the message that asked for them."""

    batch_id: str
    context_id: str
    step: int
    run: str
    limits: LedgerLimits
    calls: tuple[LedgerCall, ...]
    segments: tuple[range, ...]
    """The calls that could run together, by 0-based index, one group after the other."""
    cause: SequentialCause | None = None
    """Why not all of them could; None when all could."""
    deciding_call: int | None = None

    @property
    def parallel(self) -> bool:
        """Some of its calls could run together."""
        return any(len(segment) > 1 for segment in self.segments)


def content_hash(content: str) -> str:
    """SHA-256 of a result's content, in hexadecimal."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def entry_of(batch: ToolBatch, outcome: BatchOutcome, run: str = THIS_RUN) -> LedgerBatch:
    """What is kept of a batch that is over."""
    report, verdict = outcome.report, outcome.report.verdict
    return LedgerBatch(
        batch_id=report.batch_id,
        context_id=str(batch.context_id),
        step=batch.step,
        run=run,
        limits=LedgerLimits.of(report.config),
        calls=tuple(map(_call, report.calls, outcome.results)),
        segments=verdict.segments,
        cause=verdict.cause,
        deciding_call=verdict.call_index,
    )


def _call(report: CallReport, result: ToolUseResult) -> LedgerCall:
    return LedgerCall(
        tool_use_id=report.tool_use.id,
        name=report.tool_use.name,
        outcome=report.outcome,
        result_hash=content_hash(result.content),
        started=report.started,
        ended=report.ended,
        pooled=report.pooled,
        early=report.early,
        retried=report.retried,
        abandoned=report.abandoned,
    )
