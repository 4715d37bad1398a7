"""``CallRecord``: what is known of one call, and telling it to whoever listens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

from midturn_core.dispatch.call_scope import BatchScope, CallPlace
from midturn_core.dispatch.types import CallReport
from midturn_core.events import CallPhase, Event, ToolPhaseChanged, ToolProgress, ToolResultReady
from midturn_core.model.messages import ToolUseResult


class CallRecord:
    """The phase of a call, the times of its tool, and its one result.

    It also holds the batch's clock while the time of the call does not count (D22).
    """

    def __init__(self, scope: BatchScope, place: CallPlace, safe: bool) -> None:
        self._scope = scope
        self._place = place
        self._safe = safe
        self.result: ToolUseResult | None = None
        self.discarded = False
        """Nobody hears of the call any more (D38)."""
        self.retried = False
        self._abandoned = False
        self._kept = not place.early
        self._when_kept: list[Callable[[], None]] = []
        self._phase: CallPhase | None = None
        self._holds_clock = False
        self._started: float | None = None
        self._ended: float | None = None

    @property
    def started(self) -> bool:
        """Whether its tool has run, or runs."""
        return self._started is not None

    @property
    def elapsed(self) -> float:
        """Seconds since its tool started."""
        assert self._started is not None
        return asyncio.get_running_loop().time() - self._started

    def announce(self, phase: CallPhase) -> None:
        if self.result is not None or phase is self._phase:
            return
        self._phase = phase
        self._hold_clock(
            phase is CallPhase.ASKING or (phase is CallPhase.RUNNING and not self._safe)
        )
        self._emit(ToolPhaseChanged(self._place.use.id, phase))

    def start(self) -> None:
        """The tool runs from now on."""
        self.announce(CallPhase.RUNNING)
        self._started = asyncio.get_running_loop().time()
        self._scope.on_running(self._place.use)

    def end(self) -> None:
        """The tool is over; what comes after it does not count (D22)."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().time()

    def finish(self, result: ToolUseResult) -> None:
        """The first result stands; anything later is discarded (D28)."""
        if self.result is not None:
            return
        duration = 0.0
        if self._started is not None:
            self.end()
            assert self._ended is not None
            duration = (self._ended - self._started) * 1000
        self._hold_clock(False)
        use = self._place.use
        self.result = replace(
            result,
            tool_use_id=use.id,
            name=use.name,
            duration_ms=duration,
            retried=self.retried,
        )
        self._emit(ToolResultReady(self._scope.batch.batch_id, self._place.index, self.result))
        if not self.discarded:
            self._scope.on_result(self.result)

    def abandon(self, task: asyncio.Task[object] | None) -> None:
        """Something of the call still runs, which nobody waits for (D28)."""
        self._abandoned = True
        self._scope.on_abandoned(task)

    def keep(self) -> None:
        """The message of a call that started early is complete: from now on the call counts."""
        self._kept = True
        while self._when_kept:
            self._when_kept.pop(0)()

    def run_when_kept(self, function: Callable[[], None]) -> None:
        if self._kept:
            function()
        else:
            self._when_kept.append(function)

    def progress_from_any_thread(self) -> Callable[[str], None]:
        """What the tool calls with a note on how far it is."""
        loop = asyncio.get_running_loop()

        def emit(note: str) -> None:
            if self.result is None:
                self._emit(ToolProgress(self._place.use.id, note))

        def progress(note: str) -> None:
            # An abandoned worker may speak after the loop has closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(emit, note)

        return progress

    def report(self) -> CallReport:
        assert self.result is not None
        return CallReport(
            index=self._place.index,
            tool_use=self._place.use,
            outcome=self.result.outcome,
            duration_ms=self.result.duration_ms,
            started=self._started,
            ended=self._ended,
            retried=self.retried,
            abandoned=self._abandoned,
            pooled=self._place.pooled,
            early=self._place.early,
        )

    def _hold_clock(self, hold: bool) -> None:
        if hold and not self._holds_clock:
            self._scope.clock.pause()
        elif self._holds_clock and not hold:
            self._scope.clock.resume()
        self._holds_clock = hold

    def _emit(self, event: Event) -> None:
        if not self.discarded:
            self._scope.emit(event)
