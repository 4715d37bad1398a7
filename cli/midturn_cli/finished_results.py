"""The newest tool results of a session, whole, for /expand: the screen shows only their ends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from midturn_core.events import Event, ToolResultReady, ToolUseStarted
from midturn_core.model.messages import ToolUseResult

KEPT_RESULTS = 100
KEPT_CHARS = 4_000_000
"""Characters of all kept results together."""


@dataclass(frozen=True, slots=True)
class FinishedResult:
    """``title`` is the argument that matters. Texts are untrusted."""

    title: str
    result: ToolUseResult


class FinishedResults:
    """Watches the core's events. The oldest results give way first."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._kept: deque[FinishedResult] = deque(maxlen=KEPT_RESULTS)

    def observe(self, event: Event) -> None:
        match event:
            case ToolUseStarted():
                self._titles[event.tool_use.id] = event.title
            case ToolResultReady(result=result):
                content = result.content[:KEPT_CHARS]
                title = self._titles.pop(result.tool_use_id, "")
                self._kept.append(FinishedResult(title, replace(result, content=content)))
                while self._chars() > KEPT_CHARS and len(self._kept) > 1:
                    self._kept.popleft()
            case _:
                pass

    @property
    def newest_first(self) -> tuple[FinishedResult, ...]:
        return tuple(reversed(self._kept))

    def _chars(self) -> int:
        return sum(len(kept.result.content) for kept in self._kept)
