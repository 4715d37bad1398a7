"""``SubagentOutcome``: what is left of a subagent when its turn is over."""

from __future__ import annotations

from dataclasses import dataclass, field

from midturn_core.conversation import AssistantAdded, ConversationChange, ResultsAdded
from midturn_core.events import TurnEndReason
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import Outcome, TextBlock, ToolUse, ToolUseResult, Usage

MAX_LINES = 2_000
"""Of a transcript; the newest are kept."""


@dataclass(frozen=True, slots=True)
class SubagentOutcome:
    """``answer`` is its last text: all of what it wrote since its last tool results."""

    context_id: AgentRuntimeId
    reason: TurnEndReason
    answer: str
    last_words: str
    """The newest text it wrote at all, for a subagent that was cut."""
    error: str = ""
    cancelled_by: CancelReason | None = None
    steps: int = 0
    calls: tuple[str, ...] = ()
    """One line per call that it made."""
    transcript: tuple[str, ...] = ()
    """Its texts and calls in order, for a person; untrusted."""
    usage: Usage = Usage()


@dataclass(slots=True)
class SubagentNotes:
    """Listens to the history of one subagent, so that nothing is lost by a compaction."""

    titles: dict[str, str] = field(default_factory=dict[str, str])
    """The argument that matters of each call."""
    calls: list[str] = field(default_factory=list[str])
    transcript: list[str] = field(default_factory=list[str])
    last_words: str = ""
    _answer: list[str] = field(default_factory=list[str])

    @property
    def answer(self) -> str:
        return "\n\n".join(self._answer)

    def record(self, change: ConversationChange) -> None:
        """The journal of the subagent's conversation."""
        match change:
            case AssistantAdded(blocks):
                text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
                self._said(text.strip())
                if any(isinstance(block, ToolUse) for block in blocks):
                    self._answer.clear()
            case ResultsAdded(results):
                for result in results:
                    self._called(result)
            case _:
                pass

    def _said(self, text: str) -> None:
        if text:
            self.last_words = text
            self._answer.append(text)
            self._add(*text.split("\n"))

    def _called(self, result: ToolUseResult) -> None:
        title = self.titles.get(result.tool_use_id, "")
        name = f"{result.name}: {title}" if title else result.name
        came = result.outcome.value if result.outcome is not Outcome.SUCCEEDED else ""
        line = " · ".join(filter(None, (f"[{name}]", came, result.summary)))
        self.calls.append(line)
        self._add(line)

    def _add(self, *lines: str) -> None:
        self.transcript += lines
        del self.transcript[:-MAX_LINES]
