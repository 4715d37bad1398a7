"""``WriteBehind``: repeats in the store what changes in memory, in order and without delay there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import assert_never

from midturn_core.errors import QueueStoreError
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.mirror_parts import MirrorParts
from midturn_core.queue.types import QueuedInput

_log = logging.getLogger(__name__)


class WriteBehind:
    """The way from one context of a manager to the store. A listener of the manager."""

    def __init__(self, parts: MirrorParts) -> None:
        self._parts = parts
        self._state = parts.state

    def on_event(self, event: QueueEvent) -> None:
        """Called with the manager's lock held."""
        item = event.input
        if self._state.taking_over or item.context_id != self._parts.context_id:
            return
        match event.change_type:
            case QueueChangeType.ENQUEUED:
                self.add(item)
            case QueueChangeType.DRAINED:
                self._state.leaving[item.uuid] = self._state.generation
            case QueueChangeType.REMOVED if event.reason is QueueChangeReason.EXPIRED:
                # It waits no more, and yet is in the store until it is restored or discarded (D11).
                self.rewrite(item.as_expired())
            case QueueChangeType.REMOVED:
                self.remove(item.uuid)
            case QueueChangeType.CHANGED if event.reason is QueueChangeReason.MOVED:
                before = self._next_in_tier(item)
                self._repeat(lambda: self._parts.client.store.move(item.uuid, before))
            case QueueChangeType.CHANGED:
                self.rewrite(item)
            case _:
                assert_never(event.change_type)

    def add(self, item: QueuedInput) -> None:
        """Store an input that is only in memory. With the manager's lock held."""
        self._state.known.add(item.uuid)
        self._state.unstored[item.uuid] = item
        self._repeat(partial(self.store_new, item))

    def rewrite(self, item: QueuedInput) -> None:
        """Store an input as it is now. With the manager's lock held."""
        if item.uuid in self._state.unstored:
            self._state.unstored[item.uuid] = item
        self._repeat(lambda: self._parts.client.store.replace(self._parts.hooks.sealed(item)))

    def remove(self, uuid: str) -> None:
        """Take an input out of the store. With the manager's lock held."""
        self._state.forget([uuid])
        self._repeat(lambda: self._parts.client.store.remove(uuid))

    def store_new(self, item: QueuedInput) -> None:
        """The same as a part of a job: at once, and without the lock."""
        self._parts.client.store.enqueue(self._parts.hooks.sealed(item))
        with self._parts.manager.atomic():
            self._state.unstored.pop(item.uuid, None)
        self._parts.hooks.stored()

    def _repeat(self, change: Callable[[], object]) -> None:
        """Make a change in the store as well. It answers False where somebody else was faster:
        then a look at the store brings the difference in.
        """

        def job() -> None:
            try:
                change()
            except QueueStoreError:
                raise  # it is tried again, so it is still on the way
            except Exception:
                # Isolation wall: one change that cannot be made must not keep all others out.
                _log.exception("a change of the queue could not be stored")
            with self._parts.manager.atomic():
                self._state.on_the_way -= 1

        self._state.on_the_way += 1
        self._parts.client.submit(job)

    def _next_in_tier(self, item: QueuedInput) -> str | None:
        tier = [
            other.uuid
            for other in self._parts.manager.snapshot(self._parts.context_id)
            if other.priority is item.priority
        ]
        behind = tier[tier.index(item.uuid) + 1 :]
        return behind[0] if behind else None
