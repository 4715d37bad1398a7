from __future__ import annotations

from pathlib import Path

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import JsonObject, JsonValue, TodoDetail, TodoItem
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, InvalidInputError
from midturn_tools.todo_write import TodoWriteTool
from tests.support.tool_context import make_tool_context


def todos(*items: tuple[str, str]) -> JsonObject:
    listed: list[JsonValue] = [{"content": text, "status": status} for text, status in items]
    return {"todos": listed}


THREE = todos(("look", "completed"), ("fix", "in_progress"), ("test", "pending"))


def test_the_list_is_kept_sequentially_and_touches_nothing(tmp_path: Path) -> None:
    tool = TodoWriteTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.SEQUENTIAL
    assert tool.get_interrupt_behavior() is InterruptBehavior.NON_INTERRUPTIBLE
    assert tool.access(THREE, make_tool_context(tmp_path)) == ()


async def test_a_list_is_shown_to_the_model_and_to_the_screen(tmp_path: Path) -> None:
    tool = TodoWriteTool()
    tool.validate(THREE)
    result = await tool.run(THREE, make_tool_context(tmp_path))
    assert result.output == "The list is now:\n[x] look\n[>] fix\n[ ] test"
    assert (tool.describe(THREE), result.summary) == ("3 steps", "1 of 3 done")
    assert result.detail == TodoDetail(
        (
            TodoItem("look", "completed"),
            TodoItem("fix", "in_progress"),
            TodoItem("test", "pending"),
        )
    )


async def test_every_context_has_its_own_list_and_the_newest_one_counts(tmp_path: Path) -> None:
    tool = TodoWriteTool()
    main, sub = AgentRuntimeId("s"), AgentRuntimeId("s", "sub-1")
    await tool.run(THREE, make_tool_context(tmp_path, context_id=main))
    await tool.run(todos(("a", "pending")), make_tool_context(tmp_path, context_id=sub))
    await tool.run(todos(("b", "pending")), make_tool_context(tmp_path, context_id=main))
    assert tool.items(main) == (TodoItem("b", "pending"),)
    assert tool.items(sub) == (TodoItem("a", "pending"),)


async def test_an_empty_list_clears(tmp_path: Path) -> None:
    tool = TodoWriteTool()
    context = make_tool_context(tmp_path)
    await tool.run(THREE, context)
    result = await tool.run(todos(), context)
    assert (result.output, result.detail) == ("The list is empty.", TodoDetail(()))
    assert tool.items(context.context_id) == ()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "todos is required"),
        (todos(("x", "done")), 'todos[0].status must be one of "pending"'),
        (todos(("", "pending")), "todos[0].content must be a string from 1 to 500"),
        (todos(("ok", "pending"), ("  ", "pending")), "todos[1].content must not be blank"),
        (todos(*[("x", "pending")] * 101), "todos must be a list of at most 100 items"),
    ],
)
def test_a_wrong_list_is_refused_with_what_is_allowed(given: JsonObject, sentence: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        TodoWriteTool().validate(given)
    assert sentence in str(caught.value)
