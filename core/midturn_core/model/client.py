"""``ModelClient``: the protocol between the turn loop and whatever answers as the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from midturn_core.model.messages import (
    AssistantBlock,
    JsonObject,
    Message,
    StopReason,
    Usage,
)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. ``messages`` is a valid history (see ``Conversation``)."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    model: str
    max_tokens: int
    effort: str = ""
    """``low`` to ``max``; empty leaves the choice to the service."""


@dataclass(frozen=True, slots=True)
class RequestCounted:
    """The service has taken the request: what it costs even if its answer is cut or breaks."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ToolUseStarting:
    """The model has begun to write a tool use; its input is still coming."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class BlockFinished:
    """A block is complete (its ``content_block_stop`` came)."""

    block: AssistantBlock


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The client will send the request again by itself after ``delay`` seconds.

    Only before the first event of a message: what comes after is the turn loop's policy. It is
    retry number ``attempt`` (from 1) of at most ``attempts``.
    """

    attempt: int
    attempts: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """The last event of a complete message."""

    stop_reason: StopReason
    usage: Usage
    stop_detail: str = ""


ModelEvent: TypeAlias = (
    RequestCounted
    | TextChunk
    | ThinkingChunk
    | ToolUseStarting
    | BlockFinished
    | RetryScheduled
    | MessageFinished
)


class ModelClient(Protocol):
    """Answers requests as a stream of events.

    ``stream`` yields events and ends after ``MessageFinished``. It raises a ``ModelError``
    subclass when the request fails or the stream ends early; closing the generator (or cancelling
    the task) closes the connection. Blocks that finished before a failure were yielded.
    """

    @property
    def label(self) -> str:
        """What the screen shows, such as the model's name; the demo's says DEMO."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]: ...

    async def close(self) -> None: ...
