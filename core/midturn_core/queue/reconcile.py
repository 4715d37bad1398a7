"""Making one queue equal to what a shared store says, with as few changes as that takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import QueuedInput, QueuedInputPriority


def reconcile(
    manager: MessageQueueManager, context_id: AgentRuntimeId, stored: Sequence[QueuedInput]
) -> list[QueuedInput]:
    """Add, remove, change and reorder until the context's queue is ``stored``, which is in
    delivery order; each change tells the listeners. Returns what was added.

    The cap does not count here: what is in the store was accepted by whoever put it there.
    """
    with manager.atomic():
        known = {item.uuid: item for item in manager.snapshot(context_id)}
        wanted = {item.uuid for item in stored}
        for uuid in known:
            if uuid not in wanted:
                manager.remove(uuid)
        added = [item for item in stored if item.uuid not in known]
        for item in added:
            manager.enqueue(item, capped=False)
        for item in stored:
            if item.uuid in known:
                _change(manager, known[item.uuid], item)
        for priority in QueuedInputPriority:
            _reorder(manager, context_id, [i.uuid for i in stored if i.priority is priority])
        return added


def _change(manager: MessageQueueManager, here: QueuedInput, stored: QueuedInput) -> None:
    if stored.priority is not here.priority:
        manager.reprioritise(here.uuid, stored.priority)
    if stored.input_text != here.input_text:
        manager.edit(here.uuid, stored.input_text)
    if stored.held != here.held:
        (manager.hold if stored.held else manager.release)(here.uuid)


def _reorder(manager: MessageQueueManager, context_id: AgentRuntimeId, order: list[str]) -> None:
    """By the manager's own moves, as few as that takes: each is told, and looks at the whole tier."""
    wanted = set(order)
    tier = [item.uuid for item in manager.snapshot(context_id) if item.uuid in wanted]
    places = {uuid: place for place, uuid in enumerate(tier)}
    staying = _longest_rising([places[uuid] for uuid in order])
    for index, uuid in enumerate(order):
        if places[uuid] in staying:
            continue
        before = tier.index(uuid)
        tier.remove(uuid)
        after = tier.index(order[index - 1]) + 1 if index else 0
        tier.insert(after, uuid)
        manager.move(uuid, after - before)


def _longest_rising(numbers: Sequence[int]) -> frozenset[int]:
    """The most of these different numbers that stand in rising order already."""
    ends: list[int] = []
    """The smallest last number of the rising rows of each length."""
    previous: dict[int, int | None] = {}
    for number in numbers:
        length = bisect_left(ends, number)
        previous[number] = ends[length - 1] if length else None
        ends[length : length + 1] = [number]
    rising: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        rising.add(last)
        last = previous[last]
    return frozenset(rising)
