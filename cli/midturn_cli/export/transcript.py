"""``Transcript``: a whole session as plain values, before it becomes a document.

The history in memory begins at the last compaction; a transcript has what went before it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never

from midturn_core.conversation import Cleared, Compacted, Conversation, ConversationChange
from midturn_core.errors import ConversationError
from midturn_core.model.messages import (
    AssistantMessage,
    DiffDetail,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserMessage,
)
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY, SystemReminderFormatter


@dataclass(frozen=True, slots=True)
class Head:
    """What is said of the session as a whole. Times are ISO 8601 with a time zone."""

    session_id: str
    folder: str
    started: str
    exported: str
    version: str
    """Of Midturn."""
    model: str
    """The one that answers now."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class Part:
    """The messages between two compactions. The first ``summaries`` texts of the first message
    are the summary that replaced what went before.
    """

    messages: tuple[Message, ...]
    summaries: int = 0


@dataclass(frozen=True, slots=True)
class Transcript:
    head: Head
    parts: tuple[Part, ...]
    reminders: SystemReminderFormatter
    """Of the session: tells the user's texts from Midturn's own."""

    @property
    def message_count(self) -> int:
        return sum(len(part.messages) for part in self.parts)


class TextKind(Enum):
    """Who a text of a user message is from."""

    PROMPT = "prompt"
    MID_TURN = "mid-turn"
    """Typed while the model was at work."""
    NOTE = "note"
    """Midturn's own words to the model."""
    SUMMARY = "summary"
    """Of a compaction."""


@dataclass(frozen=True, slots=True)
class UserText:
    kind: TextKind
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Markdown of the model's."""

    text: str


@dataclass(frozen=True, slots=True)
class CallWords:
    """What the screen says of a call: the argument that matters, and the change it asks for."""

    title: str
    diff: DiffDetail | None = None


@dataclass(frozen=True, slots=True)
class Call:
    use: ToolUse
    words: CallWords
    result: ToolUseResult | None
    """None: it ran when the session was exported."""


Entry: TypeAlias = UserText | ImageBlock | Answer | Call
DescribeCall: TypeAlias = Callable[[ToolUse], CallWords]


def parts_of(changes: Iterable[ConversationChange]) -> tuple[Part, ...]:
    """The recorded changes as messages; a compaction begins a new part and ends nothing."""
    parts: list[Part] = []
    conversation, summaries = Conversation(), 0
    for change in changes:
        if isinstance(change, Compacted | Cleared):
            parts.append(Part(conversation.messages, summaries))
            conversation = Conversation()
            summaries = len(change.texts) if isinstance(change, Compacted) else 0
        try:
            conversation.apply(change)
        except ConversationError:
            # It belongs to what a damaged file has lost; the rest is worth having.
            continue
    parts.append(Part(conversation.messages, summaries))
    return tuple(part for part in parts if part.messages)


def user_parts(
    part: Part, message: UserMessage, reminders: SystemReminderFormatter
) -> Iterator[UserText | ImageBlock]:
    """What the user said, without the wrapping in which the model got texts."""
    summaries = part.summaries if message is part.messages[0] else 0
    texts = 0
    for block in message.blocks:
        match block:
            case TextBlock(text):
                texts += 1
                yield _user_text(text, reminders, summary=texts <= summaries)
            case ImageBlock():
                yield block
            case ToolUseResult():
                # Stands beside its call.
                pass
            case _:
                assert_never(block)


def _user_text(text: str, reminders: SystemReminderFormatter, *, summary: bool) -> UserText:
    if summary:
        return UserText(TextKind.SUMMARY, text)
    match reminders.key_of(text):
        case "":
            return UserText(TextKind.PROMPT, text)
        case key:
            kind = TextKind.MID_TURN if key == MID_TURN_INJECTION_KEY else TextKind.NOTE
            return UserText(kind, reminders.unwrap(text))


def entries(transcript: Transcript, describe: DescribeCall) -> Iterator[Entry]:
    """What a reader sees, in order: a call with its result, then what was said after it."""
    for part in transcript.parts:
        results = _results(part)
        for message in part.messages:
            match message:
                case UserMessage():
                    yield from user_parts(part, message, transcript.reminders)
                case AssistantMessage():
                    yield from _model_entries(message, results, describe)
                case _:
                    assert_never(message)


def _results(part: Part) -> dict[str, ToolUseResult]:
    return {
        block.tool_use_id: block
        for message in part.messages
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, ToolUseResult)
    }


def _model_entries(
    message: AssistantMessage, results: dict[str, ToolUseResult], describe: DescribeCall
) -> Iterator[Entry]:
    for block in message.blocks:
        match block:
            case TextBlock(text):
                yield Answer(text)
            case ToolUse():
                yield Call(block, describe(block), results.get(block.id))
            case ThinkingBlock() | RedactedThinkingBlock():
                # For the model alone, as on the screen.
                pass
            case _:
                assert_never(block)
