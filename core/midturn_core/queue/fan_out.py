"""``ListenerFanOut``: tells each listener of a queue every change, all of them in the same order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable

from midturn_core.queue.events import (
    MessageQueueListener,
    QueueChangeReason,
    QueueChangeType,
    QueueEvent,
)
from midturn_core.queue.types import QueuedInput

_log = logging.getLogger(__name__)


class ListenerFanOut:
    """For one thread at a time: whoever changes the queue holds its lock meanwhile."""

    def __init__(self) -> None:
        self._listeners: tuple[MessageQueueListener, ...] = ()
        self._untold: deque[QueueEvent] = deque()
        self._telling = False

    def add(self, listener: MessageQueueListener) -> None:
        self._listeners = (*self._listeners, listener)

    def remove(self, listener: MessageQueueListener) -> None:
        """Nothing happens when it is not known."""
        self._listeners = tuple(known for known in self._listeners if known is not listener)

    def tell(
        self,
        items: Iterable[QueuedInput],
        change_type: QueueChangeType,
        reason: QueueChangeReason | None = None,
    ) -> None:
        """A change that a listener makes is told after the one that it was told of."""
        self._untold.extend(QueueEvent(item, change_type, reason) for item in items)
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                event = self._untold.popleft()
                for listener in self._listeners:
                    _tell_one(listener, event)
        finally:
            self._telling = False


def _tell_one(listener: MessageQueueListener, event: QueueEvent) -> None:
    try:
        listener.on_event(event)
    # An isolation wall (S2.12): a listener's fault never reaches the producer or its siblings.
    except Exception:
        _log.warning(
            "queue listener %s failed on %s",
            type(listener).__name__,
            event.change_type.value,
            exc_info=True,
        )
