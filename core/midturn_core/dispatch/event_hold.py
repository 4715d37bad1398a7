"""``EventHold``: events of calls that run before their batch has begun (D24)."""

from __future__ import annotations

from collections.abc import Collection

from midturn_core.events import Emit, Event, ToolPhaseChanged, ToolProgress, ToolResultReady


class EventHold:
    """Keeps events until ``release``, then passes everything on at once."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._held: list[Event] | None = []

    def __call__(self, event: Event) -> None:
        if self._held is None:
            self._emit(event)
        else:
            self._held.append(event)

    def release(self, without: Collection[str] = ()) -> None:
        """Pass on what was kept, in its order; ``without`` are ids of calls left out of it."""
        held, self._held = self._held or [], None
        for event in held:
            if _tool_use_id(event) not in without:
                self._emit(event)


def _tool_use_id(event: Event) -> str:
    match event:
        case ToolPhaseChanged(tool_use_id) | ToolProgress(tool_use_id):
            return tool_use_id
        case ToolResultReady(result=result):
            return result.tool_use_id
        case _:
            return ""
