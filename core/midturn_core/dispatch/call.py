"""One call of a batch, from its place in the line to its one result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from midturn_core.dispatch import results
from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.completion import complete
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.pool import CallWorker, WorkerPool
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import BatchCall, CallRunner, PreparedCall, ToolBatch
from midturn_core.dispatch.segments import SegmentLine
from midturn_core.dispatch.slots import Permits, SlotHold
from midturn_core.dispatch.supervision import RunTerms, StopRequests, Supervision
from midturn_core.dispatch.types import CallReport
from midturn_core.events import (
    CallPhase,
    Emit,
    Event,
    ToolPhaseChanged,
    ToolProgress,
    ToolResultReady,
)
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult
from midturn_core.tool import ConcurrencyBehavior

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchScope:
    """What the calls of one batch share."""

    batch: ToolBatch
    runner: CallRunner
    emit: Emit
    """Never raises."""
    config: ToolConcurrencyConfig
    limits: StopLimits
    clock: BatchClock
    line: SegmentLine
    """Passed before anything else."""
    on_running: Callable[[CallExecution], None]
    on_result: Callable[[CallExecution], None]
    on_abandoned: Callable[[asyncio.Task[object] | None], None]


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call stands in its batch, and what its tool runs on."""

    index: int
    use: ToolUse
    count: int
    """Calls of the batch that are known."""
    tiers: tuple[Permits, ...]
    """Taken right before the tool: the batch's permit, then the pool's slot (S1.15); or one of
    the places that the tool itself has."""
    pool: WorkerPool
    pooled: bool
    """Whether a slot of the dispatch pool is among them."""
    early: bool = False
    """It starts before its message is complete, and counts only once it is kept (D24)."""


class CallExecution:
    """Takes one call through its stages and gives it exactly one result, whatever happens.

    Reasons to stop arrive by ``request_stop`` and are answered where the call stands: one that
    has not started is skipped, a running one reacts by its declared behaviour.
    """

    def __init__(self, scope: BatchScope, place: CallPlace) -> None:
        self._scope = scope
        self._place = place
        self._index = place.index
        self._use = place.use
        tool = scope.batch.registry.get(self._use.name)
        self.safe = (
            tool is not None
            and tool.get_concurrency_behavior() is ConcurrencyBehavior.CONCURRENT_SAFE
        )
        self.result: ToolUseResult | None = None
        self._answer: ToolUseResult | None = None
        """What the tool left; its result, unless a stage after the slot changes it."""
        self.discarded = False
        self._kept = not place.early
        self._when_kept: list[Callable[[], None]] = []
        self._signal = SignalSource()
        self._requests = StopRequests()
        self._phase: CallPhase | None = None
        self._paused_clock = False
        self._started: float | None = None
        self._ended: float | None = None
        self._limit = scope.config.timeout_per_call
        self._retried = False
        self._abandoned = False

    @property
    def tool_use(self) -> ToolUse:
        return self._use

    def request_stop(self, reason: CancelReason) -> None:
        """On the loop's thread only. Ignored once the call has its result."""
        self._requests.put(reason)

    def keep(self) -> None:
        """The message of a call that started early is complete: from now on the call counts."""
        self._kept = True
        while self._when_kept:
            self._when_kept.pop(0)()

    def discard(self) -> None:
        """The call counts for nothing: it is cut, and nobody hears of it any more (D38)."""
        self.discarded = True
        self.request_stop(CancelReason.SUPERSEDED)

    def report(self) -> CallReport:
        assert self.result is not None
        return CallReport(
            index=self._index,
            tool_use=self._use,
            outcome=self.result.outcome,
            duration_ms=self.result.duration_ms,
            started=self._started,
            ended=self._ended,
            retried=self._retried,
            abandoned=self._abandoned,
            pooled=self._place.pooled,
            early=self._place.early,
        )

    async def run(self) -> None:
        """Returns when the call has its result and nothing of it runs any more."""
        slot = SlotHold(self._place.tiers)
        self._announce(CallPhase.WAITING)
        try:
            prepared = await self._prepare()
            if prepared is not None and await self._take(slot):
                result = await self._run_tool(prepared)
                slot.release()
                if self.result is None:
                    self._finish(await complete(prepared, result, self._requests))
        except Exception as error:
            # Isolation wall: a mistake of ours costs this call, never the batch.
            log.exception("call %s failed outside its tool", self._use.id)
            self._finish(results.raised(self._use, error))
        finally:
            slot.release()
            self.give_up()
            if not self.discarded:
                self._scope.line.leave(self._index)

    def give_up(self) -> None:
        """End without waiting any longer; does nothing once the call has its result."""
        if self._answer is not None:
            self._finish(self._answer)
        elif self._started is None:
            self._finish(results.skipped(self._use, CancelReason.SHUTDOWN))
        else:
            reason = CancelReason.SHUTDOWN
            self._finish(results.abandoned(self._use, self._elapsed(), reason))

    async def _prepare(self) -> PreparedCall | None:
        most = self._scope.config.max_calls
        if self._index >= most:
            self._finish(results.over_batch_size(self._use, most))
            return None
        if not self._place.early:
            await self._unless_stopped(self._scope.line.enter(self._index))
        if self._skip_if_stopped():
            return None
        call = self.batch_call()
        prepared: PreparedCall | ToolUseResult | None = await self._unless_stopped(
            self._guarded(lambda: self._scope.runner.prepare(call))
        )
        if isinstance(prepared, PreparedCall):
            self._announce(CallPhase.WAITING)
            return prepared
        if prepared is not None:
            self._finish(prepared)
        return None

    async def _take(self, hold: SlotHold) -> bool:
        await self._unless_stopped(hold.acquire())
        return not self._skip_if_stopped()

    async def _run_tool(self, prepared: PreparedCall) -> ToolUseResult:
        declared = prepared.tool.time_limit(prepared.tool_input)
        if declared is not None:
            self._limit = min(declared, self._limit) if self.safe else declared
        self._announce(CallPhase.RUNNING)
        self._started = asyncio.get_running_loop().time()
        self._scope.on_running(self)
        result = await self._attempt(prepared)
        if self._may_retry(result):
            self._retried = True
            result = await self._attempt(prepared)
        self._answer = result
        self._note_end()
        return result

    def _may_retry(self, result: ToolUseResult) -> bool:
        """D26. A call that was told to stop has no second try."""
        return (
            self._scope.config.retry_failed
            and self.safe
            and result.outcome is Outcome.FAILED
            and not self._signal.tripped
            and self._requests.first is None
        )

    async def _attempt(self, prepared: PreparedCall) -> ToolUseResult:
        worker = CallWorker(self._place.pool)
        watch = self._supervision(prepared)
        task = asyncio.create_task(
            self._guarded(lambda: self._scope.runner.run(prepared, worker.run_blocking)),
            name=f"tool use {self._use.id}",
        )
        try:
            await watch.watch(task)
            result = self._result_of(task, worker, watch)
            if task.done():
                if watch.plan is not None:
                    # What is known is shown at once; only then is the worker waited for.
                    self._finish(result)
                await worker.join(watch.join_time())
            return result
        finally:
            task.cancel()
            self._let_go(task, worker)

    def _supervision(self, prepared: PreparedCall) -> Supervision:
        terms = RunTerms(
            limit=self._limit,
            safe=self.safe,
            interrupt=prepared.tool.get_interrupt_behavior(),
            stop_limits=self._scope.limits,
        )
        return Supervision(
            terms, self._requests, self._signal, lambda: self._finish(self._timed_out())
        )

    def _result_of(
        self, task: asyncio.Task[ToolUseResult], worker: CallWorker, watch: Supervision
    ) -> ToolUseResult:
        if task.done() and not task.cancelled():
            return task.result()
        if watch.plan is None:
            return results.failed(self._use, "the tool was cancelled from within")
        seconds = self._elapsed()
        if watch.join_time() == 0 and (worker.busy or not task.done()):
            return results.abandoned(self._use, seconds, watch.plan.reason)
        return results.stopped(self._use, seconds, watch.plan.reason)

    def _let_go(self, task: asyncio.Task[ToolUseResult], worker: CallWorker) -> None:
        busy = worker.close()
        if busy or not task.done():
            log.warning("call %s (%s) was abandoned", self._use.id, self._use.name)
            self._abandon(None if task.done() else task)

    def _abandon(self, task: asyncio.Task[Any] | None) -> None:
        self._abandoned = True
        self._scope.on_abandoned(task)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The value of ``work``; None when a stop was asked for first (work is then undone)."""
        task = asyncio.create_task(work)
        try:
            await self._requests.wait_beside(task)
            if not task.done():
                self._skip_if_stopped()
                task.cancel()
                await asyncio.wait((task,), timeout=self._scope.limits.join)
                if not task.done():
                    self._abandon(task)
        finally:
            task.cancel()
        return task.result() if task.done() and not task.cancelled() else None

    def _skip_if_stopped(self) -> bool:
        reason = self._requests.first
        if reason is None:
            return False
        self._signal.trip(reason)
        if reason is CancelReason.TIMEOUT:
            self._finish(self._timed_out())
        else:
            self._finish(results.skipped(self._use, reason))
        return True

    async def _guarded(self, stage: Callable[[], Awaitable[T | None]]) -> T | ToolUseResult:
        try:
            value = await stage()
        except Exception as error:
            # Isolation wall: whatever a tool or the permission stage raises is this call's alone.
            log.warning("call %s (%s) raised", self._use.id, self._use.name, exc_info=True)
            return results.raised(self._use, error)
        if value is None:
            return results.failed(self._use, "no result was returned")
        return value

    def _note_end(self) -> float:
        """The tool is over; what comes after it does not count (D22)."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().time()
        return self._ended

    def _timed_out(self) -> ToolUseResult:
        if self._started is not None and self._elapsed() >= self._limit:
            return results.call_timed_out(self._use, self._limit)
        limit = self._scope.config.timeout_per_batch
        return results.batch_timed_out(self._use, limit, self._started is not None)

    def _elapsed(self) -> float:
        assert self._started is not None
        return asyncio.get_running_loop().time() - self._started

    def batch_call(self) -> BatchCall:
        """The call as its runner gets it."""
        batch = self._scope.batch
        return BatchCall(
            tool_use=self._use,
            batch_id=batch.batch_id,
            step=batch.step,
            index=self._index,
            count=self._place.count,
            signal=self._signal,
            announce=self._announce,
            progress=self._progress_from_any_thread(),
            when_kept=self._run_when_kept if self._place.early else None,
        )

    def _run_when_kept(self, function: Callable[[], None]) -> None:
        if self._kept:
            function()
        else:
            self._when_kept.append(function)

    def _announce(self, phase: CallPhase) -> None:
        if self.result is not None or phase is self._phase:
            return
        self._phase = phase
        self._pause_clock(
            phase is CallPhase.ASKING or (phase is CallPhase.RUNNING and not self.safe)
        )
        self._emit(ToolPhaseChanged(self._use.id, phase))

    def _pause_clock(self, pause: bool) -> None:
        if pause and not self._paused_clock:
            self._scope.clock.pause()
        elif self._paused_clock and not pause:
            self._scope.clock.resume()
        self._paused_clock = pause

    def _progress_from_any_thread(self) -> Callable[[str], None]:
        loop = asyncio.get_running_loop()

        def emit(note: str) -> None:
            if self.result is None:
                self._emit(ToolProgress(self._use.id, note))

        def progress(note: str) -> None:
            # An abandoned worker may speak after the loop has closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(emit, note)

        return progress

    def _finish(self, result: ToolUseResult) -> None:
        """The first result stands; anything later is discarded (D28)."""
        if self.result is not None:
            return
        duration = 0.0
        if self._started is not None:
            duration = (self._note_end() - self._started) * 1000
        self._pause_clock(False)
        self.result = replace(
            result,
            tool_use_id=self._use.id,
            name=self._use.name,
            duration_ms=duration,
            retried=self._retried,
        )
        self._emit(ToolResultReady(self._scope.batch.batch_id, self._index, self.result))
        if not self.discarded:
            self._scope.on_result(self)

    def _emit(self, event: Event) -> None:
        if not self.discarded:
            self._scope.emit(event)
