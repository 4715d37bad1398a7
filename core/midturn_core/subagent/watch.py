"""``SubagentWatch``: follows the events of one subagent's turn on their way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from midturn_core.events import (
    CallPhase,
    CompactionStarted,
    Emit,
    Event,
    RetryWaiting,
    SubagentEvent,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStarted,
    UsageChanged,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import Usage
from midturn_core.subagent.outcome import SubagentNotes


class PausableClock(Protocol):
    """Stands still while at least one holder pauses it."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class SubagentWatch:
    """Wraps every event, says in a few words what the subagent does, and keeps its clock.

    Args:
        progress: takes the words for the row of the ``Task`` call.
        clock: stands still while a person is asked (D22).
        on_usage: told what was spent since the last time.
    """

    def __init__(
        self,
        call: tuple[AgentRuntimeId, str],
        emit: Emit,
        progress: Callable[[str], None],
        clock: PausableClock,
        on_usage: Callable[[Usage], None],
    ) -> None:
        self._context_id, self._tool_use_id = call
        self._emit = emit
        self._progress = progress
        self._clock = clock
        self._on_usage = on_usage
        self._counted = Usage()
        self._asking: set[str] = set()
        self._begun: set[str] = set()
        self._names: dict[str, str] = {}
        self.notes = SubagentNotes()

    def take(self, event: Event) -> None:
        """The ``Emit`` of the subagent's agent."""
        self._emit(SubagentEvent(self._context_id, self._tool_use_id, event))
        match event:
            case ToolUseStarted(tool_use=use, title=title):
                line = " ".join(title.split())
                self.notes.titles[use.id] = line
                self._names[use.id] = f"{use.name}: {line}" if line else use.name
            case ToolPhaseChanged(tool_use_id, phase):
                self._enter(tool_use_id, phase)
            case ToolResultReady(result=result):
                self._pause(result.tool_use_id, False)
            case UsageChanged(session=session):
                self.count(session)
            case RetryWaiting(delay=delay):
                self._say(f"trying again in {delay:.0f} s")
            case CompactionStarted():
                self._say("compacting")
            case _:
                pass

    def count(self, spent: Usage) -> None:
        """``spent`` is all that the subagent has spent by now."""
        new = spent - self._counted
        if new != Usage():
            self._counted = spent
            self._on_usage(new)

    def _enter(self, tool_use_id: str, phase: CallPhase) -> None:
        self._pause(tool_use_id, phase is CallPhase.ASKING)
        name = self._names.get(tool_use_id, "")
        if phase is CallPhase.RUNNING:
            self._begun.add(tool_use_id)
            self._say(name)
        elif phase is CallPhase.ASKING:
            self._say(f"asks: {name}")

    def _say(self, doing: str) -> None:
        count = len(self._begun)
        self._progress(f"{count} tool{'' if count == 1 else 's'} · {doing}")

    def _pause(self, tool_use_id: str, pause: bool) -> None:
        if pause and tool_use_id not in self._asking:
            self._asking.add(tool_use_id)
            self._clock.pause()
        elif not pause and tool_use_id in self._asking:
            self._asking.discard(tool_use_id)
            self._clock.resume()
