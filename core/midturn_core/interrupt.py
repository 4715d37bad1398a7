"""One-way signals: a turn has one, each batch and each call a child of it (D36).

A signal trips once and stays tripped; a child trips with its parent, never the other way round.
Tools get the read half (``Signal``). Tripping and reading are safe on any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from enum import Enum


class CancelReason(Enum):
    """Why a signal was tripped. The value is the sentence fragment told to the model."""

    INTERRUPT = "the user interrupted the turn"
    USER_MESSAGE = "the user sent a message"
    CALL_CANCELLED = "the user cancelled this call"
    FAIL_FAST = "fail_fast"
    TIMEOUT = "the time limit was reached"
    SHUTDOWN = "the program is closing"
    SUPERSEDED = "the message that asked for it does not count"
    """Its results are dropped: nobody but the tool hears of it (D38)."""


class Signal:
    """The read half: has it tripped, and why."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: CancelReason | None = None
        self._callbacks: dict[int, Callable[[CancelReason], None]] = {}
        self._next_key = 0

    @property
    def tripped(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> CancelReason | None:
        """Why it tripped; None while it has not."""
        return self._reason

    def on_trip(self, callback: Callable[[CancelReason], None]) -> Callable[[], None]:
        """Call ``callback`` when the signal trips (at once if it has); returns the unsubscriber.

        The callback runs on the tripping thread: it must be short and must not raise.
        """
        with self._lock:
            reason = self._reason
            key = self._next_key
            if reason is None:
                self._next_key += 1
                self._callbacks[key] = callback
        if reason is not None:
            callback(reason)

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return unsubscribe

    async def wait(self) -> CancelReason:
        """Wait on the running loop until the signal trips."""
        loop = asyncio.get_running_loop()
        tripped = asyncio.Event()

        def wake(_: CancelReason) -> None:
            # The loop may have closed meanwhile; then nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tripped.set)

        unsubscribe = self.on_trip(wake)
        try:
            await tripped.wait()
        finally:
            unsubscribe()
        assert self._reason is not None
        return self._reason


class SignalSource(Signal):
    """A signal with its write half. ``child()`` gives one that also trips when this one does."""

    def __init__(self) -> None:
        super().__init__()
        self._detach: Callable[[], None] = lambda: None

    def trip(self, reason: CancelReason) -> bool:
        """Trip the signal; False when it had tripped before (the first reason stays)."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback(reason)
        return True

    def child(self) -> SignalSource:
        source = SignalSource()

        def pass_on(reason: CancelReason) -> None:
            source.trip(reason)

        source._detach = self.on_trip(pass_on)
        return source

    def detach(self) -> None:
        """Let go of the parent, so that a long turn does not collect dead children."""
        self._detach()


class InterruptCoordinator:
    """Owns the signal of one turn.

    An interrupt names the turn it is meant for, so that one for a turn that has ended does
    nothing (D36).
    """

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.source = SignalSource()

    @property
    def signal(self) -> Signal:
        return self.source

    def interrupt(self, turn_id: str, reason: CancelReason = CancelReason.INTERRUPT) -> bool:
        """Trip the turn's signal; False when it names another turn or had tripped before."""
        return turn_id == self.turn_id and self.source.trip(reason)
