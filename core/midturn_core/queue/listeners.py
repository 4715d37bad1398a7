"""Listeners that come with the queue: one that logs (S2.18), one that hops to the loop (D10)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from midturn_core.queue.events import QueueChangeType, QueueEvent

_log = logging.getLogger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LoggingMessageQueueListener:
    """One DEBUG line per event (S2.19) and a counter per change type.

    Args:
        now: the wall clock that ages are measured with; the default is the system's.
    """

    def __init__(self, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._counts: Counter[QueueChangeType] = Counter()

    def on_event(self, event: QueueEvent) -> None:
        with self._lock:
            self._counts[event.change_type] += 1
        if _log.isEnabledFor(logging.DEBUG):
            item = event.input
            _log.debug(
                "queue-event change=%-8s uuid=%s priority=%s ctx=%s ageMs=%d source=%s",
                event.change_type.value,
                item.uuid,
                item.priority.name,
                item.context_id,
                self._age_ms(event),
                item.source_agent_id or "repl",
            )

    def get_enqueued_count(self) -> int:
        return self._count(QueueChangeType.ENQUEUED)

    def get_drained_count(self) -> int:
        return self._count(QueueChangeType.DRAINED)

    def get_removed_count(self) -> int:
        return self._count(QueueChangeType.REMOVED)

    def get_changed_count(self) -> int:
        return self._count(QueueChangeType.CHANGED)

    def _count(self, change_type: QueueChangeType) -> int:
        with self._lock:
            return self._counts[change_type]

    def _age_ms(self, event: QueueEvent) -> int:
        if event.change_type is QueueChangeType.ENQUEUED:
            return 0
        age = self._now() - event.input.enqueued_at
        # A clock that was set back must not show a negative age.
        return max(0, int(age.total_seconds() * 1000))


class LoopMessageQueueListener:
    """Passes events on to a function on an asyncio loop, in order, whatever thread made them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, receive: Callable[[QueueEvent], None]
    ) -> None:
        self._loop = loop
        self._receive = receive

    def on_event(self, event: QueueEvent) -> None:
        # A loop that is closed has nobody left who wants to know.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._receive, event)
