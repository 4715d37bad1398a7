"""What the queue tells its listeners (S2.12, D10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from midturn_core.queue.types import QueuedInput


class QueueChangeType(Enum):
    """What happened to an input. The value is the word in log lines."""

    ENQUEUED = "ENQUEUED"
    DRAINED = "DRAINED"
    """Handed out for delivery; it is no longer in the queue."""
    REMOVED = "REMOVED"
    """Left the queue without being delivered; the reason says why."""
    CHANGED = "CHANGED"
    """Still waiting, but different; the reason says how."""


class QueueChangeReason(Enum):
    """Why an input was removed, or how it changed."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CLEARED = "cleared"
    EDITED = "edited"
    REPRIORITISED = "reprioritised"
    MOVED = "moved"
    HELD = "held"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """One change of one input. ``input`` is its newest state.

    ``reason`` is None for ENQUEUED and DRAINED.
    """

    input: QueuedInput
    change_type: QueueChangeType
    reason: QueueChangeReason | None = None


class MessageQueueListener(Protocol):
    """Observes the queue. Called after the change, in order, on the thread that made it.

    It must return fast, work on any thread and never wait for another thread that uses the
    queue. What it raises is logged and reaches nobody (S2.41).
    """

    def on_event(self, event: QueueEvent) -> None: ...
