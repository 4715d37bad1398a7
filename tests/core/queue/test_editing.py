"""An input that is being edited: never delivered, never overtaken, and afterwards what it was."""

from __future__ import annotations

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.barriers import behind_edited
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.turn_gate import TurnGate
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
NOW, NEXT, LATER = QueuedInputPriority
STEP = QueueFilter(MAIN, NEXT, prompts_only=True)


def queue_of(*items: tuple[str, QueuedInputPriority]) -> tuple[MessageQueueManager, dict[str, str]]:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    uuids: dict[str, str] = {}
    for text, priority in items:
        item = QueuedInput(text, MAIN, priority)
        manager.enqueue(item)
        uuids[text] = item.uuid
    return manager, uuids


def at_step(manager: MessageQueueManager) -> list[str]:
    return [item.input_text for item in manager.drain_at_step(STEP)]


def at_stop(manager: MessageQueueManager) -> list[str]:
    return [item.input_text for item in manager.drain_or_close(STEP, lambda: None)]


def leftovers(manager: MessageQueueManager) -> list[str]:
    return [item.input_text for item in manager.take_leftovers(MAIN, include_later=True)]


@pytest.mark.parametrize("drain", [at_step, at_stop, leftovers])
def test_what_is_before_an_edited_input_goes_and_what_is_behind_it_waits(drain: object) -> None:
    assert callable(drain)
    manager, uuids = queue_of(("one", NEXT), ("two", NEXT), ("three", NEXT), ("four", LATER))
    manager.begin_edit(uuids["two"])
    assert drain(manager) == ["one"]
    assert drain(manager) == []
    manager.end_edit(uuids["two"])
    assert drain(manager) == ["two", "three"]


def test_an_urgent_input_overtakes_what_is_being_edited() -> None:
    manager, uuids = queue_of(("first", NOW), ("steer", NEXT), ("urgent", NOW))
    manager.begin_edit(uuids["first"])
    assert at_step(manager) == ["urgent"]
    assert behind_edited(manager.snapshot(MAIN)) == {uuids["steer"]}


def test_a_later_input_does_not_overtake_what_is_being_edited() -> None:
    manager, uuids = queue_of(("steer", NEXT), ("afterwards", LATER))
    manager.begin_edit(uuids["steer"])
    gate = TurnGate(manager, MAIN)
    assert gate.resume(include_later=True) == []
    manager.end_edit(uuids["steer"])
    assert [item.input_text for item in gate.resume(include_later=True)] == ["steer"]


def test_an_edited_command_stays_a_barrier() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    command = QueuedInput("/compact", MAIN, metadata={"kind": "command"})
    manager.enqueue(command)
    manager.enqueue(QueuedInput("after it", MAIN))
    manager.begin_edit(command.uuid)
    assert leftovers(manager) == []
    manager.end_edit(command.uuid)
    assert leftovers(manager) == ["/compact"]


def test_an_input_that_was_held_bars_nothing_and_stays_held() -> None:
    manager, uuids = queue_of(("one", NEXT), ("two", NEXT))
    manager.hold(uuids["one"])
    manager.begin_edit(uuids["one"])
    assert at_step(manager) == ["two"]
    assert manager.end_edit(uuids["one"])
    (one,) = manager.snapshot(MAIN)
    assert one.held
    assert not one.being_edited


def test_an_interrupt_while_editing_holds_the_input_afterwards() -> None:
    manager, uuids = queue_of(("one", NEXT), ("two", NEXT))
    manager.begin_edit(uuids["one"])
    assert manager.hold(MAIN) == 2
    manager.end_edit(uuids["one"])
    assert [item.held for item in manager.snapshot(MAIN)] == [True, True]


def test_a_release_while_editing_lets_the_input_go_afterwards_and_not_before() -> None:
    manager, uuids = queue_of(
        ("one", NEXT),
    )
    manager.hold(uuids["one"])
    manager.begin_edit(uuids["one"])
    assert manager.release(MAIN) == 1
    assert manager.release(MAIN) == 0
    assert at_step(manager) == []
    manager.end_edit(uuids["one"])
    assert at_step(manager) == ["one"]


def test_editing_changes_text_and_tags_in_place_and_nothing_else() -> None:
    manager, uuids = queue_of(("one", NEXT), ("two", NEXT))
    manager.begin_edit(uuids["one"])
    assert manager.edit(uuids["one"], "/compact", {"kind": "command"})
    manager.end_edit(uuids["one"])
    first, _ = manager.snapshot(MAIN)
    assert (first.uuid, first.input_text, dict(first.metadata)) == (
        uuids["one"],
        "/compact",
        {"kind": "command"},
    )


def test_what_is_gone_cannot_be_edited() -> None:
    manager, uuids = queue_of(("one", NEXT))
    manager.remove(uuids["one"])
    assert manager.begin_edit(uuids["one"]) is None
    assert not manager.edit(uuids["one"], "other")
    assert not manager.end_edit(uuids["one"])


def test_a_leftover_is_edited_by_nobody_any_more() -> None:
    edited = QueuedInput("one", MAIN).as_edited().as_held()
    assert edited.held
    assert not edited.being_edited
