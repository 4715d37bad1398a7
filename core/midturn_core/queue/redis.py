"""The repository of several machines: a Redis server, one Lua script per operation."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.queue import redis_scripts as scripts
from midturn_core.queue.claim_owner import ClaimOwner, OwnerState
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.record import context_from_key, context_key
from midturn_core.queue.redis_contexts import Found, RedisContexts
from midturn_core.queue.redis_selection import (
    encoded,
    everything,
    named,
    selection_of,
    unchanged,
)
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority, QueueFilter

NAMESPACE = "midturn:queue"
REPLY_SECONDS = 5.0
LEASE_SECONDS = 600.0


def open_redis_repository(
    url: str,
    *,
    namespace: str = NAMESPACE,
    owner: ClaimOwner | None = None,
    lease_seconds: float = LEASE_SECONDS,
    reply_seconds: float = REPLY_SECONDS,
) -> RedisMessageQueueRepository:
    """A repository on a server; it connects at first use.

    Args:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``, with user and password.
        namespace: what all keys begin with.
        owner: this run of the program. One with a folder lets another run on this machine see
            at once that it died; anybody else waits for the lease.
        lease_seconds: after that long a claim counts as a dead owner's, unless it is known to
            live on this machine. Between a claim and its confirmation are milliseconds.
        reply_seconds: how long the server may stay silent.

    Raises:
        QueueStoreError: the address cannot be understood, or redis-py is not installed.
    """
    # Imported here: it costs start-up time, and it is an extra.
    try:
        from midturn_core.queue.redis_client import connect
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise QueueStoreError(
            "the Python package redis is not installed",
            where="Redis",
            way_out="install it with: pip install 'midturn[redis]'",
        ) from error
    run = ClaimOwner(None) if owner is None else owner
    store = RedisContexts(connect(url, reply_seconds), namespace)
    return RedisMessageQueueRepository(store, run, round(lease_seconds * 1000))


class RedisMessageQueueRepository:
    """The keys of a context share a hash tag; only two small indexes are outside of it.

    Whatever takes an input out is a claim first, so that an answer that is lost on its way loses
    no input: the claim is repeated by its token, or given up at the next call. A callable
    predicate is evaluated here, and takes exactly what has not changed meanwhile (D8).
    """

    def __init__(self, store: RedisContexts, owner: ClaimOwner, lease_ms: int) -> None:
        self._store = store
        self._owner = owner
        self._lease_ms = lease_ms
        self._lock = threading.Lock()
        self._claimed: dict[str, str] = {}
        self._owed: deque[Callable[[], object]] = deque()
        self._settling = threading.Lock()
        self._subscriptions: list[Callable[[], None]] = []

    @property
    def namespace(self) -> str:
        """What all its keys begin with."""
        return self._store.namespace

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        self._settle()
        return self._store.enqueue(item, self._owner.token, cap)

    def dequeue(self, predicate: Predicate) -> QueuedInput | None:
        return next(iter(self._take(predicate, limit=1)), None)

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        found = self._found(predicate, QueuedInputPriority.LATER, limit=1)
        return found[0].item if found else None

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        return [found.item for found in self._found(predicate, max_priority)]

    def drain(self, predicate: Predicate) -> list[QueuedInput]:
        return self._take(predicate)

    def claim(self, predicate: Predicate) -> list[QueuedInput]:
        self._settle()
        self._announce()
        items = [item for _, item in self._claims(predicate)]
        with self._lock:
            self._claimed.update((item.uuid, context_key(item.context_id)) for item in items)
        return items

    def confirm(self, uuids: Iterable[str]) -> None:
        self._settle()
        for context, known in self._by_context(uuids).items():
            self._store.confirm(context, self._owner.token, known)
            self._no_longer_claimed(known)

    def unclaim(self, uuids: Iterable[str]) -> None:
        self._settle()
        for context, known in self._by_context(uuids).items():
            self._store.run(
                scripts.UNCLAIM, context, self._owner.token, *(encoded(uuid) for uuid in known)
            )
            self._no_longer_claimed(known)

    def recover(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        self._settle()
        context = context_key(context_id)
        owners = [bytes(owner).decode() for owner in self._store.answers(scripts.OWNERS, context)]
        dead = [owner for owner in owners if self._owner.state_of(owner) is OwnerState.DEAD]
        return self._store.items(scripts.RECOVER, context, self._owner.token, *dead)

    def get(self, uuid: str) -> QueuedInput | None:
        self._settle()
        context = self._store.context_of(uuid)
        return None if context is None else self._store.get(context, uuid)

    def remove(self, uuid: str) -> bool:
        self._settle()
        context = self._store.context_of(uuid)
        if context is None:
            return False
        claimed = self._claim(context, named(uuid), limit=1)
        self._finish(context, claimed)
        return bool(claimed)

    def replace(self, item: QueuedInput) -> bool:
        return self.replace_all([item]) > 0

    def replace_all(self, items: Sequence[QueuedInput]) -> int:
        self._settle()
        by_context: dict[str, list[QueuedInput]] = {}
        for item in items:
            by_context.setdefault(context_key(item.context_id), []).append(item)
        return sum(
            self._store.replace(context, self._owner.token, some)
            for context, some in by_context.items()
        )

    def move(self, uuid: str, before: str | None) -> bool:
        self._settle()
        context = self._store.context_of(uuid)
        target = b"" if before is None else encoded(before)
        if context is None or before == "":
            return False
        return bool(
            self._store.run(scripts.MOVE, context, encoded(uuid), target, self._owner.token)
        )

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        self._settle()
        contexts = self._store.contexts() if context_id is None else [context_key(context_id)]
        return sum(self._store.size(context) for context in contexts)

    def generation(self) -> str:
        return self._store.generation()

    def contexts(self) -> list[AgentRuntimeId]:
        self._settle()
        return [context_from_key(context) for context in self._store.contexts()]

    def watch(self, context_id: AgentRuntimeId, changed: Callable[[], None]) -> Callable[[], None]:
        """As the protocol says; what is changed through this object is not told."""
        stop = self._store.watch(context_key(context_id), self._owner.token, changed)
        self._subscriptions.append(stop)
        return stop

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        stop = self._store.listen(self._owner.token, listener)
        self._subscriptions.append(stop)
        return stop

    def close(self) -> None:
        for stop in self._subscriptions:
            stop()
        try:
            self.unclaim(list(self._claimed))
        finally:
            self._owner.close()
            self._store.close()

    def _announce(self) -> None:
        try:
            self._owner.announce()
        except OSError as error:
            raise QueueStoreError(
                error.strerror or str(error),
                where=str(error.filename),
                way_out="make the folder writable",
            ) from error

    def _take(self, predicate: Predicate, limit: int = 0) -> list[QueuedInput]:
        """Claim and confirm at once."""
        self._settle()
        claimed = self._claims(predicate, limit)
        for context, items in _grouped(claimed).items():
            self._finish(context, items)
        return [item for _, item in claimed]

    def _claims(self, predicate: Predicate, limit: int = 0) -> list[tuple[str, QueuedInput]]:
        if isinstance(predicate, QueueFilter):
            context = context_key(predicate.context_id)
            wanted = selection_of(predicate, predicate.max_priority)
            return [(context, item) for item in self._claim(context, wanted, limit)]
        found = self._found(predicate, QueuedInputPriority.LATER)
        if limit:
            return self._first_claim(found)
        claimed: dict[str, QueuedInput] = {}
        for context in dict.fromkeys(each.context for each in found):
            wanted = unchanged(
                {each.item.uuid: each.revision for each in found if each.context == context}
            )
            claimed.update((item.uuid, item) for item in self._claim(context, wanted))
        return [
            (each.context, claimed[each.item.uuid]) for each in found if each.item.uuid in claimed
        ]

    def _first_claim(self, found: Sequence[Found]) -> list[tuple[str, QueuedInput]]:
        for each in found:
            claimed = self._claim(each.context, unchanged({each.item.uuid: each.revision}))
            if claimed:
                return [(each.context, claimed[0])]
        return []

    def _claim(self, context: str, wanted: bytes, limit: int = 0) -> list[QueuedInput]:
        token = new_id("claim")
        try:
            return self._store.items(
                scripts.CLAIM, context, wanted, limit, self._owner.token, token, self._lease_ms
            )
        except BaseException:
            # The server may have carried it out: what it took must not stay taken.
            self._owed.append(
                lambda: self._store.run(scripts.ABANDON, context, token, self._owner.token)
            )
            raise

    def _finish(self, context: str, items: Iterable[QueuedInput]) -> None:
        """Confirm what is being handed out, now or, when the server is away, at the next call."""
        uuids = [item.uuid for item in items]
        owner = self._owner.token
        self._owed.append(lambda: self._store.confirm(context, owner, uuids))
        with contextlib.suppress(QueueStoreError):
            self._settle()

    def _settle(self) -> None:
        """Do first what an earlier call could not finish."""
        if not self._owed:
            return
        with self._settling:
            while self._owed:
                self._owed[0]()
                self._owed.popleft()

    def _found(
        self, predicate: Predicate, max_priority: QueuedInputPriority, limit: int = 0
    ) -> list[Found]:
        self._settle()
        if isinstance(predicate, QueueFilter):
            wanted = selection_of(predicate, max_priority)
            return self._store.select(context_key(predicate.context_id), wanted, limit)
        found = [
            each
            for context in self._store.contexts()
            for each in self._store.select(context, everything(max_priority))
            if predicate(each.item)
        ]
        return sorted(found, key=lambda each: each.item.priority)

    def _by_context(self, uuids: Iterable[str]) -> dict[str, list[str]]:
        grouped: dict[str, list[str]] = {}
        for uuid in uuids:
            context = self._claimed.get(uuid) or self._store.context_of(uuid)
            if context is not None:
                grouped.setdefault(context, []).append(uuid)
        return grouped

    def _no_longer_claimed(self, uuids: Iterable[str]) -> None:
        with self._lock:
            for uuid in uuids:
                self._claimed.pop(uuid, None)


def _grouped(claimed: Iterable[tuple[str, QueuedInput]]) -> dict[str, list[QueuedInput]]:
    grouped: dict[str, list[QueuedInput]] = {}
    for context, item in claimed:
        grouped.setdefault(context, []).append(item)
    return grouped
