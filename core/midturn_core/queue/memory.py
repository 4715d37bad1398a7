"""The repository of one process: nothing survives it."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority, QueueFilter


@dataclass(slots=True)
class _Entry:
    sequence: int
    item: QueuedInput


# An OrderedDict, because taking the first key of a plain dict over and over is quadratic.
_Tier: TypeAlias = OrderedDict[str, _Entry]
_Tiers: TypeAlias = dict[QueuedInputPriority, _Tier]


class InMemoryMessageQueueRepository:
    """One ordered map per context and tier: a change costs no more for a long queue.

    A ``QueueFilter`` looks only at its own context and tiers; any other predicate looks at all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[AgentRuntimeId, _Tiers] = {}
        self._by_uuid: dict[str, QueuedInput] = {}
        self._sequence = itertools.count()

    def enqueue(self, item: QueuedInput) -> bool:
        with self._lock:
            if item.uuid in self._by_uuid:
                return False
            self._append(item)
            return True

    def dequeue(self, predicate: Predicate) -> QueuedInput | None:
        with self._lock:
            item = next(self._matching(predicate), None)
            if item is not None:
                self._take(item.uuid)
            return item

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        with self._lock:
            return next(self._matching(predicate), None)

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        with self._lock:
            return list(self._matching(predicate, max_priority))

    def drain(self, predicate: Predicate) -> list[QueuedInput]:
        with self._lock:
            items = list(self._matching(predicate))
            for item in items:
                self._take(item.uuid)
            return items

    def get(self, uuid: str) -> QueuedInput | None:
        with self._lock:
            return self._by_uuid.get(uuid)

    def remove(self, uuid: str) -> bool:
        with self._lock:
            return self._take(uuid) is not None

    def replace(self, item: QueuedInput) -> bool:
        with self._lock:
            known = self._by_uuid.get(item.uuid)
            if known is None or known.context_id != item.context_id:
                return False
            if known.priority == item.priority:
                self._contexts[item.context_id][item.priority][item.uuid].item = item
                self._by_uuid[item.uuid] = item
            else:
                self._take(item.uuid)
                self._append(item)
            return True

    def move(self, uuid: str, before: str | None) -> bool:
        with self._lock:
            item = self._by_uuid.get(uuid)
            if item is None:
                return False
            tier = self._contexts[item.context_id][item.priority]
            if before is not None and (before not in tier or before == uuid):
                return False
            self._reorder(tier, uuid, before)
            return True

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        with self._lock:
            if context_id is None:
                return len(self._by_uuid)
            return sum(len(tier) for tier in self._contexts.get(context_id, {}).values())

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        return lambda: None

    def _append(self, item: QueuedInput) -> None:
        tiers = self._contexts.setdefault(item.context_id, {})
        tier = tiers.setdefault(item.priority, OrderedDict())
        tier[item.uuid] = _Entry(next(self._sequence), item)
        self._by_uuid[item.uuid] = item

    def _take(self, uuid: str) -> QueuedInput | None:
        item = self._by_uuid.pop(uuid, None)
        if item is not None:
            tiers = self._contexts[item.context_id]
            del tiers[item.priority][uuid]
            if not tiers[item.priority]:
                del tiers[item.priority]
            if not tiers:
                del self._contexts[item.context_id]
        return item

    def _matching(
        self, predicate: Predicate, max_priority: QueuedInputPriority = QueuedInputPriority.LATER
    ) -> Iterator[QueuedInput]:
        for priority in QueuedInputPriority:
            if priority <= max_priority:
                yield from (
                    entry.item
                    for entry in self._entries(priority, predicate)
                    if predicate(entry.item)
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
