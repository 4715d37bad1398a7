"""``QueueMetricsInterceptor``: what the queue did during a turn (S2.22-S2.24)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeType, QueueEvent
from midturn_core.queue.manager import MessageQueueManager

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _TurnCounter:
    """Counts the events of one context while one of its turns runs."""

    def __init__(self, context_id: AgentRuntimeId) -> None:
        self._context_id = context_id
        self.enqueued = 0
        self.drained = 0

    def on_event(self, event: QueueEvent) -> None:
        if event.input.context_id != self._context_id:
            return
        self.enqueued += event.change_type is QueueChangeType.ENQUEUED
        self.drained += event.change_type is QueueChangeType.DRAINED


class QueueMetricsInterceptor:
    """Wraps a whole turn, outermost: one INFO line at every turn's end, and totals.

    Turns of different contexts may be observed at the same time.

    Args:
        clock: seconds on a clock that never jumps.
    """

    def __init__(
        self, manager: MessageQueueManager, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._lock = threading.Lock()
        self._executions = 0
        self._enqueued = 0
        self._drained = 0

    async def intercept(self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]) -> T:
        """Run the turn; what it returns or raises is passed on, and it is counted either way."""
        counter = _TurnCounter(context_id)
        started = self._clock()
        with self._manager.atomic():
            depth_before = self._manager.size(context_id)
            self._manager.add_listener(counter)
        try:
            return await turn()
        finally:
            with self._manager.atomic():
                self._manager.remove_listener(counter)
                depth_after = self._manager.size(context_id)
            self._add(counter)
            _log.info(
                "queue-metrics ctx=%s preDepth=%d postDepth=%d "
                "enqueuedInTurn=%d drainedInTurn=%d durationMs=%d",
                context_id,
                depth_before,
                depth_after,
                counter.enqueued,
                counter.drained,
                int((self._clock() - started) * 1000),
            )

    def get_executions_observed(self) -> int:
        with self._lock:
            return self._executions

    def get_enqueued_during_executions(self) -> int:
        with self._lock:
            return self._enqueued

    def get_drained_during_executions(self) -> int:
        with self._lock:
            return self._drained

    def _add(self, counter: _TurnCounter) -> None:
        with self._lock:
            self._executions += 1
            self._enqueued += counter.enqueued
            self._drained += counter.drained
