"""TodoWrite: the agent's list of steps, one per context, for the model and for the screen."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import JsonObject, TodoDetail, TodoItem
from midturn_core.permission.access import Access
from midturn_core.tool import (
    DEFAULT_TIME_LIMIT,
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._input import check_input, text

_MAX_ITEMS = 100
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

_DESCRIPTION = """\
Keeps a list of the steps of a longer piece of work, which the user sees. Each call gives the \
whole list anew and replaces the one before; an empty list clears it. Worth it when there are \
three steps or more; small requests need none."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "maxItems": _MAX_ITEMS,
            "description": "All steps, in their order.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 500,
                        "description": "What is to be done, in a few words.",
                    },
                    "status": {"type": "string", "enum": list(_MARKS)},
                },
                "required": ["content", "status"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["todos"],
    "additionalProperties": False,
}


class TodoWriteTool:
    """Holds the newest list of every context; safe on any thread."""

    name = "TodoWrite"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[AgentRuntimeId, tuple[TodoItem, ...]] = {}

    def items(self, context_id: AgentRuntimeId) -> tuple[TodoItem, ...]:
        """The list of a context; empty when it has none."""
        with self._lock:
            return self._lists.get(context_id, ())

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.NON_INTERRUPTIBLE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return DEFAULT_TIME_LIMIT

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, _SCHEMA)
        for index, item in enumerate(_items(tool_input)):
            if not item.text.strip():
                raise InvalidInputError(f"todos[{index}].content must not be blank")

    def describe(self, tool_input: JsonObject) -> str:
        items = _items(tool_input)
        if not items:
            return "clear the list"
        return "1 step" if len(items) == 1 else f"{len(items)} steps"

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return ()

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        items = _items(tool_input)
        with self._lock:
            if items:
                self._lists[context.context_id] = items
            else:
                self._lists.pop(context.context_id, None)
        if not items:
            return ToolResult("The list is empty.", summary="cleared", detail=TodoDetail(()))
        lines = "\n".join(f"{_MARKS[item.status]} {item.text}" for item in items)
        return ToolResult(
            f"The list is now:\n{lines}",
            summary=f"{_done(items)} of {len(items)} done",
            detail=TodoDetail(items),
        )


def _done(items: Sequence[TodoItem]) -> int:
    return sum(item.status == "completed" for item in items)


def _items(tool_input: JsonObject) -> tuple[TodoItem, ...]:
    todos = tool_input.get("todos")
    if not isinstance(todos, list):
        return ()
    return tuple(
        TodoItem(text(todo, "content"), text(todo, "status"))
        for todo in todos
        if isinstance(todo, dict)
    )
