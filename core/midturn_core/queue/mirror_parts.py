"""What the parts of a ``RepositoryMirror`` share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.store_client import StoreClient
from midturn_core.queue.types import QueuedInput


@dataclass(slots=True)
class MirrorState:
    """What is known of the inputs between memory and store. Whoever changes it holds the manager's
    lock.
    """

    known: set[str] = field(default_factory=set[str])
    """Inputs that are, or are about to be, in the store."""
    unstored: dict[str, QueuedInput] = field(default_factory=dict[str, QueuedInput])
    """Those whose text is in memory only, oldest first."""
    leaving: dict[str, str] = field(default_factory=dict[str, str])
    """Drained here, each with the generation that was known then; the store may still show them."""
    delivered: set[str] = field(default_factory=set[str])
    """What the log holds: a store that has lost the word of it may show it once more."""
    on_the_way: int = 0
    """Changes made here that the store does not have yet."""
    generation: str = ""
    """Of the store, when it was last looked at."""
    taking_over: bool = False
    """What changes now in memory comes from the store."""

    def forget(self, uuids: Iterable[str]) -> None:
        """These are nowhere any more."""
        for uuid in uuids:
            self.known.discard(uuid)
            self.unstored.pop(uuid, None)
            self.leaving.pop(uuid, None)


@dataclass(frozen=True, slots=True)
class MirrorParts:
    """One context of a manager, and the store that it is kept in."""

    manager: MessageQueueManager
    context_id: AgentRuntimeId
    client: StoreClient
    hooks: MirrorHooks
    state: MirrorState = field(default_factory=MirrorState)
