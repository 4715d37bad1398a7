"""A queue becomes what the store says, with as few changes as that takes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.reconcile import reconcile
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

MAIN = AgentRuntimeId("s1", "main")


class Moves:
    def __init__(self) -> None:
        self.count = 0

    def on_event(self, event: QueueEvent) -> None:
        self.count += event.reason is QueueChangeReason.MOVED


def queue_of(items: list[QueuedInput]) -> tuple[MessageQueueManager, Moves]:
    manager, moves = MessageQueueManager(InMemoryMessageQueueRepository()), Moves()
    for item in items:
        manager.enqueue(item)
    manager.add_listener(moves)
    return manager, moves


def inputs(count: int) -> list[QueuedInput]:
    return [QueuedInput(str(number), MAIN) for number in range(count)]


def test_one_that_was_put_last_is_moved_alone() -> None:
    items = inputs(50)
    manager, moves = queue_of(items)
    stored = [*items[1:], items[0]]
    reconcile(manager, MAIN, stored)
    assert manager.snapshot(MAIN) == stored
    assert moves.count == 1


def test_two_halves_that_changed_places_are_moved_once_for_each_of_the_smaller() -> None:
    items = inputs(10)
    manager, moves = queue_of(items)
    stored = [*items[3:], *items[:3]]
    reconcile(manager, MAIN, stored)
    assert manager.snapshot(MAIN) == stored
    assert moves.count == 3


@settings(max_examples=200)
@given(st.permutations(range(7)), st.sets(st.integers(0, 6)), st.integers(0, 3))
def test_any_order_is_reached_whatever_came_and_went(
    order: list[int], gone: set[int], new: int
) -> None:
    items = inputs(7)
    manager, _ = queue_of(items)
    stored = [items[number] for number in order if number not in gone]
    stored[1:1] = inputs(new)
    added = reconcile(manager, MAIN, stored)
    assert manager.snapshot(MAIN) == stored
    assert len(added) == new


def test_an_input_of_another_tier_goes_there_and_to_its_place() -> None:
    items = inputs(3)
    manager, _ = queue_of(items)
    now = [
        QueuedInput(item.input_text, MAIN, QueuedInputPriority.NOW, item.uuid)
        for item in (items[2], items[0])
    ]
    reconcile(manager, MAIN, [*now, items[1]])
    assert [item.uuid for item in manager.snapshot(MAIN)] == [
        items[2].uuid,
        items[0].uuid,
        items[1].uuid,
    ]
