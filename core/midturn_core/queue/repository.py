"""``MessageQueueRepository``: pure storage of waiting inputs, the only part that is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority


class MessageQueueRepository(Protocol):
    """Keeps inputs in delivery order: by tier, first in first out within a tier (S2.9, D9).

    The order within a tier comes from the place given at enqueue, never from a clock. It is
    defined within a context; a selection that spans contexts comes by tier, each context in its
    order. A uuid is in the store at most once.

    Every method is safe on any thread in any combination (S2.32), synchronous (D7), and atomic
    towards every other process that uses the store (S2.37). A predicate may be a
    ``QueueFilter``, which every backend evaluates inside its atomic step, or any callable (D8):
    it sees inputs as they are at that moment, and none that changed meanwhile is taken. A
    callable must not use the repository; what it raises is raised, and nothing is taken.

    **Claims** (D12). An input is *waiting* or *claimed*. ``claim`` takes inputs out as ``drain``
    does, but keeps them stored for the case that this process dies before the history that holds
    them is written: the order is claim, log, ``confirm``. The owner of a claim is the repository
    object that made it, one per run of the program. A claimed input keeps its place and its
    uuid; ``size``, ``list_by_max_priority``, ``peek``, ``get`` and the taking methods do not see
    it, ``replace``, ``move`` and ``remove`` answer False, and ``enqueue`` of its uuid too. It
    waits again, where it was, when its owner gives it back (``unclaim``, ``close``) or when its
    owner is dead and somebody asks for its context's leftovers (``recover``). A confirmed input
    is gone.

    The window that remains is a crash between log and ``confirm``: then the input is back
    although the log holds it. Who restores a session therefore confirms what its log holds,
    before anything is delivered; ``confirm`` is made for that.

    Raises:
        QueueStoreError: from any method, when the store cannot be used.
    """

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        """Append to its tier; False when its uuid is already here (nothing is changed).

        ``cap`` is how many may wait in its context, whoever else enqueues at the same time; 0 is
        no cap.

        Raises:
            QueueFullError: as many wait already; nothing was stored (D11).
        """
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

        What it returns was all present at one moment, and no match stays behind. The same as
        ``claim`` and ``confirm`` at once: a crash right after it loses what it returned.
        """
        ...

    def claim(self, predicate: Predicate) -> list[QueuedInput]:
        """Claim all matches in one atomic cut and return them in delivery order (D12)."""
        ...

    def confirm(self, uuids: Iterable[str]) -> None:
        """Forget inputs for good: they are in the log.

        Meant for what this owner has claimed, and for what waits again although it was
        delivered. Idempotent: a uuid that is gone, or claimed by another owner, is passed over.
        """
        ...

    def unclaim(self, uuids: Iterable[str]) -> None:
        """Let inputs that this owner has claimed wait again, where they were.

        Idempotent: a uuid that is gone, waiting, or claimed by another owner, is passed over.
        """
        ...

    def recover(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        """Let the claims of dead owners in this context wait again; what came back, in order.

        A live owner's claims stay. For the process that runs the context, when it starts.
        """
        ...

    def get(self, uuid: str) -> QueuedInput | None:
        """The waiting input with this uuid."""
        ...

    def remove(self, uuid: str) -> bool:
        """Take one out; False when it is not waiting: no uuid is an error (S2.29)."""
        ...

    def replace(self, item: QueuedInput) -> bool:
        """Store a new state of a waiting input; False when its uuid is not waiting.

        It keeps its place; with another priority it joins the end of that tier. The context of
        an input never changes.
        """
        ...

    def replace_all(self, items: Sequence[QueuedInput]) -> int:
        """``replace`` for many at the price of few; how many of them were waiting.

        Each is stored whole or not at all; after a failure some may be stored and some not.
        """
        ...

    def move(self, uuid: str, before: str | None) -> bool:
        """Put an input right before another of its context and tier; None puts it last.

        False, and nothing changed, when there is no such waiting pair.
        """
        ...

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        """How many wait, altogether or in one context."""
        ...

    def generation(self) -> str:
        """Changes when the store may have lost what it had confirmed, because its server was
        started anew or its file replaced. Empty when nobody can tell.
        """
        ...

    def contexts(self) -> list[AgentRuntimeId]:
        """Every context that holds something, waiting or claimed, in no order; it may name one
        that has just become empty.
        """
        ...

    def watch(self, context_id: AgentRuntimeId, changed: Callable[[], None]) -> Callable[[], None]:
        """Be called soon after others changed something in a context; returns what ends that.

        ``changed`` says "look", not what happened: it may come for nothing, and it comes too when
        the store was lost or is back, so that who looks each time misses nothing for good. It is
        called on a thread of the store's. While nothing changes, that costs next to nothing. A
        store that no other process can reach never calls it.
        """
        ...

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        """Hear of inputs that others put into a shared store (S2.35); returns the unsubscriber.

        A hint, not a record: each input that another repository object enqueues is told as
        ENQUEUED, on a thread of the store's; what leaves or changes is not told, and after a
        failure of the store a hint may be missing. Who must not miss anything uses ``watch``. A
        store that no other process can reach never calls it.
        """
        ...

    def close(self) -> None:
        """Give back what this owner has claimed and not confirmed, and let go of the store.

        Idempotent. The object is not used afterwards.
        """
        ...
