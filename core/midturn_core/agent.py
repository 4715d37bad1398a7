"""The turn loop: ask the model, run its tools, deliver what was typed, until nothing is left.

There are two delivery points and nothing else: the step boundary and the would-stop. The loop is
the only place that appends to the history during a turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from midturn_core.compaction import Compactor
from midturn_core.conversation import Conversation, FreshId
from midturn_core.delivery import InputDelivery, NowWatch
from midturn_core.dispatch.runner import BatchSignals
from midturn_core.dispatch.types import BatchOutcome, BatchReport
from midturn_core.errors import ContextFullError, ModelError, internal_error
from midturn_core.events import (
    DeliveryPoint,
    Emit,
    InputsDelivered,
    Notice,
    NoticeLevel,
    StepStarted,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
    UsageChanged,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason, InterruptCoordinator, Signal, SignalSource
from midturn_core.model.client import ModelClient, ModelRequest, ToolDefinition
from midturn_core.model.messages import (
    Outcome,
    StopReason,
    ToolUse,
    Usage,
)
from midturn_core.model.reply import RESTART_PAUSES, Cut, Reply, ReplyReader, UseListener
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.queue.types import QueuedInput

_log = logging.getLogger(__name__)

DEFAULT_MAX_STEPS = 100
MAX_CONTINUATIONS = 3
"""How often a message that was cut at max_tokens is asked to go on (D37)."""
STALL_REMINDER = 3
STALL_LIMIT = 6
"""Steps in a row in which every call failed (D39)."""

LOOP_NOTE_KEY = "turn-note"
CUT_NOTE = "Your message was cut at the output limit; what came after the cut was not received."
CONTINUE_NOTE = f"{CUT_NOTE} Go on exactly where it stopped."
STALL_NOTE = (
    f"Every tool call of the last {STALL_REMINDER} steps failed. Look at the errors before you "
    "call another tool; change the approach, or tell the user what stands in the way."
)
RETRY = "/retry sends the step again."
INTERRUPT_NOTE = "The user interrupted the turn here; what was running has been stopped."


class BatchRunner(Protocol):
    """Runs the tool uses of one message; exactly one result each, in call order."""

    def listening(
        self, step: int, fresh_id: FreshId
    ) -> AbstractAsyncContextManager[UseListener | None]:
        """Around one message and its batch: the listener hears the tool uses while it streams,
        and what it starts early and ``run`` does not take is over at the end (D24, D38).

        ``fresh_id`` gives the id under which the history will know a tool use.
        """
        ...

    async def run(
        self, uses: Sequence[ToolUse], step: int, signals: BatchSignals
    ) -> BatchOutcome: ...


@dataclass(slots=True)
class ModelSettings:
    """What a request asks for. Mutable: ``/model`` changes it between turns."""

    name: str
    max_tokens: int
    effort: str = ""


@dataclass(frozen=True, slots=True)
class AgentParts:
    """Everything a turn needs; wired once per context."""

    context_id: AgentRuntimeId
    conversation: Conversation
    model: ModelClient
    model_settings: ModelSettings
    system_prompt: Callable[[], str]
    """Asked before every request: it depends on whether parallel execution is on (S4.13)."""
    tool_definitions: Callable[[], tuple[ToolDefinition, ...]]
    batches: BatchRunner
    delivery: InputDelivery
    reminders: SystemReminderFormatter
    emit: Emit
    max_steps: int = DEFAULT_MAX_STEPS
    restart_pauses: tuple[float, ...] = RESTART_PAUSES
    """Seconds before a message whose stream failed is started over."""


@dataclass(slots=True)
class _Turn:
    id: str
    signal: Signal
    source: SignalSource
    now: NowWatch
    step: int = 0
    usage: Usage = field(default_factory=Usage)
    failed_steps: int = 0
    continuations: int = 0
    compacted: bool = False


class Agent:
    """One execution context: runs its turns one after another."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._emit = parts.emit
        self._conversation = parts.conversation
        self._reader = ReplyReader(parts.emit, parts.restart_pauses)
        self.compactor = Compactor(parts.emit)
        self.session_usage = Usage()
        self._delegated = Usage()
        self.context_tokens = 0

    @property
    def parts(self) -> AgentParts:
        return self._parts

    async def run_turn(
        self, inputs: Sequence[QueuedInput], interrupt: InterruptCoordinator
    ) -> TurnEnded:
        """Run one turn to its end. No inputs: send the history again as it is (``/retry``, D46).

        Every failure of the model becomes a ``TurnEnded`` with one sentence and a way out.
        """
        parts, began = self._parts, time.monotonic()
        turn = _Turn(interrupt.turn_id, interrupt.signal, interrupt.source, parts.delivery.watch())
        parts.delivery.attach(turn.now)
        error = way_out = ""
        try:
            self._say(inputs)
            self._emit(TurnStarted(parts.context_id, turn.id, tuple(inputs)))
            reason = await self._steps(turn)
        except ModelError as failure:
            reason, error, way_out = TurnEndReason.FAILED, str(failure), failure.way_out
        except Exception as failure:
            # A wall: a turn that has begun also ends on the screen, whatever is wrong with us.
            _log.exception("a turn raised")
            reason, error, way_out = TurnEndReason.FAILED, internal_error(failure), RETRY
            self._conversation.close_pending("stopped: Midturn failed", Outcome.STOPPED)
        finally:
            parts.delivery.detach(turn.now)
            # Only a cancelled task gets here with open calls: the history stays valid.
            self._conversation.close_pending("stopped: the program is closing", Outcome.STOPPED)
        duration_ms = (time.monotonic() - began) * 1000
        ended = TurnEnded(
            parts.context_id, turn.id, reason, turn.step, turn.usage, duration_ms, error, way_out
        )
        self._emit(ended)
        return ended

    def add_delegated(self, usage: Usage) -> None:
        """Count what a subagent has spent, for the session and for the turn that runs."""
        self.session_usage += usage
        self._delegated += usage

    async def compact(self, interrupt: InterruptCoordinator, instructions: str = "") -> bool:
        """Replace the history by a summary of it (``/compact``); False when that failed."""
        return await self._compact(interrupt.signal, automatic=False, instructions=instructions)

    async def _steps(self, turn: _Turn) -> TurnEndReason:
        while True:
            if turn.signal.tripped:
                return self._interrupted()
            if ended := self._limit_reached(turn):
                return ended
            turn.step += 1
            self._emit(StepStarted(turn.step))
            listening = self._parts.batches.listening(turn.step, self._conversation.fresh_id)
            async with listening as listener:
                reply = await self._ask_model(turn, listener)
                ended = None if reply is None else await self._after_reply(turn, reply)
            if ended is not None:
                return ended

    async def _after_reply(self, turn: _Turn, reply: Reply) -> TurnEndReason | None:
        """What a message leads to; None: another step."""
        message = self._conversation.add_assistant(reply.blocks)
        uses = message.tool_uses if message else ()
        if uses:
            return await self._run_tools(turn, uses, reply)
        if turn.signal.tripped:
            # Also when the last word came in the same moment: a dying turn drains nothing (D36).
            return self._interrupted()
        if reply.cut is Cut.NOW:
            point = DeliveryPoint.STREAM_CUT if message else DeliveryPoint.BEFORE_ANSWER
            return await self._deliver_after_cut(turn, point)
        if reply.stop_reason is StopReason.REFUSAL:
            return TurnEndReason.REFUSED
        if message is None and reply.stop_reason is not StopReason.MAX_TOKENS:
            self._emit(Notice(NoticeLevel.WARNING, "The model's answer was empty."))
        return await self._would_stop(turn, reply.stop_reason)

    async def _ask_model(self, turn: _Turn, listener: UseListener | None) -> Reply | None:
        """One message; None when the history was compacted instead and the step starts over."""
        parts = self._parts
        try:
            reply = await self._reader.read(
                parts.model, self._request(), turn.signal, turn.now, listener
            )
            if reply.stop_reason is StopReason.CONTEXT_FULL and not reply.blocks:
                raise ContextFullError("The conversation no longer fits into the model's window.")
        except ContextFullError:
            if turn.compacted:
                raise
            turn.compacted = True
            if not await self._compact(turn.signal, automatic=True) and not turn.signal.tripped:
                raise
            return None
        finally:
            self._count_tokens(turn)
        self.context_tokens = reply.usage.context_tokens or self.context_tokens
        self._emit(UsageChanged(turn.usage, self.session_usage, self.context_tokens))
        return reply

    def _count_tokens(self, turn: _Turn) -> None:
        """Of the message that was read, and of every try that came to nothing."""
        spent = self._reader.take_spent()
        turn.usage += spent
        self.session_usage += spent

    async def _run_tools(
        self, turn: _Turn, uses: Sequence[ToolUse], reply: Reply
    ) -> TurnEndReason | None:
        """The calls of a message that was cut go the same way: their batch is cut from its
        beginning, so that each gets a true result (D1, D36).
        """
        outcome = await self._run_batch(turn, uses, reply.cut)
        notes = [CUT_NOTE] if reply.stop_reason is StopReason.MAX_TOKENS else []
        stalled = self._count_stall(turn, outcome.report)
        if stalled == STALL_REMINDER:
            notes.append(STALL_NOTE)
        if turn.signal.tripped:
            self._conversation.add_results(outcome.results)
            return self._interrupted()
        ended = self._limit_reached(turn, stalled)
        items = [] if ended else await self._parts.delivery.at_step_boundary()
        texts = (*map(self._note, notes), *self._parts.delivery.as_reminders(items))
        self._conversation.add_results(outcome.results, texts, _uuids(items))
        self._parts.delivery.confirm(items)
        cut = reply.cut is Cut.NOW
        point = DeliveryPoint.STREAM_CUT if cut else DeliveryPoint.STEP_BOUNDARY
        self._delivered(turn, items, point)
        return ended

    def _limit_reached(self, turn: _Turn, stalled: int = 0) -> TurnEndReason | None:
        """Why no further step comes. Nothing is drained then: nobody would answer it."""
        if stalled >= STALL_LIMIT:
            return TurnEndReason.STALLED
        return TurnEndReason.STEP_LIMIT if turn.step >= self._parts.max_steps else None

    async def _run_batch(
        self, turn: _Turn, uses: Sequence[ToolUse], cut: Cut | None
    ) -> BatchOutcome:
        """A NOW input trips the batch's own signal, an interrupt the turn's (D36)."""
        signals = BatchSignals.under(turn.source)
        if cut is Cut.NOW:
            signals.batch.trip(CancelReason.USER_MESSAGE)
        hastening = asyncio.create_task(_trip_on_now(turn.now, signals.batch))
        try:
            return await self._parts.batches.run(uses, turn.step, signals)
        finally:
            hastening.cancel()
            signals.batch.detach()
            turn.usage += self._delegated
            self._delegated = Usage()

    async def _deliver_after_cut(self, turn: _Turn, point: DeliveryPoint) -> TurnEndReason | None:
        ended = self._limit_reached(turn)
        items = [] if ended else await self._parts.delivery.at_step_boundary()
        self._say(items)
        self._ensure_users_word("The user stopped your message here; go on.")
        self._delivered(turn, items, point)
        return ended

    async def _would_stop(self, turn: _Turn, stop_reason: StopReason) -> TurnEndReason | None:
        items = [] if self._limit_reached(turn) else await self._parts.delivery.at_would_stop()
        cut_short = stop_reason in (StopReason.MAX_TOKENS, StopReason.PAUSE_TURN)
        if cut_short and turn.continuations < MAX_CONTINUATIONS:
            turn.continuations += 1
            self._conversation.add_user_text(self._note(CONTINUE_NOTE))
        elif not items:
            return TurnEndReason.DONE
        self._say(items)
        self._delivered(turn, items, DeliveryPoint.TURN_END)
        return None

    def _interrupted(self) -> TurnEndReason:
        """Tell the model; nothing is drained any more (D36)."""
        self._conversation.add_user_text(self._note(INTERRUPT_NOTE))
        return TurnEndReason.INTERRUPTED

    def _ensure_users_word(self, note: str) -> None:
        """A cut whose input was removed meanwhile leaves nothing to say; the model goes on."""
        if not self._conversation.awaits_model:
            self._conversation.add_user_text(self._note(note))

    def _say(self, items: Sequence[QueuedInput]) -> None:
        """Append queued inputs as what the user says, and let the store forget them (D12)."""
        prompts = self._parts.delivery.as_prompts(items)
        self._conversation.add_user_text(*prompts, inputs=_uuids(items))
        self._parts.delivery.confirm(items)

    def _delivered(self, turn: _Turn, items: Sequence[QueuedInput], point: DeliveryPoint) -> None:
        if items:
            self._emit(InputsDelivered(tuple(items), point, turn.step))

    def _count_stall(self, turn: _Turn, report: BatchReport) -> int:
        """How many steps in a row failed altogether; cancelled batches do not count (D39)."""
        if report.cancelled_by not in (None, CancelReason.FAIL_FAST):
            return 0
        turn.failed_steps = turn.failed_steps + 1 if report.every_call_failed else 0
        return turn.failed_steps

    async def _compact(self, signal: Signal, *, automatic: bool, instructions: str = "") -> bool:
        compacted = await self.compactor.compact(
            self._conversation,
            self._parts.model,
            self._request(),
            signal,
            automatic=automatic,
            instructions=instructions,
        )
        self.session_usage += self.compactor.usage
        return compacted

    def _request(self) -> ModelRequest:
        parts, settings = self._parts, self._parts.model_settings
        return ModelRequest(
            system=parts.system_prompt(),
            messages=self._conversation.messages,
            tools=parts.tool_definitions(),
            model=settings.name,
            max_tokens=settings.max_tokens,
            effort=settings.effort,
        )

    def _note(self, text: str) -> str:
        return self._parts.reminders.wrap(LOOP_NOTE_KEY, text)


def _uuids(items: Sequence[QueuedInput]) -> list[str]:
    return [item.uuid for item in items]


async def _trip_on_now(now: NowWatch, signals: SignalSource) -> None:
    await now.wait()
    signals.trip(CancelReason.USER_MESSAGE)
