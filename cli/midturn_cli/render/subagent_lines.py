"""What plain text says of subagents while they run: their start, and now and then what they do."""

from __future__ import annotations

from midturn_cli.render.clean import one_line, reveal_line
from midturn_cli.ui_events import UiEvent
from midturn_core.events import (
    CallPhase,
    SubagentEvent,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStarted,
)
from midturn_core.subagent.types import TASK_TOOL

MIN_SECONDS = 10.0
"""Between two lines of one subagent."""


class SubagentLines:
    """Follows the ``Task`` calls that run. Their ends are told as those of all calls."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._told: dict[str, float] = {}

    def line(self, event: UiEvent, now: float) -> str:
        """The line for an event; empty for none. ``now`` is monotonic seconds."""
        match event:
            case ToolUseStarted(tool_use=use, title=title) if use.name == TASK_TOOL:
                self._titles[use.id] = f"{TASK_TOOL}: {reveal_line(title)}"
            case ToolPhaseChanged(id, CallPhase.RUNNING) if id in self._titles:
                self._told[id] = now
                return f"[{self._titles[id]}] runs"
            case ToolResultReady(result=result):
                self._titles.pop(result.tool_use_id, None)
                self._told.pop(result.tool_use_id, None)
            case SubagentEvent(_, id, ToolUseStarted(tool_use=use, title=title)) if (
                id in self._told
            ):
                if now - self._told[id] >= MIN_SECONDS:
                    self._told[id] = now
                    return f"[{self._titles[id]}] at {one_line(use.name)}: {reveal_line(title)}"
            case _:
                pass
        return ""
