"""What an earlier run of a session left in its store, and how it comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midturn_core.queue.mirror_parts import MirrorParts
from midturn_core.queue.take_over import TakeOver
from midturn_core.queue.types import QueuedInput


@dataclass(frozen=True, slots=True)
class Leftovers:
    """In delivery order. ``waiting`` are all held (D5); ``expired`` are neither restored nor
    discarded yet (D11).
    """

    waiting: tuple[QueuedInput, ...] = ()
    expired: tuple[QueuedInput, ...] = ()


class LeftoverLoader:
    """For the first job of a store's client: before anything of this run is in the store."""

    def __init__(self, parts: MirrorParts) -> None:
        self._parts = parts
        self._take_over = TakeOver(parts)

    def load(self) -> Leftovers:
        """Bring in what an earlier run left. Done again from the beginning where the store fails."""
        store, state = self._parts.client.store, self._parts.state
        store.recover(self._parts.context_id)
        generation = store.generation()
        left = self._entering()
        expired = tuple(item for item in left if item.expired)
        waiting = tuple(item.as_held() for item in left if not item.expired)
        self._store_as_held(left, waiting)
        with self._parts.manager.atomic():
            state.generation = generation
            state.known.update(item.uuid for item in expired)
        self._take_over.bring_in(waiting)
        return Leftovers(waiting, expired)

    def _entering(self) -> list[QueuedInput]:
        """What was left, without what the log holds (D12) and what may not enter."""
        with self._parts.manager.atomic():
            delivered = frozenset(self._parts.state.delivered)
        found = self._take_over.stored()
        self._parts.client.store.confirm([i.uuid for i in found if i.uuid in delivered])
        left = [item for item in found if item.uuid not in delivered]
        judged = [(item, self._parts.hooks.left_refusal(item)) for item in left]
        self._take_over.refuse((item, why) for item, why in judged if why)
        return [item for item, why in judged if not why]

    def _store_as_held(self, left: Sequence[QueuedInput], waiting: Sequence[QueuedInput]) -> None:
        """Only what was not: most were held before, and each write waits for the disk."""
        before = {item.uuid: item for item in left}
        sealed = [self._parts.hooks.sealed(item) for item in waiting]
        changed = [item for item in sealed if item.metadata != before[item.uuid].metadata]
        if changed:
            self._parts.client.store.replace_all(changed)
