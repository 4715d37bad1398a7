"""The repository of one process: nothing survives it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority, QueueFilter


@dataclass(slots=True)
class _Entry:
    sequence: int
    item: QueuedInput
    claimed: bool = False


# An OrderedDict, because taking the first key of a plain dict over and over is quadratic.
_Tier: TypeAlias = OrderedDict[str, _Entry]
_Tiers: TypeAlias = dict[QueuedInputPriority, _Tier]


class InMemoryMessageQueueRepository:
    """One ordered map per context and tier: a change costs no more for a long queue.

    A ``QueueFilter`` looks only at its own context and tiers; any other predicate looks at all.
    Its one owner dies with everything in it, so there is never anything to recover.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[AgentRuntimeId, _Tiers] = {}
        self._by_uuid: dict[str, _Entry] = {}
        self._waiting: Counter[AgentRuntimeId] = Counter()
        self._sequence = itertools.count()

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        with self._lock:
            if item.uuid in self._by_uuid:
                return False
            if 0 < cap <= self._waiting[item.context_id]:
                raise QueueFullError(cap)
            self._append(item)
            return True

    def dequeue(self, predicate: Predicate) -> QueuedInput | None:
        with self._lock:
            entry = next(self._matching(predicate), None)
            return None if entry is None else self._take(entry)

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        with self._lock:
            entry = next(self._matching(predicate), None)
            return None if entry is None else entry.item

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        with self._lock:
            return [entry.item for entry in self._matching(predicate, max_priority)]

    def drain(self, predicate: Predicate) -> list[QueuedInput]:
        with self._lock:
            return [self._take(entry) for entry in list(self._matching(predicate))]

    def claim(self, predicate: Predicate) -> list[QueuedInput]:
        with self._lock:
            entries = list(self._matching(predicate))
            for entry in entries:
                self._set_claimed(entry, True)
            return [entry.item for entry in entries]

    def confirm(self, uuids: Iterable[str]) -> None:
        with self._lock:
            for uuid in uuids:
                entry = self._by_uuid.get(uuid)
                if entry is not None:
                    self._take(entry)

    def unclaim(self, uuids: Iterable[str]) -> None:
        with self._lock:
            for uuid in uuids:
                entry = self._by_uuid.get(uuid)
                if entry is not None:
                    self._set_claimed(entry, False)

    def recover(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        return []

    def get(self, uuid: str) -> QueuedInput | None:
        with self._lock:
            entry = self._find(uuid)
            return None if entry is None else entry.item

    def remove(self, uuid: str) -> bool:
        with self._lock:
            entry = self._find(uuid)
            if entry is None:
                return False
            self._take(entry)
            return True

    def replace(self, item: QueuedInput) -> bool:
        with self._lock:
            return self._replace(item)

    def replace_all(self, items: Sequence[QueuedInput]) -> int:
        with self._lock:
            return sum(self._replace(item) for item in items)

    def move(self, uuid: str, before: str | None) -> bool:
        with self._lock:
            entry = self._find(uuid)
            if entry is None:
                return False
            tier = self._contexts[entry.item.context_id][entry.item.priority]
            if before is not None:
                target = tier.get(before)
                if target is None or target.claimed or target is entry:
                    return False
            self._reorder(tier, uuid, before)
            return True

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        with self._lock:
            return self._waiting.total() if context_id is None else self._waiting[context_id]

    def generation(self) -> str:
        return ""

    def contexts(self) -> list[AgentRuntimeId]:
        with self._lock:
            return [
                context
                for context, tiers in self._contexts.items()
                if any(map(len, tiers.values()))
            ]

    def watch(self, context_id: AgentRuntimeId, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        return lambda: None

    def close(self) -> None:
        with self._lock:
            for entry in self._by_uuid.values():
                self._set_claimed(entry, False)

    def _replace(self, item: QueuedInput) -> bool:
        entry = self._find(item.uuid)
        if entry is None or entry.item.context_id != item.context_id:
            return False
        if entry.item.priority == item.priority:
            entry.item = item
        else:
            self._take(entry)
            self._append(item)
        return True

    def _append(self, item: QueuedInput) -> None:
        tiers = self._contexts.setdefault(item.context_id, {})
        tier = tiers.setdefault(item.priority, OrderedDict())
        entry = _Entry(next(self._sequence), item)
        tier[item.uuid] = entry
        self._by_uuid[item.uuid] = entry
        self._waiting[item.context_id] += 1

    def _find(self, uuid: str) -> _Entry | None:
        entry = self._by_uuid.get(uuid)
        return None if entry is None or entry.claimed else entry

    def _set_claimed(self, entry: _Entry, claimed: bool) -> None:
        self._waiting[entry.item.context_id] += entry.claimed - claimed
        entry.claimed = claimed

    def _take(self, entry: _Entry) -> QueuedInput:
        item = entry.item
        if not entry.claimed:
            self._waiting[item.context_id] -= 1
        del self._by_uuid[item.uuid]
        tiers = self._contexts[item.context_id]
        del tiers[item.priority][item.uuid]
        if not tiers[item.priority]:
            del tiers[item.priority]
        if not tiers:
            del self._contexts[item.context_id]
            del self._waiting[item.context_id]
        return item

    def _matching(
        self, predicate: Predicate, max_priority: QueuedInputPriority = QueuedInputPriority.LATER
    ) -> Iterator[_Entry]:
        takes_all = False
        if isinstance(predicate, QueueFilter):
            max_priority = min(max_priority, predicate.max_priority)
            takes_all = predicate.takes_all
        for priority in QueuedInputPriority:
            if priority <= max_priority:
                yield from (
                    entry
                    for entry in self._entries(priority, predicate)
                    if not entry.claimed and (takes_all or predicate(entry.item))
                )

    def _entries(self, priority: QueuedInputPriority, predicate: Predicate) -> Iterator[_Entry]:
        if isinstance(predicate, QueueFilter):
            yield from self._tier(predicate.context_id, priority)
            return
        entries = [
            entry for context_id in self._contexts for entry in self._tier(context_id, priority)
        ]
        yield from sorted(entries, key=lambda entry: entry.sequence)

    def _tier(self, context_id: AgentRuntimeId, priority: QueuedInputPriority) -> Iterable[_Entry]:
        tier = self._contexts.get(context_id, {}).get(priority)
        return () if tier is None else tier.values()

    @staticmethod
    def _reorder(tier: _Tier, uuid: str, before: str | None) -> None:
        """Change the order; the tier as a whole keeps its sequence numbers."""
        sequences = [entry.sequence for entry in tier.values()]
        order = [key for key in tier if key != uuid]
        order.insert(len(order) if before is None else order.index(before), uuid)
        for key, sequence in zip(order, sequences, strict=True):
            tier[key].sequence = sequence
            tier.move_to_end(key)
