"""Calls that run while the model still writes the message that asks for them (D24).

They are part of no batch yet; when it begins it says everything about them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from midturn_cli.render.clean import one_line, reveal_line
from midturn_core.events import ToolUseEndedEarly, ToolUseStartedEarly


@dataclass(frozen=True, slots=True)
class EarlyCall:
    """``duration_ms`` is None while it runs."""

    label: str
    started: float
    duration_ms: float | None = None


class EarlyCalls:
    """Those of the message that is being written; a part of the reducer ``UiState``."""

    def __init__(self) -> None:
        self._calls: dict[str, EarlyCall] = {}
        self._began: dict[str, float] = {}

    @property
    def calls(self) -> tuple[EarlyCall, ...]:
        """In the order in which they started."""
        return tuple(self._calls.values())

    def apply(self, event: ToolUseStartedEarly | ToolUseEndedEarly, now: float) -> None:
        if isinstance(event, ToolUseStartedEarly):
            label = f"{one_line(event.name)}: {reveal_line(event.title)}".removesuffix(": ")
            self._calls[event.tool_use_id] = EarlyCall(label, now)
        elif call := self._calls.get(event.tool_use_id):
            self._calls[event.tool_use_id] = replace(call, duration_ms=event.duration_ms)

    def hand_over(self) -> None:
        """The batch begins: from now on it shows them, and only their start is still known."""
        self._began = {key: call.started for key, call in self._calls.items()}
        self._calls.clear()

    def forget(self) -> None:
        self._calls.clear()
        self._began.clear()

    def began(self, tool_use_id: str, now: float) -> float:
        """When a call that runs has begun: ``now``, unless it started early."""
        return self._began.get(tool_use_id, now)
