"""A model client that plays scripted replies, for tests of the turn loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeAlias

from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    ModelEvent,
    ModelRequest,
    TextChunk,
    ToolUseStarting,
)
from midturn_core.model.messages import (
    JsonObject,
    StopReason,
    TextBlock,
    ToolUse,
    Usage,
)

Step: TypeAlias = ModelEvent | asyncio.Event | Exception
"""An event to yield, a latch to wait for, or an error to raise."""

USAGE = Usage(input_tokens=100, output_tokens=10)


def text(words: str, stop: StopReason = StopReason.END_TURN) -> list[Step]:
    """A message of text, in two chunks."""
    half = len(words) // 2
    return [
        TextChunk(words[:half]),
        TextChunk(words[half:]),
        BlockFinished(TextBlock(words)),
        MessageFinished(stop, USAGE),
    ]


def calls(*uses: ToolUse, stop: StopReason = StopReason.TOOL_USE) -> list[Step]:
    """A message that asks for tools."""
    steps: list[Step] = []
    for use in uses:
        steps += [ToolUseStarting(use.id, use.name), BlockFinished(use)]
    return [*steps, MessageFinished(stop, USAGE)]


def use(identifier: str, name: str = "Echo", tool_input: JsonObject | None = None) -> ToolUse:
    return ToolUse(identifier, name, tool_input or {})


class ScriptedModel:
    """Plays one reply per request and keeps the requests."""

    label = "scripted"

    def __init__(self, *replies: Sequence[Step]) -> None:
        self._replies = [list(reply) for reply in replies]
        self.requests: list[ModelRequest] = []
        self.closed_early = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if not self._replies:
            raise AssertionError("the script has no reply left")
        try:
            for step in self._replies.pop(0):
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
                    await asyncio.sleep(0)
        except (asyncio.CancelledError, GeneratorExit):
            self.closed_early += 1
            raise

    async def close(self) -> None:
        pass
