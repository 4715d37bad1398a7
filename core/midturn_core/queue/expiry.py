"""``ExpiredInputs``: what waited longer than it may, kept until it is restored or discarded (D11)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import QueuedInput

LONGEST_PAUSE = 5.0
SHORTEST_PAUSE = 0.2
"""Seconds between two looks at the queue, besides the one before each delivery."""


class ExpiredInputs:
    """The expired inputs of one context, and the timer that looks for them. A queue listener."""

    def __init__(
        self, manager: MessageQueueManager, context_id: AgentRuntimeId, ttl_seconds: float
    ) -> None:
        self._manager = manager
        self._context_id = context_id
        self._ttl = ttl_seconds
        self._items: dict[str, QueuedInput] = {}
        self._told: Callable[[QueuedInput], None] = lambda item: None
        self._timer: asyncio.Task[None] | None = None

    def items(self) -> Sequence[QueuedInput]:
        """In the order in which they expired."""
        with self._manager.atomic():
            return tuple(self._items.values())

    def on_event(self, event: QueueEvent) -> None:
        """Called with the manager's lock held."""
        item = event.input
        expired = event.reason is QueueChangeReason.EXPIRED
        if event.change_type is not QueueChangeType.REMOVED or not expired:
            return
        if item.context_id == self._context_id:
            self._items[item.uuid] = item
            self._told(item)

    def bring_in(self, items: Iterable[QueuedInput]) -> None:
        """What had expired in an earlier run."""
        with self._manager.atomic():
            self._items = {**{item.uuid: item for item in items}, **self._items}

    def drop(self, uuid: str) -> None:
        """It was restored or discarded."""
        with self._manager.atomic():
            self._items.pop(uuid, None)

    def start(self, told: Callable[[QueuedInput], None]) -> None:
        """Look for expired inputs from now on, also while nothing is delivered. ``told`` hears of
        each, on any thread.
        """
        self._told = told
        if self._ttl and self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._timer
            self._timer = None

    async def _look(self) -> None:
        while True:
            self._manager.expire(self._context_id)
            await asyncio.sleep(min(max(self._ttl / 10, SHORTEST_PAUSE), LONGEST_PAUSE))
