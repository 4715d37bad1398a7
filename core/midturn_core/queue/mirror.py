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
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from functools import partial
from typing import TypeVar

from midturn_core.errors import QueueStoreError, QueueStoreGoneError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.mirror_hooks import MirrorHooks as MirrorHooks
from midturn_core.queue.outside import as_from_outside
from midturn_core.queue.reconcile import reconcile
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.store_link import StoreLink
from midturn_core.queue.store_worker import RETRY_PAUSES, StoreWorker
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

T = TypeVar("T")

_log = logging.getLogger(__name__)

CLAIM_SECONDS = 5.0
"""How long a delivery waits for a slow store; then it goes on from memory."""
CLOSE_SECONDS = 5.0
"""How long leaving waits for changes that are not stored yet."""


class RepositoryMirror:
    """Keeps one context of a manager and of a store in step. A listener of the manager.

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
        self._manager = manager
        self._link = StoreLink(open_store, context_id, self.sync)
        self._context_id = context_id
        self._hooks = hooks
        self._worker = StoreWorker(self._on_trouble, pauses)
        self._fall_backs: list[Callable[[], None]] = []
        self._importing = False
        self._generation = ""
        """Of the store, when it was last looked at."""
        self._delivered: set[str] = set()
        """What the log holds: a store that has lost the word of it may show it once more."""
        self._looking = False
        """A look at the store is in the line of jobs."""
        self._on_the_way = 0
        """Changes made here that the store does not have yet."""
        self._known: set[str] = set()
        """Inputs that are, or are about to be, in the store."""
        self._unstored: dict[str, QueuedInput] = {}
        self._leaving: set[str] = set()
        """Drained here; the store may still show them."""
        self.expired: tuple[QueuedInput, ...] = ()
        """What an earlier run let expire and nobody restored; known once ``start`` is done."""

    @property
    def trouble(self) -> QueueStoreError | None:
        return self._worker.trouble

    @property
    def unstored(self) -> tuple[QueuedInput, ...]:
        """Inputs whose text is in memory only, oldest first."""
        with self._manager.atomic():
            return tuple(self._unstored.values())

    async def start(self, delivered: frozenset[str] = frozenset()) -> list[QueuedInput]:
        """Bring in what an earlier run left, all of it held (D5), and begin to listen.

        ``delivered`` are the inputs that the session's log holds: a crash may have left them
        unconfirmed, and they are not delivered twice (D12). Returns the leftovers in delivery
        order; an empty list also when the store does not answer in time.
        """
        with self._manager.atomic():
            self._delivered.update(delivered)
            self._manager.add_listener(self)
            early = self._manager.snapshot(self._context_id)
            self._known.update(item.uuid for item in early)
            self._unstored.update((item.uuid, item) for item in early)
        nothing: list[QueuedInput] = []
        leftovers = await self._ask(lambda: self._load(delivered, early), nothing)
        self._submit(self._link.watch)
        return leftovers

    def on_event(self, event: QueueEvent) -> None:
        """Repeat a change in the store; called with the manager's lock held."""
        item = event.input
        if self._importing or item.context_id != self._context_id:
            return
        match event.change_type:
            case QueueChangeType.ENQUEUED:
                self._known.add(item.uuid)
                self._unstored[item.uuid] = item
                self._repeat(partial(self._enqueue, item))
            case QueueChangeType.DRAINED:
                self._leaving.add(item.uuid)
            case QueueChangeType.REMOVED if event.reason is QueueChangeReason.EXPIRED:
                self._put_by(item)
            case QueueChangeType.REMOVED:
                self._forget(item.uuid)
                self._repeat(lambda: self._store.remove(item.uuid))
            case QueueChangeType.CHANGED if event.reason is QueueChangeReason.MOVED:
                before = self._next_in_tier(item)
                self._repeat(lambda: self._store.move(item.uuid, before))
            case QueueChangeType.CHANGED:
                if item.uuid in self._unstored:
                    self._unstored[item.uuid] = item
                self._repeat(partial(self._write_again, item))

    def discard(self, uuid: str) -> None:
        """Forget an expired input for good."""
        with self._manager.atomic():
            self._forget(uuid)
            self._repeat(lambda: self._store.remove(uuid))

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        """Those of the drained ``items`` that are still to be delivered, in the same order.

        What another process took out of the store meanwhile is dropped. What was never stored,
        and everything while the store fails, counts.
        """
        shared = frozenset(item.uuid for item in items if item.uuid in self._known)
        if not shared:
            return list(items)
        ours = await self._ask(lambda: self._claim(shared), shared)
        return [item for item in items if item.uuid not in shared or item.uuid in ours]

    def confirm(self, uuids: Iterable[str]) -> None:
        """These inputs are in the session's log, or were carried out: forget them for good."""
        with self._manager.atomic():
            shared = [uuid for uuid in uuids if uuid in self._known]
            self._delivered.update(shared)
        if shared:
            self._submit(partial(self._confirm, shared))

    def sync(self) -> None:
        """Look at the store soon; for whoever hears that something changed there.

        Costs nothing while a look is due anyway.
        """
        with self._manager.atomic():
            if self._looking:
                return
            self._looking = True
        self._submit(self._import)

    async def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Let the store take what is on its way and let go of it; False when it did not."""
        self._manager.remove_listener(self)
        done = await asyncio.to_thread(self._worker.close, seconds)
        if done:
            await asyncio.to_thread(self._link.let_go)
        return done

    @property
    def _store(self) -> MessageQueueRepository:
        """For jobs only: it may have to be opened."""
        return self._link.store

    def _submit(self, job: Callable[[], None]) -> None:
        self._worker.submit(partial(self._run, job))

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except QueueStoreGoneError:
            self._link.let_go()
            self._submit(self._link.watch)
            self.sync()
            raise  # it is tried again, on a store that is opened anew

    async def _ask(self, find: Callable[[], T], otherwise: T) -> T:
        """What the worker finds; ``otherwise`` when the store fails or is too slow."""
        answer: Future[T] = Future()
        fall_back = partial(_settle, answer, otherwise)
        self._fall_backs.append(fall_back)
        self._submit(lambda: _settle(answer, find()))
        if self._worker.trouble is not None:
            fall_back()
        try:
            async with asyncio.timeout(CLAIM_SECONDS):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            _log.warning("the queue's store did not answer in %.0f s", CLAIM_SECONDS)
            return otherwise
        finally:
            self._fall_backs.remove(fall_back)

    def _on_trouble(self, error: QueueStoreError | None) -> None:
        if error is not None:
            for fall_back in tuple(self._fall_backs):
                fall_back()
        self._hooks.trouble(error)

    def _put_by(self, item: QueuedInput) -> None:
        """An expired input waits no more, and yet is in the store until it is restored or
        discarded (D11).
        """
        kept = item.as_expired()
        if item.uuid in self._unstored:
            self._unstored[item.uuid] = kept
        self._repeat(partial(self._write_again, kept))

    def _repeat(self, change: Callable[[], object]) -> None:
        """Make a change in the store as well. It answers False where somebody else was faster:
        then ``_import`` brings the difference in.
        """

        def job() -> None:
            try:
                change()
            except QueueStoreError:
                raise  # it is tried again, so it is still on the way
            except Exception:
                # Isolation wall: one change that cannot be made must not keep all others out.
                _log.exception("a change of the queue could not be stored")
            with self._manager.atomic():
                self._on_the_way -= 1

        self._on_the_way += 1
        self._submit(job)

    def _enqueue(self, item: QueuedInput) -> None:
        self._store.enqueue(self._hooks.sealed(item))
        with self._manager.atomic():
            self._unstored.pop(item.uuid, None)
        self._hooks.stored()

    def _claim(self, uuids: frozenset[str]) -> frozenset[str]:
        selection = QueueFilter(self._context_id, exclude_held=False, uuids=uuids)
        claimed = frozenset(item.uuid for item in self._store.claim(selection))
        # A store that was started anew may have lost what nobody else has taken.
        return claimed if self._store.generation() == self._generation else uuids

    def _confirm(self, uuids: Sequence[str]) -> None:
        self._store.confirm(uuids)
        with self._manager.atomic():
            for uuid in uuids:
                self._forget(uuid)

    def _forget(self, uuid: str) -> None:
        self._known.discard(uuid)
        self._unstored.pop(uuid, None)
        self._leaving.discard(uuid)

    def _load(self, delivered: frozenset[str], early: Sequence[QueuedInput]) -> list[QueuedInput]:
        self._store.recover(self._context_id)
        self._generation = self._store.generation()
        found = self._stored()
        self._store.confirm([item.uuid for item in found if item.uuid in delivered])
        found = [item for item in found if item.uuid not in delivered]
        refused = [(item, self._hooks.left_refusal(item)) for item in found]
        self._take_out([(item, why) for item, why in refused if why])
        left = [item for item, why in refused if not why]
        self.expired = tuple(item for item in left if item.expired)
        self._known.update(item.uuid for item in self.expired)
        waited = [item for item in left if not item.expired]
        leftovers = [item.as_held() for item in waited]
        for before, item in zip(waited, leftovers, strict=True):
            sealed = self._hooks.sealed(item)
            if sealed.metadata != before.metadata:  # most were held before; each write is a sync
                self._store.replace(sealed)
        self._bring_in(leftovers)
        for item in early:
            self._enqueue(item)
        return leftovers

    def _import(self) -> None:
        """Take over what others changed; once more when something of ours was on its way: then
        what was read is older than what is known here.
        """
        stored = self._look()
        with self._manager.atomic():
            if self._on_the_way:
                self.sync()
                return
            present = [
                item for item in stored if not item.expired and item.uuid not in self._leaving
            ]
            refused = [(item, why) for item in present if (why := self._why_not(item))]
            self._bring_in([self._wanted(item) for item in present if not self._why_not(item)])
        self._take_out(refused)

    def _why_not(self, item: QueuedInput) -> str:
        return "" if item.uuid in self._known else self._hooks.refusal(item)

    def _wanted(self, item: QueuedInput) -> QueuedInput:
        """What to take over of an input that may enter, or that is known here."""
        if item.uuid not in self._known:
            return as_from_outside(item)
        here = self._here(item.uuid)
        if here is None or here.input_text == item.input_text:
            return item
        if why := self._hooks.refusal(here):
            # A command that the user typed must not become another one.
            self._hooks.refused(item, why)
            self._repeat(partial(self._write_again, here))
            return replace(item, input_text=here.input_text)
        return item

    def _here(self, uuid: str) -> QueuedInput | None:
        return self._manager.peek(
            QueueFilter(self._context_id, exclude_held=False, uuids=frozenset({uuid}))
        )

    def _take_out(self, refused: Sequence[tuple[QueuedInput, str]]) -> None:
        for item, why in refused:
            self._store.remove(item.uuid)
            self._hooks.refused(item, why)

    def _bring_in(self, stored: Sequence[QueuedInput]) -> None:
        """Make the queue here equal to the store, without what the store does not have yet."""
        with self._manager.atomic():
            present = {item.uuid for item in stored}
            wanted = [
                *stored,
                *(
                    item
                    for item in self._manager.snapshot(self._context_id)
                    if item.uuid in self._unstored and item.uuid not in present
                ),
            ]
            self._importing = True
            try:
                arrived = reconcile(self._manager, self._context_id, wanted)
            finally:
                self._importing = False
            self._known.update(item.uuid for item in wanted)
        if arrived:
            self._hooks.arrived()

    def _write_again(self, item: QueuedInput) -> None:
        self._store.replace(self._hooks.sealed(item))

    def _look(self) -> list[QueuedInput]:
        with self._manager.atomic():
            self._looking = False  # what changes from now on needs another look
        try:
            self._put_back_lost()
            found = self._stored()
            if self._store.generation() != self._generation:
                return self._look()
            again = [item.uuid for item in found if item.uuid in self._delivered]
            if again:
                self._store.confirm(again)
            return [item for item in found if item.uuid not in self._delivered]
        except QueueStoreError:
            with self._manager.atomic():
                self._looking = True  # the job is tried again
            raise

    def _put_back_lost(self) -> None:
        """Store again what waits here, in the order it has here, when the store may have lost it."""
        if (generation := self._store.generation()) == self._generation:
            return
        found = {item.uuid for item in self._stored()}
        with self._manager.atomic():
            here = [
                item
                for item in self._manager.snapshot(self._context_id)
                if item.uuid in self._known
            ]
        lost = [item for item in here if item.uuid not in found]
        for item in lost:
            self._enqueue(item)
        for item in here if lost else ():
            self._store.move(item.uuid, None)
        self._generation = generation

    def _stored(self) -> list[QueuedInput]:
        everything = QueueFilter(self._context_id, exclude_held=False)
        return self._store.list_by_max_priority(QueuedInputPriority.LATER, everything)

    def _next_in_tier(self, item: QueuedInput) -> str | None:
        tier = [
            other.uuid
            for other in self._manager.snapshot(self._context_id)
            if other.priority is item.priority
        ]
        behind = tier[tier.index(item.uuid) + 1 :]
        return behind[0] if behind else None


def _settle(answer: Future[T], value: T) -> None:
    """Give the answer, unless there is one or nobody waits for it any more."""
    with contextlib.suppress(InvalidStateError):
        answer.set_result(value)
