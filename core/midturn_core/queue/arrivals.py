"""Telling a listener what others have put into a shared store (S2.35)."""

from __future__ import annotations

import logging

from midturn_core.queue.events import MessageQueueListener, QueueChangeType, QueueEvent
from midturn_core.queue.record import RecordError, from_record

_log = logging.getLogger(__name__)


def tell_arrival(listener: MessageQueueListener, record: bytes) -> None:
    """Tell it as ENQUEUED; nothing that goes wrong ends the thread that watches the store."""
    try:
        event = QueueEvent(from_record(record), QueueChangeType.ENQUEUED)
    except RecordError:
        _log.warning("an input that arrived cannot be read")
        return
    try:
        listener.on_event(event)
    # An isolation wall (S2.12): a listener's fault reaches nobody else.
    except Exception:
        _log.warning("queue listener %s failed", type(listener).__name__, exc_info=True)
