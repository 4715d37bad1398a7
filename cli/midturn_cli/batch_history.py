"""The newest batches of a session, for /why: how each was judged, and what its calls took."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from midturn_core.dispatch.types import BatchReport, GateVerdict
from midturn_core.events import BatchFinished, BatchStarted, Event, ToolUseStarted

KEPT_BATCHES = 100


@dataclass(slots=True)
class PastBatch:
    """One batch, perhaps still on its way. ``titles`` are untrusted text."""

    number: int
    """1-based within the session."""
    step: int
    verdict: GateVerdict
    names: list[str] = field(default_factory=list[str])
    titles: list[str] = field(default_factory=list[str])
    report: BatchReport | None = None
    """None while it runs."""


class BatchHistory:
    """Watches the core's events. The oldest batches give way first."""

    def __init__(self) -> None:
        self._kept: deque[PastBatch] = deque(maxlen=KEPT_BATCHES)
        self._open: dict[str, PastBatch] = {}
        self._count = 0

    @property
    def newest_first(self) -> tuple[PastBatch, ...]:
        return tuple(reversed(self._kept))

    def observe(self, event: Event) -> None:
        match event:
            case BatchStarted(batch_id, step, _, verdict):
                self._count += 1
                batch = PastBatch(self._count, step, verdict)
                self._open[batch_id] = batch
                self._kept.append(batch)
            case ToolUseStarted(batch_id=batch_id) if batch_id in self._open:
                self._open[batch_id].names.append(event.tool_use.name)
                self._open[batch_id].titles.append(event.title)
            case BatchFinished(report):
                self._close(report)
            case _:
                pass

    def _close(self, report: BatchReport) -> None:
        if report.batch_id in self._open:
            batch = self._open.pop(report.batch_id)
            batch.verdict, batch.report = report.verdict, report
