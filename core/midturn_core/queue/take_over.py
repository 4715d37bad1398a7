"""``TakeOver``: makes what waits in memory equal to what is in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from midturn_core.queue.mirror_parts import MirrorParts
from midturn_core.queue.reconcile import reconcile
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter


class TakeOver:
    """Of one context. Everything is part of a job of the store's client."""

    def __init__(self, parts: MirrorParts) -> None:
        self._parts = parts

    def stored(self) -> list[QueuedInput]:
        """All that waits in the store, expired inputs too, in delivery order."""
        everything = QueueFilter(self._parts.context_id, exclude_held=False)
        return self._parts.client.store.list_by_max_priority(QueuedInputPriority.LATER, everything)

    def bring_in(self, stored: Sequence[QueuedInput]) -> None:
        """Make the queue equal to these, and keep what the store does not have yet."""
        manager, state = self._parts.manager, self._parts.state
        with manager.atomic():
            present = {item.uuid for item in stored}
            here = manager.snapshot(self._parts.context_id)
            unstored = [
                item for item in here if item.uuid in state.unstored and item.uuid not in present
            ]
            state.taking_over = True
            try:
                arrived = reconcile(manager, self._parts.context_id, [*stored, *unstored])
            finally:
                state.taking_over = False
            state.known.update(present)
        if arrived:
            self._parts.hooks.arrived()

    def refuse(self, refused: Iterable[tuple[QueuedInput, str]]) -> None:
        """Take inputs out of the store that may not enter, each for its reason."""
        for item, why in refused:
            self._parts.client.store.remove(item.uuid)
            self._parts.hooks.refused(item, why)
