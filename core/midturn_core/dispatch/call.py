"""One call of a batch, from its place in the line to its one result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from midturn_core.dispatch import results
from midturn_core.dispatch.call_record import CallRecord
from midturn_core.dispatch.call_scope import BatchScope, CallPlace
from midturn_core.dispatch.completion import complete
from midturn_core.dispatch.pool import CallWorker
from midturn_core.dispatch.runner import BatchCall, PreparedCall
from midturn_core.dispatch.slots import SlotHold
from midturn_core.dispatch.supervision import RunTerms, StopRequests, Supervision
from midturn_core.dispatch.types import CallReport
from midturn_core.events import CallPhase
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult
from midturn_core.tool import ConcurrencyBehavior

T = TypeVar("T")

log = logging.getLogger(__name__)


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
        self._record = CallRecord(scope, place, self.safe)
        self._answer: ToolUseResult | None = None
        """What the tool left; its result, unless a stage after the slot changes it."""
        self._signal = SignalSource()
        self._requests = StopRequests()
        self._limit = scope.config.timeout_per_call

    @property
    def tool_use(self) -> ToolUse:
        return self._use

    @property
    def result(self) -> ToolUseResult | None:
        """None until it is known."""
        return self._record.result

    @property
    def discarded(self) -> bool:
        return self._record.discarded

    def request_stop(self, reason: CancelReason) -> None:
        """On the loop's thread only. Ignored once the call has its result."""
        self._requests.put(reason)

    def keep(self) -> None:
        """The message of a call that started early is complete: from now on the call counts."""
        self._record.keep()

    def discard(self) -> None:
        """The call counts for nothing: it is cut, and nobody hears of it any more (D38)."""
        self._record.discarded = True
        self.request_stop(CancelReason.SUPERSEDED)

    def report(self) -> CallReport:
        return self._record.report()

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
            announce=self._record.announce,
            progress=self._record.progress_from_any_thread(),
            when_kept=self._record.run_when_kept if self._place.early else None,
        )

    async def run(self) -> None:
        """Returns when the call has its result and nothing of it runs any more."""
        slot = SlotHold(self._place.tiers)
        self._record.announce(CallPhase.WAITING)
        try:
            prepared = await self._prepare()
            if prepared is not None and await self._take(slot):
                result = await self._run_tool(prepared)
                slot.release()
                if self.result is None:
                    self._record.finish(await complete(prepared, result, self._requests))
        except Exception as error:
            # Isolation wall: a mistake of ours costs this call, never the batch.
            log.exception("call %s failed outside its tool", self._use.id)
            self._record.finish(results.raised(self._use, error))
        finally:
            slot.release()
            self.give_up()
            if not self.discarded:
                self._scope.line.leave(self._index)

    def give_up(self) -> None:
        """End without waiting any longer; does nothing once the call has its result."""
        if self._answer is not None:
            self._record.finish(self._answer)
        elif not self._record.started:
            self._record.finish(results.skipped(self._use, CancelReason.SHUTDOWN))
        else:
            reason = CancelReason.SHUTDOWN
            self._record.finish(results.abandoned(self._use, self._record.elapsed, reason))

    async def _prepare(self) -> PreparedCall | None:
        most = self._scope.config.max_calls
        if self._index >= most:
            self._record.finish(results.over_batch_size(self._use, most))
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
            self._record.announce(CallPhase.WAITING)
            return prepared
        if prepared is not None:
            self._record.finish(prepared)
        return None

    async def _take(self, hold: SlotHold) -> bool:
        await self._unless_stopped(hold.acquire())
        return not self._skip_if_stopped()

    async def _run_tool(self, prepared: PreparedCall) -> ToolUseResult:
        declared = prepared.tool.time_limit(prepared.tool_input)
        if declared is not None:
            self._limit = min(declared, self._limit) if self.safe else declared
        self._record.start()
        result = await self._attempt(prepared)
        if self._may_retry(result):
            self._record.retried = True
            result = await self._attempt(prepared)
        self._answer = result
        self._record.end()
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
                    self._record.finish(result)
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
            terms, self._requests, self._signal, lambda: self._record.finish(self._timed_out())
        )

    def _result_of(
        self, task: asyncio.Task[ToolUseResult], worker: CallWorker, watch: Supervision
    ) -> ToolUseResult:
        if task.done() and not task.cancelled():
            return task.result()
        if watch.plan is None:
            return results.failed(self._use, "the tool was cancelled from within")
        seconds = self._record.elapsed
        if watch.join_time() == 0 and (worker.busy or not task.done()):
            return results.abandoned(self._use, seconds, watch.plan.reason)
        return results.stopped(self._use, seconds, watch.plan.reason)

    def _let_go(self, task: asyncio.Task[ToolUseResult], worker: CallWorker) -> None:
        busy = worker.close()
        if busy or not task.done():
            log.warning("call %s (%s) was abandoned", self._use.id, self._use.name)
            self._record.abandon(None if task.done() else task)

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
                    self._record.abandon(task)
        finally:
            task.cancel()
        return task.result() if task.done() and not task.cancelled() else None

    def _skip_if_stopped(self) -> bool:
        reason = self._requests.first
        if reason is None:
            return False
        self._signal.trip(reason)
        if reason is CancelReason.TIMEOUT:
            self._record.finish(self._timed_out())
        else:
            self._record.finish(results.skipped(self._use, reason))
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

    def _timed_out(self) -> ToolUseResult:
        if self._record.started and self._record.elapsed >= self._limit:
            return results.call_timed_out(self._use, self._limit)
        limit = self._scope.config.timeout_per_batch
        return results.batch_timed_out(self._use, limit, self._record.started)
