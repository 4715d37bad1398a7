"""``AskGate``: one question on screen at a time, in call order (S0.6, S1.39, D30)."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from midturn_core.events import AskAnswered, AskRequested, AskWithdrawn, Emit
from midturn_core.interrupt import CancelReason, Signal, SignalSource
from midturn_core.permission.ask import Ask, AskHandler, AskReply
from midturn_core.permission.decision import Decision, Verdict

_log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

Recheck: TypeAlias = Callable[[], Decision]


@dataclass(frozen=True, slots=True)
class Pointless:
    """Nobody needs to be asked: the call would fail with this error whatever is answered."""

    error: str


Look: TypeAlias = Callable[[Ask], Awaitable[Ask | Pointless]]
"""Completes a question that is about to be shown by what it would change, as things are now."""


CLOSED = Decision(Verdict.DENY, "the program is closing, so nobody can be asked")
FAILED = Decision(Verdict.DENY, "the question could not be shown, so nobody was asked")


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The question was taken back before it was answered."""

    reason: CancelReason


@dataclass(order=True, slots=True)
class _Waiting:
    """A question in the line; ``turn`` is done with None when it is on, else with what settled it."""

    order: tuple[int, int]
    arrival: int
    recheck: Recheck = field(compare=False)
    turn: asyncio.Future[Decision | None] = field(compare=False)


class AskGate:
    """Lets one question through at a time, whatever batch or agent it comes from.

    Used on the loop's thread only. Constructing it needs no running loop.
    """

    def __init__(self, handler: AskHandler, emit: Emit) -> None:
        self._handler = handler
        self._emit = emit
        self._closed = SignalSource()
        self._arrivals = itertools.count()
        self._line: list[_Waiting] = []
        self._busy = False

    async def ask(
        self,
        ask: Ask,
        recheck: Recheck,
        signal: Signal,
        on_reply: Callable[[AskReply], None] = lambda _: None,
        look: Look | None = None,
    ) -> AskReply | Decision | Withdrawal | Pointless:
        """Ask when it is this question's turn; waiting ones are sorted by ``ask.order``.

        Args:
            recheck: decides anew when the turn has come, and after each answer to another
                question: what is no longer an ASK is returned, and nobody is asked.
            signal: withdraws the question, waiting or on screen.
            on_reply: takes the answer before the next question is looked at.
            look: sees to it that the question is about what is there when it is shown.
        """
        with self._stopped_by(signal) as stopped, self._place_in_line(ask, recheck) as turn:
            await _first_of(turn, stopped)
            if stopped.done():
                return _stop(stopped.result())
            settled = turn.result() or recheck()
            if settled.verdict is not Verdict.ASK:
                return settled
            seen = ask if look is None else await _seen(look(ask), recheck, stopped)
            if not isinstance(seen, Ask):
                return seen
            reply = await self._show(seen, stopped)
            if isinstance(reply, AskReply):
                on_reply(reply)
                self.reconsider()
            return reply

    def reconsider(self) -> None:
        """Decide anew on all waiting questions, after an answer or a change of mode."""
        for waiting in sorted(self._line):
            if not waiting.turn.done():
                decision = waiting.recheck()
                if decision.verdict is not Verdict.ASK:
                    waiting.turn.set_result(decision)

    def close(self) -> None:
        """Withdraw the question on screen and answer all others, now and later, with no."""
        self._closed.trip(CancelReason.SHUTDOWN)

    async def _show(
        self, ask: Ask, stopped: asyncio.Future[CancelReason]
    ) -> AskReply | Decision | Withdrawal:
        self._emit(AskRequested(ask))
        answer = asyncio.ensure_future(self._handler.resolve(ask))
        try:
            await _first_of(answer, stopped)
        except asyncio.CancelledError:
            self._emit(AskWithdrawn(ask, "the call was cancelled"))
            raise
        finally:
            await _cancel_and_join(answer)
        # Both at once: the answer may be to what is no longer wanted, so it does not count.
        if stopped.done():
            self._emit(AskWithdrawn(ask, stopped.result().value))
            return _stop(stopped.result())
        failure = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        if failure is not None:
            # A broken handler means no, and the turn goes on.
            _log.error("the question about %s could not be shown", ask.tool, exc_info=failure)
            self._emit(AskWithdrawn(ask, FAILED.reason))
            return FAILED
        self._emit(AskAnswered(ask, answer.result()))
        return answer.result()

    @contextmanager
    def _stopped_by(self, signal: Signal) -> Generator[asyncio.Future[CancelReason]]:
        """A future that is done when the signal trips or the gate is closed."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[CancelReason] = loop.create_future()

        def stop(reason: CancelReason) -> None:
            if not stopped.done():
                stopped.set_result(reason)

        def on_trip(reason: CancelReason) -> None:
            loop.call_soon_threadsafe(stop, reason)

        for source in (self._closed, signal):
            if source.reason is not None:
                stop(source.reason)
        unsubscribers = [source.on_trip(on_trip) for source in (self._closed, signal)]
        try:
            yield stopped
        finally:
            for unsubscribe in unsubscribers:
                unsubscribe()
            stopped.cancel()

    @contextmanager
    def _place_in_line(
        self, ask: Ask, recheck: Recheck
    ) -> Generator[asyncio.Future[Decision | None]]:
        turn: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, _Waiting(ask.order, next(self._arrivals), recheck, turn))
        self._call_next()
        try:
            yield turn
        finally:
            if turn.done() and turn.result() is None:
                self._busy = False
            turn.cancel()
            self._call_next()

    def _call_next(self) -> None:
        while self._line and not self._busy:
            turn = heapq.heappop(self._line).turn
            if not turn.done():
                self._busy = True
                turn.set_result(None)


async def _first_of(one: asyncio.Future[T], other: asyncio.Future[U]) -> None:
    both: set[asyncio.Future[T] | asyncio.Future[U]] = {one, other}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)


async def _seen(
    looking: Awaitable[Ask | Pointless], recheck: Recheck, stopped: asyncio.Future[CancelReason]
) -> Ask | Pointless | Decision | Withdrawal:
    look = asyncio.ensure_future(looking)
    try:
        await _first_of(look, stopped)
    finally:
        await _cancel_and_join(look)
    if stopped.done():
        return _stop(stopped.result())
    # A mode or an answer may have settled it meanwhile, and permission comes before every look.
    settled = recheck()
    return look.result() if settled.verdict is Verdict.ASK else settled


def _stop(reason: CancelReason) -> Decision | Withdrawal:
    return CLOSED if reason is CancelReason.SHUTDOWN else Withdrawal(reason)


async def _cancel_and_join(task: asyncio.Future[T]) -> None:
    """Wait until the handler has really left the screen, even if this wait is cancelled too."""
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
