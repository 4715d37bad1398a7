"""``MessageQueueRepository``: pure storage of waiting inputs, the only part that is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority


class MessageQueueRepository(Protocol):
    """Keeps inputs in delivery order: by tier, first in first out within a tier (S2.9, D9).

    The order within a tier comes from a sequence number given at enqueue, never from a clock.
    Every method is safe on any thread in any combination (S2.32) and synchronous (D7). A
    predicate may be a ``QueueFilter``, which every backend evaluates inside its atomic step, or
    any callable (D8); a callable must not use the repository.
    """

    def enqueue(self, item: QueuedInput) -> bool:
        """Append to its tier; False when its uuid is already here (nothing is changed)."""
        ...

    def dequeue(self, predicate: Predicate) -> QueuedInput | None:
        """Remove and return the first match, atomically (S2.30); None when there is none."""
        ...

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        """The first match, which stays."""
        ...

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        """Matches of this tier and those before it, in delivery order; a copy (S2.31)."""
        ...

    def drain(self, predicate: Predicate) -> list[QueuedInput]:
        """Remove all matches in one atomic cut and return them in delivery order (S2.11).

        What it returns was all present at one moment, and no match stays behind.
        """
        ...

    def get(self, uuid: str) -> QueuedInput | None: ...

    def remove(self, uuid: str) -> bool:
        """Take one out; False when it is not here, never raises (S2.29)."""
        ...

    def replace(self, item: QueuedInput) -> bool:
        """Store a new state of a waiting input; False when its uuid is not here.

        It keeps its place; with another priority it joins the end of that tier. The context of
        an input never changes.
        """
        ...

    def move(self, uuid: str, before: str | None) -> bool:
        """Put an input right before another of its context and tier; None puts it last.

        False, and nothing changed, when there is no such pair.
        """
        ...

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        """How many wait, altogether or in one context."""
        ...

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        """Changes that other processes make to a shared store (S2.35); returns the unsubscriber.

        A store that no other process can reach never calls it.
        """
        ...
