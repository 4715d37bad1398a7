"""The blocks and messages of a conversation, as plain immutable values.

They mirror the Messages API: a message is a role and a tuple of blocks. What may stand where is
the business of ``Conversation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | None | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = Mapping[str, JsonValue]


class Role(Enum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str


PICTURE_KINDS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
}
"""The media types that the service takes, and what people call them."""
MAX_ENCODED_PICTURE = 5 * 1024 * 1024
"""Characters of one picture in a request, in base64."""
MAX_PICTURE_BYTES = MAX_ENCODED_PICTURE // 4 * 3
MAX_PICTURE_SIDE = 8000
"""Pixels."""


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture of the user's. One that the service would refuse cannot be made.

    ``pictures.read_picture`` makes one from the content of a file.

    Raises:
        ValueError: a media type that the service does not take, no content, or too much of it.
    """

    media_type: str
    data: bytes = field(repr=False)
    name: str
    """For people and in notes; it says nothing about the content."""
    width: int
    height: int
    file_id: str = ""
    """Which file of the session holds it (D15); empty while it is in none."""

    def __post_init__(self) -> None:
        if self.media_type not in PICTURE_KINDS:
            raise ValueError(f"the service takes no {self.media_type}")
        if not 0 < len(self.data) <= MAX_PICTURE_BYTES:
            raise ValueError(f"{len(self.data)} bytes are no picture that the service takes")
        if not (0 < self.width <= MAX_PICTURE_SIDE and 0 < self.height <= MAX_PICTURE_SIDE):
            raise ValueError(f"a picture of {self.width}x{self.height} pixels is not taken")

    @property
    def kind(self) -> str:
        return PICTURE_KINDS[self.media_type]


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Goes back unmodified; without its signature the service refuses it."""

    thinking: str
    signature: str
    model: str = ""
    """Which model signed it: another model refuses the signature, so it is not sent to it."""


@dataclass(frozen=True, slots=True)
class RedactedThinkingBlock:
    data: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call the model asked for.

    ``input_error`` is set when the streamed JSON could not be read; the call is then answered
    with an error result and never run. ``input`` is empty in that case.
    """

    id: str
    name: str
    input: JsonObject = field(default_factory=dict[str, JsonValue])
    input_error: str | None = None


class Outcome(Enum):
    """What became of a tool use."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    """The user or a rule said no."""
    TIMED_OUT = "timed out"
    STOPPED = "stopped"
    """It had started and was interrupted; the result may be incomplete."""
    SKIPPED = "skipped"
    """It never started."""


@dataclass(frozen=True, slots=True)
class ToolUseResult:
    """What came of one tool use (spec: Names). Exactly one exists per ``ToolUse``.

    ``content`` is the text for the model (``Error: <message>`` when it failed, D32).
    ``duration_ms`` counts the tool alone: no waiting for a slot, a hook or a person (D22).
    ``summary`` and ``detail`` are for the screen only and never reach the model.
    """

    tool_use_id: str
    name: str
    outcome: Outcome
    content: str
    duration_ms: float = 0.0
    summary: str = ""
    detail: ToolDetail | None = None
    retried: bool = False

    @property
    def is_error(self) -> bool:
        return self.outcome is not Outcome.SUCCEEDED


@dataclass(frozen=True, slots=True)
class DiffDetail:
    """A change of a file, for a coloured diff on screen."""

    path: str
    unified: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class OutputDetail:
    """The last lines of a command's output, for the screen."""

    tail: tuple[str, ...]
    lines_total: int


@dataclass(frozen=True, slots=True)
class TodoItem:
    text: str
    status: str
    """``pending``, ``in_progress`` or ``completed``."""


@dataclass(frozen=True, slots=True)
class TodoDetail:
    items: tuple[TodoItem, ...]


@dataclass(frozen=True, slots=True)
class TranscriptDetail:
    """What a subagent said and did, line by line; shown on demand only."""

    lines: tuple[str, ...]


ToolDetail: TypeAlias = DiffDetail | OutputDetail | TodoDetail | TranscriptDetail

AssistantBlock: TypeAlias = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUse
UserBlock: TypeAlias = TextBlock | ImageBlock | ToolUseResult
UserPart: TypeAlias = str | ImageBlock
"""What a user says: a text, or a picture that belongs to the text before it."""
Block: TypeAlias = AssistantBlock | UserBlock


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Tool results first, in call order, then text and pictures as they were said."""

    blocks: tuple[UserBlock, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    blocks: tuple[AssistantBlock, ...]

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))


Message: TypeAlias = UserMessage | AssistantMessage


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. ``input_tokens`` excludes what was read from or written to the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def context_tokens(self) -> int:
        """Everything the request and its answer occupy in the model's window."""
        return (
            self.input_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.output_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cache_read_tokens - other.cache_read_tokens,
            self.cache_write_tokens - other.cache_write_tokens,
        )


class StopReason(Enum):
    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    CONTEXT_FULL = "model_context_window_exceeded"
    UNKNOWN = "unknown"
    """A reason this version does not know; treated like ``end_turn``."""
