"""The newest batches of a session, for /why: how each was judged, and what its calls took."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from midturn_core.dispatch.types import BatchReport, GateVerdict
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    Event,
    SubagentEvent,
    ToolUseStarted,
)

KEPT_BATCHES = 100


@dataclass(slots=True)
class PastBatch:
    """One batch, perhaps still on its way. ``titles`` are untrusted text."""

    number: int
    """1-based within the session, in the order of their starts."""
    step: int
    agent: str
    """Whose it is, such as ``main`` or ``sub-1``."""
    verdict: GateVerdict
    names: list[str] = field(default_factory=list[str])
    titles: list[str] = field(default_factory=list[str])
    report: BatchReport | None = None
    """None while it runs."""


class BatchHistory:
    """Watches the core's events, those of subagents too. The oldest batches give way first."""

    def __init__(self) -> None:
        self._finished: deque[PastBatch] = deque(maxlen=KEPT_BATCHES)
        self._open: dict[str, PastBatch] = {}
        self._count = 0

    @property
    def newest_first(self) -> tuple[PastBatch, ...]:
        """Those that run, then the others as they finished: a task after what was done for it."""
        return (*reversed(self._open.values()), *reversed(self._finished))

    def observe(self, event: Event, agent: str = "main") -> None:
        match event:
            case SubagentEvent():
                self.observe(event.event, event.context_id.agent)
            case BatchStarted(batch_id, step, _, verdict):
                self._count += 1
                self._open[batch_id] = PastBatch(self._count, step, agent, verdict)
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
            self._finished.append(batch)
