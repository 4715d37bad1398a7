"""``OpenMessage``: the model's message while it comes, and what it is doing meanwhile.

A part of the reducer ``UiState``: it turns the events of one message into the blocks that became
final. Pure: no I/O, no clock of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from midturn_cli.render.blocks import (
    AnswerEnd,
    AnswerText,
    Block,
    NoticeBlock,
    RemarkBlock,
    ThoughtBlock,
)
from midturn_cli.render.clean import StreamCleaner, clean, one_line
from midturn_cli.render.event_blocks import compaction_block, cut_remark
from midturn_core.events import (
    CompactionFinished,
    CompactionStarted,
    MessageEnded,
    MessageSuperseded,
    NoticeLevel,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    ToolUseAnnounced,
)

THOUGHT_SHOWN = 500
"""Characters of the newest thinking that are kept for the live region."""

ActivityKind = Literal["waiting", "thinking", "writing", "retrying", "compacting"]

MessageEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolUseAnnounced
    | MessageEnded
    | MessageSuperseded
    | RetryWaiting
    | CompactionStarted
    | CompactionFinished
)


@dataclass(frozen=True, slots=True)
class Activity:
    """What the model's side is doing while nothing else moves. Times are monotonic seconds."""

    kind: ActivityKind
    since: float
    text: str = ""
    """The newest thinking, the tool being written, or why the request is sent again."""
    until: float | None = None


class OpenMessage:
    """One per session: a message follows the other. Attributes are for reading.

    ``expand_tabs`` False leaves the tabs of answers as they are, for output that is piped on.
    """

    def __init__(self, *, expand_tabs: bool) -> None:
        self.activity: Activity | None = None
        self.answer_open = False
        self.text_at: float | None = None
        """When the newest text of the open answer came; None when none is open."""
        self._expand_tabs = expand_tabs
        self._cleaner = StreamCleaner(expand_tabs=expand_tabs)
        self._shown = False

    def wait(self, now: float) -> None:
        """A request is sent; nothing of its message has come yet."""
        self.activity = Activity("waiting", now)
        self._shown = False

    def rest(self) -> None:
        """The model does nothing any more, or its tools do."""
        self.activity = None

    def apply(self, event: MessageEvent, now: float) -> list[Block]:
        """The blocks that became final by an event of the message."""
        match event:
            case TextDelta():
                return self._text(event.text, now)
            case ThinkingDelta():
                return self._think(event.text, now)
            case ToolUseAnnounced():
                ended = self.end(now)
                self.activity = Activity("writing", now, one_line(event.name))
                return ended
            case MessageEnded():
                ended = self.end(now)
                self.activity = None
                return [*ended, *cut_remark(event, shown=self._shown)]
            case MessageSuperseded():
                return self._supersede(event, now)
            case RetryWaiting():
                reason = _inner_sentence(event.reason)
                self.activity = Activity("retrying", now, reason, now + event.delay)
                again = f"trying again in {event.delay:.0f} s ({event.attempt}/{event.attempts})"
                return [NoticeBlock(NoticeLevel.WARNING, f"The request failed: {reason}; {again}")]
            case CompactionStarted():
                self.activity = Activity("compacting", now)
                return self.close_answer()
            case CompactionFinished():
                self.activity = None
                return [compaction_block(event)]
            case _:
                assert_never(event)

    def _text(self, text: str, now: float) -> list[Block]:
        thought = self._end_thinking(now)
        self.activity = None
        self.answer_open = True
        self.text_at = now
        self._shown = True
        shown = self._cleaner.feed(text)
        return [*thought, AnswerText(shown)] if shown else thought

    def _think(self, text: str, now: float) -> list[Block]:
        ended = self.close_answer()
        before = self.activity
        if before is None or before.kind != "thinking":
            before = Activity("thinking", now)
        newest = (before.text + clean(text))[-THOUGHT_SHOWN:]
        self.activity = replace(before, text=newest)
        return ended

    def _end_thinking(self, now: float) -> list[Block]:
        if self.activity is None or self.activity.kind != "thinking":
            return []
        seconds = now - self.activity.since
        self.activity = None
        self._shown = True
        return [ThoughtBlock(seconds)]

    def close_answer(self) -> list[Block]:
        """What is left of the answer that is open."""
        if not self.answer_open:
            return []
        self.answer_open = False
        self.text_at = None
        rest = self._cleaner.end()
        return [AnswerText(rest), AnswerEnd()] if rest else [AnswerEnd()]

    def end(self, now: float) -> list[Block]:
        """Close what is open of the message: thinking or answer."""
        return [*self._end_thinking(now), *self.close_answer()]

    def replayed(self, text: str) -> list[Block]:
        """A whole answer of a resumed session."""
        cleaned = clean(text, expand_tabs=self._expand_tabs)
        return [*self.close_answer(), AnswerText(cleaned), AnswerEnd()]

    def _supersede(self, event: MessageSuperseded, now: float) -> list[Block]:
        shown, blocks, reason = self._shown, self.end(now), _inner_sentence(event.reason)
        if shown or blocks:
            blocks.append(RemarkBlock(f"↑ superseded, it no longer counts ({reason})"))
        else:
            blocks.append(RemarkBlock(f"The answer broke off ({reason})"))
        self.wait(now)
        return blocks


def _inner_sentence(text: str) -> str:
    """A reason as part of a longer sentence: on one line, without its full stop."""
    return one_line(text, line_end=" ").removesuffix(".")
