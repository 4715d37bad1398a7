"""Reading one message of the model, with what can cut it short or start it over.

A NOW input and an interrupt cut the stream: what was said so far counts, an unfinished tool use
does not (D1). A stream that fails after it began is started over, a bounded number of times and
with a pause; what was shown of it is marked as superseded (D38). Failures before the first event
are retried by the client itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, assert_never

from midturn_core.errors import ModelError
from midturn_core.events import (
    Emit,
    MessageEnded,
    MessageSuperseded,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    ToolUseAnnounced,
)
from midturn_core.interrupt import Signal
from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    ModelClient,
    ModelEvent,
    ModelRequest,
    RequestCounted,
    RetryScheduled,
    TextChunk,
    ThinkingChunk,
    ToolUseStarting,
)
from midturn_core.model.messages import (
    AssistantBlock,
    StopReason,
    TextBlock,
    ToolUse,
    Usage,
)
from midturn_core.model.retry_policy import LONGEST_WAIT

RESTART_PAUSES = (1.0, 3.0)
"""Seconds before each new start of a message whose stream failed; then the turn fails."""

_CUTS = (StopReason.MAX_TOKENS, StopReason.CONTEXT_FULL)

SLICE_SECONDS = 0.002
"""How long events that have arrived together are taken before others have a turn: keys wait."""


class Cut(Enum):
    """What ended a message early."""

    NOW = "now"
    INTERRUPT = "interrupt"


class NowSource(Protocol):
    """Tells when a NOW input is waiting."""

    def wait(self) -> Awaitable[None]: ...


class UseListener(Protocol):
    """Hears the tool uses of a message while it streams (D24)."""

    def complete(self, use: ToolUse) -> None:
        """A tool use is complete; the message may still change its mind about it (D37)."""
        ...

    def superseded(self) -> None:
        """The message failed: what was heard of it does not count, it may come again (D38)."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """One message of the model: its complete blocks, and how it ended."""

    blocks: tuple[AssistantBlock, ...]
    stop_reason: StopReason
    usage: Usage
    cut: Cut | None = None


class _Draft:
    """A message while it streams."""

    def __init__(self, listener: UseListener | None) -> None:
        self._listener = listener
        self.blocks: list[AssistantBlock] = []
        self.open_text: list[str] = []
        self.began = False
        self.usage = Usage()
        """As far as it is known."""
        self.finished: MessageFinished | None = None
        self.asked_at = time.monotonic()

    @property
    def age_ms(self) -> float:
        return max(time.monotonic() - self.asked_at, 0.0) * 1000

    def add(self, block: AssistantBlock) -> None:
        if isinstance(block, TextBlock):
            self.open_text.clear()
        self.blocks.append(block)
        if isinstance(block, ToolUse) and self._listener is not None:
            self._listener.complete(block)

    def supersede(self) -> None:
        if self._listener is not None:
            self._listener.superseded()

    def reply(self, cut: Cut | None) -> Reply:
        blocks = list(self.blocks)
        if self.open_text:
            blocks.append(TextBlock("".join(self.open_text)))
        if self.finished is None:
            return Reply(tuple(blocks), StopReason.END_TURN, self.usage, cut)
        if self.finished.stop_reason in _CUTS and _is_broken_use(blocks):
            blocks.pop()  # the limit fell into its input: it was never finished (D37)
        return Reply(tuple(blocks), self.finished.stop_reason, self.usage, cut)


def _may_start_over(error: ModelError, draft: _Draft) -> bool:
    """What failed before it began was tried again by the client already."""
    return draft.began and error.retryable and (error.retry_after or 0.0) <= LONGEST_WAIT


def _is_broken_use(blocks: list[AssistantBlock]) -> bool:
    """Its JSON is incomplete, or the cut came before any of it."""
    last = blocks[-1] if blocks else None
    return isinstance(last, ToolUse) and (last.input_error is not None or not last.input)


class ReplyReader:
    """Reads messages from a model client and emits what they say as it comes."""

    def __init__(self, emit: Emit, pauses: tuple[float, ...] = RESTART_PAUSES) -> None:
        self._emit = emit
        self._pauses = pauses
        self._spent = Usage()

    def take_spent(self) -> Usage:
        """The tokens of every try since the last call, of those too that were cut or failed."""
        spent, self._spent = self._spent, Usage()
        return spent

    async def read(
        self,
        model: ModelClient,
        request: ModelRequest,
        signal: Signal,
        now: NowSource,
        listener: UseListener | None = None,
    ) -> Reply:
        """One message, complete or cut; ``listener`` hears its tool uses as they come.

        Raises:
            ModelError: the request failed for good.
        """
        for attempt in range(len(self._pauses) + 1):
            draft = tried = _Draft(listener)
            consuming = self._consume(model, request, draft)
            try:
                cut = await _first_of(consuming, signal, now)
            except ModelError as error:
                draft.supersede()
                if draft.began:
                    self._emit(MessageSuperseded(str(error)))
                if not _may_start_over(error, draft) or attempt == len(self._pauses):
                    raise
                cut = await self._pause(attempt, error, signal, now)
                if cut is None:
                    continue
                draft = _Draft(listener)
            finally:
                self._spent += tried.usage
            reply = draft.reply(cut)
            ended = MessageEnded(reply.stop_reason, reply.usage, cut is not None, draft.age_ms)
            self._emit(ended)
            return reply
        raise AssertionError("the last attempt returns or raises")

    async def _consume(self, model: ModelClient, request: ModelRequest, draft: _Draft) -> None:
        async with contextlib.aclosing(model.stream(request)) as events:
            resumed = time.perf_counter()
            async for event in events:
                self._take(event, draft)
                if time.perf_counter() - resumed > SLICE_SECONDS:
                    await asyncio.sleep(0)
                    resumed = time.perf_counter()

    def _take(self, event: ModelEvent, draft: _Draft) -> None:
        match event:
            case RetryScheduled(attempt, attempts, delay, reason):
                draft.asked_at = time.monotonic() + delay
                self._emit(RetryWaiting(attempt, attempts, delay, reason))
                return
            case RequestCounted(usage):
                self._spent += draft.usage  # of a try before, which the client gave up
                draft.usage = usage
                return
            case TextChunk(text):
                draft.open_text.append(text)
                self._emit(TextDelta(text))
            case ThinkingChunk(text):
                self._emit(ThinkingDelta(text))
            case ToolUseStarting(tool_use_id, name):
                self._emit(ToolUseAnnounced(tool_use_id, name))
            case BlockFinished(block):
                draft.add(block)
            case MessageFinished():
                draft.finished = event
                draft.usage = event.usage
            case _:
                assert_never(event)
        draft.began = True

    async def _pause(
        self, attempt: int, error: ModelError, signal: Signal, now: NowSource
    ) -> Cut | None:
        delay = max(self._pauses[attempt], error.retry_after or 0.0)
        self._emit(RetryWaiting(attempt + 1, len(self._pauses), delay, str(error)))
        return await _first_of(asyncio.sleep(delay), signal, now)


async def _first_of(work: Awaitable[None], signal: Signal, now: NowSource) -> Cut | None:
    """Wait for ``work``, an interrupt or a NOW input; None when the work was done first."""
    working = asyncio.ensure_future(work)
    interrupted = asyncio.ensure_future(signal.wait())
    hastened = asyncio.ensure_future(now.wait())
    tasks = (working, interrupted, hastened)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
            return None
        return Cut.INTERRUPT if signal.tripped else Cut.NOW
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
