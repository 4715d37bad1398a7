"""``RepositoryMirror``: the queue of a running session, kept in a shared store too (D7, D12).

The session works on its queue in memory, at once and under one lock; the mirror repeats every
change in the store, in order, on one worker thread, and brings in what others change there. So a
slow store never stalls the input line, and what is typed survives the program.

The one step that waits for the store is a delivery: ``claim`` tells which inputs are still there
to be delivered, because another process may have taken one out at the same moment. While the store
fails the session goes on from memory, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.leftovers import LeftoverLoader, Leftovers
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.mirror_parts import MirrorParts
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.store_client import StoreClient
from midturn_core.queue.store_follower import StoreFollower
from midturn_core.queue.store_link import StoreLink
from midturn_core.queue.store_worker import RETRY_PAUSES
from midturn_core.queue.types import QueuedInput, QueueFilter
from midturn_core.queue.write_behind import WriteBehind

CLOSE_SECONDS = 5.0
"""How long leaving waits for changes that are not stored yet."""


class RepositoryMirror:
    """Keeps one context of a manager and of a store in step.

    Args:
        open_store: opens the store; called on the worker, again while it raises
            ``QueueStoreError``.
        pauses: seconds before each new try of a store that failed.
    """

    def __init__(
        self,
        manager: MessageQueueManager,
        open_store: Callable[[], MessageQueueRepository],
        context_id: AgentRuntimeId,
        hooks: MirrorHooks,
        pauses: tuple[float, ...] = RETRY_PAUSES,
    ) -> None:
        link = StoreLink(open_store, context_id, self.sync)
        self._client = StoreClient(link, self.sync, hooks.trouble, pauses)
        self._parts = MirrorParts(manager, context_id, self._client, hooks)
        self._state = self._parts.state
        self._write_behind = WriteBehind(self._parts)
        self._follower = StoreFollower(self._parts, self._write_behind)

    @property
    def trouble(self) -> QueueStoreError | None:
        """Why the store cannot be used now; None while it can."""
        return self._client.trouble

    @property
    def unstored(self) -> tuple[QueuedInput, ...]:
        """Inputs whose text is in memory only, oldest first."""
        with self._parts.manager.atomic():
            return tuple(self._state.unstored.values())

    def start(self, delivered: frozenset[str] = frozenset()) -> asyncio.Future[Leftovers]:
        """Begin to repeat every change in the store, and bring in what an earlier run left there.

        ``delivered`` are the inputs that the session's log holds: a crash may have left them
        unconfirmed, and they are not delivered twice (D12). The answer comes when the store
        answers, however late, and never when the mirror is closed before.
        """
        manager = self._parts.manager
        with manager.atomic():
            self._state.delivered.update(delivered)
            answer = self._client.call(LeftoverLoader(self._parts).load)
            for item in manager.snapshot(self._parts.context_id):
                self._write_behind.add(item)
            manager.add_listener(self._write_behind)
        self._client.watch()
        return answer

    def discard(self, uuid: str) -> None:
        """Forget an expired input for good."""
        with self._parts.manager.atomic():
            self._write_behind.remove(uuid)

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        """Those of the drained ``items`` that are still to be delivered, in the same order.

        What another process took out of the store meanwhile is dropped. What was never stored,
        and everything while the store fails, counts.
        """
        shared = frozenset(item.uuid for item in items if item.uuid in self._state.known)
        if not shared:
            return list(items)
        ours = await self._client.ask(lambda: self._claim(shared), shared)
        with self._parts.manager.atomic():
            self._state.forget(shared - ours)
        return [item for item in items if item.uuid not in shared or item.uuid in ours]

    def confirm(self, uuids: Iterable[str]) -> None:
        """These inputs are in the session's log, or were carried out: forget them for good."""
        with self._parts.manager.atomic():
            shared = [uuid for uuid in uuids if uuid in self._state.known]
            self._state.delivered.update(shared)
        if shared:
            self._client.submit(partial(self._confirm, shared))

    def sync(self) -> None:
        """Look at the store soon; for whoever hears that something changed there. Thread-safe."""
        self._follower.look_soon()

    async def answered(self) -> bool:
        """Until the store has done all that it was given so far; False when it fails, or when one
        waits for it in vain for some seconds.
        """
        return await self._client.ask(lambda: True, False)

    async def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Let the store take what is on its way and let go of it; False when it hangs."""
        self._parts.manager.remove_listener(self._write_behind)
        return await self._client.close(seconds)

    def _claim(self, uuids: frozenset[str]) -> frozenset[str]:
        selection = QueueFilter(self._parts.context_id, exclude_held=False, uuids=uuids)
        store = self._client.store
        claimed = frozenset(item.uuid for item in store.claim(selection))
        generation = store.generation()
        with self._parts.manager.atomic():
            # A store that was started anew since the drain may have lost what nobody else has taken.
            drained_before = {u for u in uuids if self._state.leaving.get(u) != generation}
        return claimed | drained_before

    def _confirm(self, uuids: Sequence[str]) -> None:
        self._client.store.confirm(uuids)
        with self._parts.manager.atomic():
            self._state.forget(uuids)
