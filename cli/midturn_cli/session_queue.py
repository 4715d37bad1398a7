"""``SessionQueue``: what waits in one session, kept in the configured store as well."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from midturn_core.config import QueueConfig
from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeType, QueueEvent
from midturn_core.queue.expiry import ExpiredInputs
from midturn_core.queue.leftovers import Leftovers
from midturn_core.queue.listeners import LoggingMessageQueueListener
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.open_store import store_opener
from midturn_core.queue.receipts import QueueReceipts
from midturn_core.queue.rewake import QueueRewakeService
from midturn_core.queue.telemetry import configured_listener, sdk_is_installed
from midturn_core.queue.types import KIND_KEY, QueuedInput
from midturn_core.session.store import Session

SEAL_KEY = "seal"
"""Metadata tag that proves a waiting command to be of this session's own."""


@dataclass(frozen=True, slots=True)
class QueueHooks:
    """Whom the queue tells, on the loop's thread."""

    warn: Callable[[str], None]
    arrived: Callable[[], None]
    """Inputs came from outside: an idle session can start with them."""
    expired: Callable[[QueuedInput], None] = lambda item: None
    """An input waited too long, and waits no more (D11)."""
    stored: Callable[[], None] = lambda: None
    """What ``unstored`` says has changed."""


class SessionQueue:
    """The queue of one session. Built on the loop's thread; implements ``Claims``.

    ``manager`` works in memory, at once; ``open`` connects it to the store.
    """

    def __init__(
        self, config: QueueConfig, context_id: AgentRuntimeId, session: Session, store_file: Path
    ) -> None:
        self.manager = MessageQueueManager(InMemoryMessageQueueRepository(), config.cap, config.ttl)
        self.receipts = QueueReceipts(context_id)
        self.expired = ExpiredInputs(self.manager, context_id, config.ttl)
        keep = _KeepSession(session, context_id)
        for listener in (LoggingMessageQueueListener(), self.receipts, self.expired, keep):
            self.manager.add_listener(listener)
        self._config = config
        self._context_id = context_id
        self._session = session
        self._store_file = store_file
        self._mirror: RepositoryMirror | None = None
        self._loading: asyncio.Future[Leftovers] | None = None
        self.rewake = QueueRewakeService(self.manager, self._woken)
        self._wake: Callable[[], None] = lambda: None

    async def open(self, delivered: frozenset[str], hooks: QueueHooks) -> None:
        """Connect to the store, without waiting for it.

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
            return
        self._mirror = RepositoryMirror(
            self.manager, opener, self._context_id, self._on_loop(hooks)
        )
        self._loading = self._mirror.start(delivered)

    async def leftovers(self) -> Sequence[QueuedInput]:
        """What an earlier run left in the store, all of it held (D5): when the store has told, however
        late. Once ``open`` is done.
        """
        if self._loading is None:
            return ()
        found = await asyncio.shield(self._loading)
        self.expired.bring_in(found.expired)
        return found.waiting

    async def answered(self) -> bool:
        """Until the store has told what an earlier run left; False when that may take long."""
        return self._mirror is None or await self._mirror.answered()

    def look(self) -> None:
        """Take over soon what others changed in the store."""
        if self._mirror is not None:
            self._mirror.sync()

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
        if self._mirror is not None and not self._session.log.unsaved:
            self._mirror.confirm(uuids)

    @property
    def unstored(self) -> frozenset[str]:
        """The uuids of what waits only in memory: on its way to the store, or, while ``fails``,
        for as long as that lasts.
        """
        if self._mirror is None:
            return frozenset()
        return frozenset(item.uuid for item in self._mirror.unstored)

    @property
    def fails(self) -> bool:
        """Whether the store cannot be used now."""
        return self._mirror is not None and self._mirror.trouble is not None

    def lost_at_end(self, items: Iterable[QueuedInput]) -> list[QueuedInput]:
        """Those that are nowhere once the program has ended."""
        unstored = self.unstored
        return [item for item in items if self._mirror is None or item.uuid in unstored]

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
            trouble=lambda error: hop(lambda: _tell_trouble(hooks, error)),
            arrived=lambda: hop(hooks.arrived),
            refusal=self._refusal,
            refused=lambda item, why: hop(lambda: hooks.warn(_refused(item, why))),
            stored=lambda: hop(hooks.stored),
            sealed=self._sealed,
            left_refusal=self._left_refusal,
        )

    def _refusal(self, item: QueuedInput) -> str:
        if item.is_prompt:
            return ""
        if item.metadata.get(KIND_KEY) not in _KINDS:
            return "it is of no kind that this Midturn knows"
        return "" if self._config.remote_commands else NO_COMMANDS

    def _left_refusal(self, item: QueuedInput) -> str:
        """A command that waits since an earlier run may only be one that was typed there."""
        seal = item.metadata.get(SEAL_KEY, "")
        own = hmac.compare_digest(seal.encode("utf-8", "surrogatepass"), self._seal(item).encode())
        return "" if own else self._refusal(item)

    def _sealed(self, item: QueuedInput) -> QueuedInput:
        if item.is_prompt:
            return item
        return replace(item, metadata={**item.metadata, SEAL_KEY: self._seal(item)})

    def _seal(self, item: QueuedInput) -> str:
        words = (item.uuid, item.metadata.get(KIND_KEY, ""), item.input_text)
        content = "\0".join(words).encode("utf-8", "surrogatepass")
        return hmac.new(self._session.head.nonce.encode(), content, hashlib.sha256).hexdigest()


class _KeepSession:
    """Makes a session that can be resumed as soon as something waits in its queue."""

    def __init__(self, session: Session, context_id: AgentRuntimeId) -> None:
        self._session = session
        self._context_id = context_id

    def on_event(self, event: QueueEvent) -> None:
        if (
            event.change_type is QueueChangeType.ENQUEUED
            and event.input.context_id == self._context_id
        ):
            self._session.keep()


_KINDS = frozenset({"command", "shell", "immediate"})
NO_COMMANDS = (
    "commands and ! lines may not come from outside; [queue] remote_commands = true allows them"
)


def _tell_trouble(hooks: QueueHooks, error: QueueStoreError | None) -> None:
    hooks.warn(_trouble(error))
    hooks.stored()


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
