"""What holding, releasing and editing make of an input, in every order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.barriers import at_step_boundary, next_turn
from midturn_core.queue.holding import edit_begun, edit_ended, held_back, let_go
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

MAIN = AgentRuntimeId("s1", "main")
NOW, NEXT, LATER = QueuedInputPriority
FREE = QueuedInput("a", MAIN)
LET_GO_AT = datetime(2026, 7, 4, tzinfo=UTC)


def after(item: QueuedInput, *steps: str) -> QueuedInput:
    for step in steps:
        match step:
            case "hold":
                changed = held_back(item)
            case "release":
                changed = let_go(item, LET_GO_AT)
            case "edit":
                changed = edit_begun(item)
            case _:
                changed = edit_ended(item, LET_GO_AT)
        item = item if changed is None else changed
    return item


@pytest.mark.parametrize(
    ("steps", "held"),
    [
        (("hold",), True),
        (("hold", "release"), False),
        (("edit",), True),
        (("edit", "leave"), False),
        (("hold", "edit", "leave"), True),
        (("edit", "hold", "leave"), True),
        (("edit", "release", "leave"), False),
        (("hold", "edit", "release"), True),
        (("hold", "edit", "release", "leave"), False),
        (("edit", "hold", "release", "leave"), False),
        (("edit", "edit", "leave"), False),
    ],
)
def test_an_input_is_held_while_it_is_edited_and_afterwards_as_it_was_last_asked_for(
    steps: tuple[str, ...], held: bool
) -> None:
    item = after(FREE, *steps)
    assert item.held is held
    assert item.being_edited is (steps[-1] not in ("leave",) and "edit" in steps)


@pytest.mark.parametrize(
    ("step", "item"),
    [
        ("hold", FREE.as_held()),
        ("release", FREE),
        ("edit", FREE.as_edited()),
        ("leave", FREE.as_held()),
    ],
)
def test_what_is_so_already_does_not_change(step: str, item: QueuedInput) -> None:
    assert after(item, step) is item


def test_the_time_to_live_begins_when_an_input_is_let_go() -> None:
    assert after(FREE, "hold", "release").waits_since == max(LET_GO_AT, FREE.enqueued_at)
    free = let_go(FREE.as_held(), None)
    assert free is not None and free.waits_since == FREE.enqueued_at


def waiting(*rows: str) -> list[QueuedInput]:
    """Inputs from ``TIER text``; a text with a slash is a command."""
    found: list[QueuedInput] = []
    for row in rows:
        tier, text = row.split()
        tags = {"kind": "command"} if text.startswith("/") else {}
        found.append(QueuedInput(text, MAIN, QueuedInputPriority[tier], metadata=tags))
    return found


def texts(items: list[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]


def test_a_command_is_a_barrier_at_a_step_boundary_and_a_turn_of_its_own() -> None:
    free = waiting("NOW a", "NEXT b", "NEXT /c", "NEXT d", "LATER e")
    assert texts(at_step_boundary(free[:4])) == ["a", "b"]
    assert texts(next_turn(free, one=False)) == ["a", "b"]
    assert texts(next_turn(free[2:], one=False)) == ["/c"]
    assert texts(next_turn(free[3:], one=False)) == ["d"]


def test_later_inputs_go_one_by_one_and_all_do_where_each_has_its_turn() -> None:
    assert texts(next_turn(waiting("LATER a", "LATER b"), one=False)) == ["a"]
    assert texts(next_turn(waiting("NEXT a", "NEXT b"), one=True)) == ["a"]
    assert next_turn([], one=False) == []
