"""Compaction: the history gives way to a summary that the model writes of it.

When even the request for the summary does not fit, it is tried again with a plain transcript whose
oldest part and long tool results are cut, without the tools and with less room for the summary; a
small, fixed number of attempts, then a clear failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from midturn_core.conversation import Conversation
from midturn_core.errors import ContextFullError, ModelError
from midturn_core.events import (
    CompactionFinished,
    CompactionStarted,
    Emit,
    Event,
    RetryWaiting,
)
from midturn_core.interrupt import Signal
from midturn_core.model.client import ModelClient, ModelRequest
from midturn_core.model.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserMessage,
)
from midturn_core.model.reply import Reply, ReplyReader
from midturn_core.pictures import described

SHRINKING = ((300_000, 8_000), (60_000, 6_000), (15_000, 4_000), (4_000, 2_000))
"""Characters of the transcript, and most tokens of the summary, in the attempts after the first."""
RESULT_BUDGET = 600
"""Characters kept of each tool result in a transcript."""

REQUEST = (
    "Write a summary of this conversation that will replace it, so that the work can go on "
    "without anything else. Call no tool. Cover: what the user asked for, word for word where it "
    "matters; decisions and the reasons; files read and changed, with paths; what was found out; "
    "commands and their results that still matter; what is done, what is left, and the next step."
)
CUT = "\n\n[The summary was cut here at the output limit.]"
HEADER = "The conversation so far was replaced by this summary of it:\n\n"


class Compactor:
    """Compacts conversations; says so in events."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.usage = Usage()
        """Of the newest compaction."""

    async def compact(
        self,
        conversation: Conversation,
        model: ModelClient,
        request: ModelRequest,
        signal: Signal,
        *,
        automatic: bool,
        instructions: str = "",
    ) -> bool:
        """Replace the history by a summary; False when that failed and nothing was changed."""
        before, self.usage = len(conversation), Usage()
        self._emit(CompactionStarted(automatic))
        wish = f"{REQUEST}\n\nThe user adds: {instructions}" if instructions else REQUEST
        summary, error = "", "there is nothing to compact" if before == 0 else ""
        if not error:
            try:
                summary = await self._summarise(model, request, wish, signal)
                error = "" if summary else _failure(signal)
            except ModelError as failure:
                error = str(failure)
        if summary:
            conversation.compact(HEADER + summary)
        self._emit(CompactionFinished(before, len(conversation), error, self.usage))
        return bool(summary)

    async def _summarise(
        self, model: ModelClient, request: ModelRequest, wish: str, signal: Signal
    ) -> str:
        last: ModelError | None = None
        for attempt in _attempts(request, wish):
            try:
                reply = await self._read(model, attempt, signal)
            except ContextFullError as error:
                last = error
                continue
            if reply.cut is not None or reply.stop_reason is StopReason.REFUSAL:
                return ""
            if reply.stop_reason not in (StopReason.TOOL_USE, StopReason.CONTEXT_FULL):
                return _summary_in(reply)
            # It began to work, or ran out of room: what it wrote is no summary.
        if last is None:
            return ""
        raise last

    async def _read(self, model: ModelClient, request: ModelRequest, signal: Signal) -> Reply:
        reader = ReplyReader(self._only_waits)
        try:
            return await reader.read(model, request, signal, _Never())
        finally:
            self.usage += reader.take_spent()

    def _only_waits(self, event: Event) -> None:
        if isinstance(event, RetryWaiting):
            self._emit(event)


class _Never:
    """NOW inputs wait while a compaction runs (D1)."""

    async def wait(self) -> None:
        await asyncio.Event().wait()


def _summary_in(reply: Reply) -> str:
    text = "".join(b.text for b in reply.blocks if isinstance(b, TextBlock)).strip()
    return text + CUT if text and reply.stop_reason is StopReason.MAX_TOKENS else text


def _failure(signal: Signal) -> str:
    return "interrupted" if signal.tripped else "the model wrote no summary"


def _attempts(request: ModelRequest, wish: str) -> Iterator[ModelRequest]:
    messages = request.messages
    last = messages[-1]
    if isinstance(last, UserMessage):
        asked = (*messages[:-1], UserMessage((*last.blocks, TextBlock(wish))))
    else:
        asked = (*messages, UserMessage((TextBlock(wish),)))
    yield replace(request, messages=asked)
    text = transcript(messages)
    for characters, tokens in SHRINKING:
        part = text if len(text) <= characters else f"[older part cut]\n{text[-characters:]}"
        asked = (UserMessage((TextBlock(f"{part}\n\n{wish}"),)),)
        most = min(request.max_tokens, tokens)
        yield replace(request, messages=asked, tools=(), max_tokens=most)


def transcript(messages: tuple[Message, ...]) -> str:
    """The history as plain text, tool results cut."""
    lines: list[str] = []
    for message in messages:
        speaker = "Assistant" if isinstance(message, AssistantMessage) else "User"
        for block in message.blocks:
            match block:
                case TextBlock(text):
                    lines.append(f"{speaker}: {text}")
                case ImageBlock():
                    lines.append(f"{speaker}: [picture {block.name}: {described(block)}]")
                case ToolUse(_, name, tool_input):
                    lines.append(f"Tool call: {name} {dict(tool_input)}")
                case ToolUseResult():
                    cut = block.content[:RESULT_BUDGET]
                    more = len(block.content) - len(cut)
                    lines.append(f"Result: {cut}" + (f" [{more} characters cut]" if more else ""))
                case ThinkingBlock() | RedactedThinkingBlock():
                    pass
                case _:
                    assert_never(block)
    return "\n".join(lines)
