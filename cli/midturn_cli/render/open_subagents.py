"""What runs inside the ``Task`` calls of the main agent: nothing of it is in the transcript.

The row of a ``Task`` call says what its subagent does now; where several calls of it run at the
same time, each has a nested row.
"""

from __future__ import annotations

from dataclasses import replace

from midturn_cli.render.blocks import Block, CallInfo, LiveCall, NoticeBlock
from midturn_cli.render.clean import one_line, reveal_line
from midturn_cli.render.event_blocks import readable
from midturn_core.events import (
    CallPhase,
    Notice,
    SubagentEvent,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStarted,
    TurnEnded,
)

MIN_NESTED = 2
"""Fewer calls that run are told by the row of the ``Task`` call alone."""


class OpenSubagents:
    """The calls of all subagents between their start and their result."""

    def __init__(self) -> None:
        self._calls: dict[str, dict[str, LiveCall]] = {}

    @property
    def asking(self) -> frozenset[str]:
        """Calls that wait for a person, on screen or behind another question."""
        return frozenset(
            call.id
            for calls in self._calls.values()
            for call in calls.values()
            if call.phase is CallPhase.ASKING
        )

    def nested(self, tool_use_id: str) -> tuple[LiveCall, ...]:
        """What runs at the same time inside this ``Task`` call, in start order."""
        calls = self._calls.get(tool_use_id, {}).values()
        running = tuple(call for call in calls if call.phase is CallPhase.RUNNING)
        return running if len(running) >= MIN_NESTED else ()

    def apply(self, event: SubagentEvent, now: float) -> list[Block]:
        """The blocks are what must be told whatever runs."""
        calls = self._calls.setdefault(event.tool_use_id, {})
        match event.event:
            case Notice(level, text):
                return [NoticeBlock(level, f"{event.context_id.agent}: {readable(text)}")]
            case ToolUseStarted(tool_use=use, title=title):
                info = CallInfo(one_line(use.name), reveal_line(title), 0, 1)
                calls[use.id] = LiveCall(use.id, info, now)
            case ToolPhaseChanged(tool_use_id, phase) if tool_use_id in calls:
                call = calls[tool_use_id]
                started = now if phase is CallPhase.RUNNING else call.started
                calls[tool_use_id] = replace(call, phase=phase, started=started)
            case ToolResultReady(result=result):
                calls.pop(result.tool_use_id, None)
            case TurnEnded():
                del self._calls[event.tool_use_id]
            case _:
                pass
        return []

    def clear(self) -> None:
        """The turn of the main agent is over."""
        self._calls.clear()
