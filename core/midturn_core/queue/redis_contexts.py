"""Where things are on the Redis server: the keys of a context, and the indexes over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from midturn_core.errors import QueueFullError
from midturn_core.ids import new_id
from midturn_core.queue import redis_scripts as scripts
from midturn_core.queue.arrivals import tell_arrival
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.record import RecordError, context_key, from_record, to_record
from midturn_core.queue.redis_selection import encoded, tags_of
from midturn_core.queue.types import QueuedInput

if TYPE_CHECKING:
    from midturn_core.queue.redis_client import Argument, RedisClient

_DAY = 86_400.0
_BATCH = 1_000
_RECORDS = 100
"""How many inputs, each of any length, are sent at once."""


@dataclass(frozen=True, slots=True)
class Found:
    """A waiting input as it was when it was read."""

    context: str
    revision: str
    item: QueuedInput


class RedisContexts:
    """Runs the scripts on the keys of a context.

    Outside of the contexts, and so in other slots of a cluster, are only two indexes, which a
    crash may leave behind the truth without harm: ``contexts`` (a sorted set of those that were
    used, by time) and ``where`` (a hash: uuid -> "context arrival"). An entry of ``where`` goes
    only together with the arrival it was made for.
    """

    def __init__(self, client: RedisClient, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        self._listed: dict[str, float] = {}

    def run(self, script: str, context: str, *args: Argument) -> object:
        return self._client.script(script, self._keys(context), args)

    def answers(self, script: str, context: str, *args: Argument) -> list[bytes]:
        """The answer of a script that returns an array."""
        return cast(list[bytes], self.run(script, context, *args))

    def items(self, script: str, context: str, *args: Argument) -> list[QueuedInput]:
        """The answer of a script that returns records."""
        return [self._input(record) for record in self.answers(script, context, *args)]

    def enqueue(self, item: QueuedInput, run: str, cap: int) -> bool:
        """
        Raises:
            QueueFullError: so many wait in its context already; 0 is no cap.
        """
        context, arrival = context_key(item.context_id), new_id("arrival")
        known = self.context_of(item.uuid)
        if known is not None and known != context and self.get(known, item.uuid) is not None:
            return False
        self._list(context)
        uuid, place = encoded(item.uuid), f"{context} {arrival}"
        if known is None:
            self._client.command("HSET", self._key("where"), uuid, place)
        tags = tags_of(item, revision=arrival, arrival=arrival)
        words = (uuid, to_record(item), tags, self._key("arrivals"), run, cap)
        answer = self.run(scripts.ENQUEUE, context, *words)
        if answer == scripts.FULL:
            self._client.script(scripts.FORGET, [self._key("where")], [uuid, place])
            raise QueueFullError(cap)
        if answer and known is not None:
            self._client.command("HSET", self._key("where"), uuid, place)
        return bool(answer)

    def replace(self, context: str, run: str, items: Sequence[QueuedInput]) -> int:
        """How many of them were waiting."""
        replaced = 0
        for start in range(0, len(items), _RECORDS):
            words: list[Argument] = []
            for item in items[start : start + _RECORDS]:
                revision = new_id("revision")
                tags = tags_of(item, revision=revision, arrival=revision)
                words += [encoded(item.uuid), to_record(item), tags]
            replaced += cast(int, self.run(scripts.REPLACE, context, run, *words))
        return replaced

    def confirm(self, context: str, owner: str, uuids: Iterable[str]) -> None:
        names = [encoded(uuid) for uuid in uuids]
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            gone = self.answers(scripts.CONFIRM, context, owner, *batch)
            pairs = [
                word
                for uuid, arrival in zip(gone[::2], gone[1::2], strict=True)
                for word in (uuid, f"{context} {arrival.decode()}")
            ]
            if pairs:
                self._client.script(scripts.FORGET, [self._key("where")], pairs)

    def get(self, context: str, uuid: str) -> QueuedInput | None:
        record = self.run(scripts.GET, context, encoded(uuid))
        return None if record is None else self._input(cast(bytes, record))

    def select(self, context: str, wanted: bytes, limit: int = 0) -> list[Found]:
        answer = self.answers(scripts.SELECT, context, wanted, limit)
        return [
            Found(context, revision.decode(), self._input(record))
            for revision, record in zip(answer[::2], answer[1::2], strict=True)
        ]

    def size(self, context: str) -> int:
        return cast(int, self.run(scripts.SIZE, context))

    def context_of(self, uuid: str) -> str | None:
        """The context in which this uuid was last seen."""
        where = self._client.command("HGET", self._key("where"), encoded(uuid))
        return None if where is None else cast(bytes, where).decode().partition(" ")[0]

    def generation(self) -> str:
        return self._client.run_id()

    def contexts(self) -> list[str]:
        """All that may hold something."""
        self._drop_unused()
        names = self._client.command("ZRANGE", self._key("contexts"), 0, -1)
        return [name.decode() for name in cast(list[bytes], names)]

    def listen(self, run: str, listener: MessageQueueListener) -> Callable[[], None]:
        """Tell the listener what other runs enqueue."""

        def receive(message: bytes) -> None:
            origin, _, record = message.partition(b" ")
            if origin != run.encode():
                tell_arrival(listener, record)

        return self._client.listen(self._key("arrivals"), receive)

    def watch(self, context: str, run: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when other runs changed something in the context, and when the connection
        that tells it was lost or is there again.
        """

        def receive(message: bytes) -> None:
            if message != run.encode():
                changed()

        channel = f"{self.namespace}:{{{context}}}:changes"
        return self._client.listen(channel, receive, changed)

    def close(self) -> None:
        self._client.close()

    def _list(self, context: str) -> None:
        """Enter the context into the index, once a day at most."""
        now = time.time()
        if now - self._listed.get(context, 0.0) > _DAY:
            self._client.command("ZADD", self._key("contexts"), now, context)
            self._listed[context] = now

    def _drop_unused(self) -> None:
        """Contexts that were not entered for two days and hold nothing leave the index.

        Who uses a context enters it once a day, so none goes that is being filled now.
        """
        old = self._client.command(
            "ZRANGEBYSCORE", self._key("contexts"), "-inf", time.time() - 2 * _DAY
        )
        for name in cast(list[bytes], old):
            if not self._client.command("EXISTS", self._keys(name.decode())[0]):
                self._client.command("ZREM", self._key("contexts"), name)

    def _keys(self, context: str) -> list[str]:
        return [f"{self.namespace}:{{{context}}}:{name}" for name in scripts.KEY_NAMES]

    def _key(self, name: str) -> str:
        return f"{self.namespace}:{name}"

    def _input(self, record: bytes) -> QueuedInput:
        try:
            return from_record(record)
        except RecordError as error:
            raise self._client.damaged() from error
