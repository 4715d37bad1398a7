"""``SessionQueue``: what waits in one session, kept in the configured store as well."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from midturn_core.config import QueueConfig
from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.expiry import ExpiredInputs
from midturn_core.queue.listeners import LoggingMessageQueueListener
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import MirrorHooks, RepositoryMirror
from midturn_core.queue.open_store import store_opener
from midturn_core.queue.receipts import QueueReceipts
from midturn_core.queue.telemetry import configured_listener, sdk_is_installed
from midturn_core.queue.types import QueuedInput
from midturn_core.rewake import QueueRewakeService
from midturn_core.session.log import SessionLog


@dataclass(frozen=True, slots=True)
class QueueHooks:
    """Whom the queue tells, on the loop's thread."""

    warn: Callable[[str], None]
    arrived: Callable[[], None]
    """Inputs came from outside: an idle session can start with them."""
    expired: Callable[[QueuedInput], None] = lambda item: None
    """An input waited too long, and waits no more (D11)."""


class SessionQueue:
    """The queue of one session. Built on the loop's thread; implements ``Claims``.

    ``manager`` works in memory, at once; ``open`` connects it to the store.
    """

    def __init__(
        self, config: QueueConfig, context_id: AgentRuntimeId, log: SessionLog, store_file: Path
    ) -> None:
        self.manager = MessageQueueManager(InMemoryMessageQueueRepository(), config.cap, config.ttl)
        self.receipts = QueueReceipts(context_id)
        self.expired = ExpiredInputs(self.manager, context_id, config.ttl)
        for listener in (LoggingMessageQueueListener(), self.receipts, self.expired):
            self.manager.add_listener(listener)
        self._config = config
        self._context_id = context_id
        self._log = log
        self._store_file = store_file
        self._mirror: RepositoryMirror | None = None
        self.rewake = QueueRewakeService(self.manager, self._woken)
        self._wake: Callable[[], None] = lambda: None

    async def open(self, delivered: frozenset[str], hooks: QueueHooks) -> list[QueuedInput]:
        """Connect to the store; what an earlier run left there, all of it held (D5).

        ``delivered`` are the inputs that the session's log holds (D12). A store that cannot be
        used is told by ``hooks.warn``, and tried again for as long as the session lasts.
        """
        hop = partial(_hop, asyncio.get_running_loop())
        self._wake = partial(hop, hooks.arrived)
        self.expired.start(lambda item: hop(partial(hooks.expired, item)))
        if sdk_is_installed():
            self.manager.add_listener(await asyncio.to_thread(configured_listener))
        opener = store_opener(self._config, self._store_file)
        if opener is None:
            return []
        self._mirror = RepositoryMirror(
            self.manager, opener, self._context_id, self._on_loop(hooks)
        )
        leftovers = await self._mirror.start(delivered)
        self.expired.bring_in(self._mirror.expired)
        return leftovers

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        if self._mirror is None:
            return list(items)
        ours = await self._mirror.claim(items)
        self.receipts.taken_elsewhere({item.uuid for item in items} - {i.uuid for i in ours})
        return ours

    def restore(self, item: QueuedInput) -> None:
        """Let an expired input wait again, in its tier, under a uuid of its own.

        Raises:
            QueueFullError: the cap is reached; it is still among the expired ones (D11).
        """
        self.manager.enqueue(item.as_restored(datetime.now(UTC)))
        self.receipts.restored(item.uuid)
        self.discard(item)

    def discard(self, item: QueuedInput) -> None:
        """Forget an expired input for good."""
        self.expired.drop(item.uuid)
        if self._mirror is not None:
            self._mirror.discard(item.uuid)

    def confirm(self, uuids: Iterable[str]) -> None:
        # What the disk refused is in the log only when it accepts again: until then the store
        # keeps it, and whoever resumes the session finds out which of the two has it.
        if self._mirror is not None and not self._log.unsaved:
            self._mirror.confirm(uuids)

    @property
    def unstored(self) -> frozenset[str]:
        """The uuids of what waits only in memory because the store fails."""
        if self._mirror is None or self._mirror.trouble is None:
            return frozenset()
        return frozenset(item.uuid for item in self._mirror.unstored)

    @property
    def kept(self) -> bool:
        """Whether what waits now is still there after the program has ended."""
        return self._mirror is not None and not self.unstored

    async def close(self) -> None:
        self.rewake.close()
        await self.expired.close()
        if self._mirror is not None:
            await self._mirror.close()

    def _woken(self) -> None:
        self._wake()

    def _on_loop(self, hooks: QueueHooks) -> MirrorHooks:
        hop = partial(_hop, asyncio.get_running_loop())
        return MirrorHooks(
            trouble=lambda error: hop(lambda: hooks.warn(_trouble(error))),
            arrived=lambda: hop(hooks.arrived),
            refusal=self._refusal,
            refused=lambda item, why: hop(lambda: hooks.warn(_refused(item, why))),
        )

    def _refusal(self, item: QueuedInput) -> str:
        if item.is_prompt or self._config.remote_commands:
            return ""
        return "commands and ! lines may not come from outside (queue.remote_commands)"


def _hop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    # A loop that is closed has nobody left who wants to know.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _trouble(error: QueueStoreError | None) -> str:
    if error is None:
        return "The queue is stored again; nothing is missing."
    return f"What you queue is kept in memory only: {error}."


def _refused(item: QueuedInput, why: str) -> str:
    return f"Not taken from outside: {item.input_text!r}: {why}."
