"""One batch on its way: all its calls, what cuts them, and the outcome in call order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from midturn_core.dispatch.call import BatchScope, CallExecution, CallPlace
from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.gate import shares_workers
from midturn_core.dispatch.pool import WorkerPool
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.report import build_report
from midturn_core.dispatch.runner import BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.segments import SegmentLine
from midturn_core.dispatch.slots import Permits, Slots
from midturn_core.dispatch.types import BatchOutcome, BatchReport, GateVerdict
from midturn_core.events import BatchFinished, BatchStarted, Emit, Event, ToolUseStarted
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult
from midturn_core.tool import PerCallConcurrency

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchResources:
    """What the dispatcher lends to a batch."""

    config: ToolConcurrencyConfig
    limits: StopLimits
    slots: Permits
    """The global tier, over all batches and contexts, as the context of the batch sees it."""
    shared_pool: Callable[[], WorkerPool]
    """The workers of calls that run together; created when the first of them needs it."""
    io_pool: Callable[[], WorkerPool]
    """The I/O worker of every other call."""
    keep: Callable[[asyncio.Task[object]], None]
    """Holds on to the task of an abandoned call until it ends by itself."""


class BatchExecution:
    """Runs the calls of one batch and cuts them when a signal says so."""

    def __init__(
        self,
        batch: ToolBatch,
        runner: CallRunner,
        emit: Emit,
        verdict: GateVerdict,
        resources: BatchResources,
    ) -> None:
        self.batch = batch
        self.verdict = verdict
        self._runner = runner
        self._listener = emit
        self._resources = resources
        self.abandoned = 0
        """Calls that could not be joined (D28)."""
        self._cancelled_by: CancelReason | None = None
        self._clock = BatchClock(resources.config.timeout_per_batch, self._on_batch_limit)
        self._signals: BatchSignals | None = None
        self._line = SegmentLine()
        self._share = Slots(resources.config.batch_slots)
        scope = self._scope()
        self._calls = [
            CallExecution(scope, self._place(index, use)) for index, use in enumerate(batch.uses)
        ]
        self.finished = asyncio.Event()

    async def execute(self, signals: BatchSignals) -> BatchOutcome:
        """Cancelling it cuts every call, joins them and raises again."""
        self._signals = signals
        self._line.begin(self.verdict.segments)
        self._emit_start()
        subscriptions = [
            signal.on_trip(self._on_trip()) for signal in (signals.turn, signals.batch)
        ]
        self._clock.start()
        try:
            await self._run_calls()
        finally:
            self._clock.stop()
            for unsubscribe in subscriptions:
                unsubscribe()
            report = self._report()
            self._emit(BatchFinished(report))
            self.finished.set()
        return BatchOutcome(tuple(self._results()), report)

    def stop(self, reason: CancelReason) -> None:
        """Cut every call that has no result yet; on the loop's thread only."""
        if any(call.result is None for call in self._calls):
            self._cancelled_by = _graver(self._cancelled_by, reason)
        for call in self._calls:
            call.request_stop(reason)

    def cancel_call(self, tool_use_id: str) -> bool:
        """Cut one call; False when the batch has no such call without a result."""
        for call in self._calls:
            if call.tool_use.id == tool_use_id and call.result is None:
                self._cancelled_by = _graver(self._cancelled_by, CancelReason.CALL_CANCELLED)
                call.request_stop(CancelReason.CALL_CANCELLED)
                return True
        return False

    async def _run_calls(self) -> None:
        tasks = [asyncio.create_task(call.run()) for call in self._calls]
        if not tasks:
            return
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self.stop(CancelReason.SHUTDOWN)
            await asyncio.wait(tasks)
            raise
        finally:
            # Only a second cancellation leaves some behind: they end on the spot.
            for call, task in zip(self._calls, tasks, strict=True):
                if task.cancel():
                    call.give_up()

    def _scope(self) -> BatchScope:
        resources = self._resources
        return BatchScope(
            batch=self.batch,
            runner=self._runner,
            emit=self._emit,
            config=resources.config,
            limits=resources.limits,
            clock=self._clock,
            line=self._line,
            on_result=self._on_result,
            on_abandoned=self._on_abandoned,
        )

    def _place(self, index: int, use: ToolUse) -> CallPlace:
        batch, resources = self.batch, self._resources
        count = len(batch.uses)
        if shares_workers(use, batch.registry, self.verdict):
            tiers = (self._share, resources.slots)
            return CallPlace(index, use, count, tiers, resources.shared_pool(), pooled=True)
        tool = batch.registry.get(use.name)
        own = (tool.places,) if isinstance(tool, PerCallConcurrency) else ()
        return CallPlace(index, use, count, own, resources.io_pool(), pooled=False)

    def _emit_start(self) -> None:
        batch = self.batch
        count = len(batch.uses)
        self._emit(BatchStarted(batch.batch_id, batch.step, count, self.verdict))
        for index, use in enumerate(batch.uses):
            title = self._title(use)
            self._emit(ToolUseStarted(batch.batch_id, index, count, use, title))

    def _title(self, use: ToolUse) -> str:
        try:
            return self._runner.title(use)
        except Exception:
            # Isolation wall: a banner without its argument is no reason to lose the call.
            log.warning("no title for %s (%s)", use.id, use.name, exc_info=True)
            return ""

    def _emit(self, event: Event) -> None:
        try:
            self._listener(event)
        except Exception:
            # Isolation wall: a listener never breaks order, join or another call (S1.24).
            log.exception("a listener failed on %s", type(event).__name__)

    def _on_trip(self) -> Callable[[CancelReason], None]:
        loop = asyncio.get_running_loop()

        def pass_on(reason: CancelReason) -> None:
            # Signals trip on any thread, perhaps after the loop has closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.stop, reason)

        return pass_on

    def _on_batch_limit(self) -> None:
        for call in self._calls:
            if call.safe:
                call.request_stop(CancelReason.TIMEOUT)

    def _on_result(self, result: ToolUseResult) -> None:
        failed = result.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
        if failed and self._resources.config.fail_fast and self._signals is not None:
            self._signals.batch.trip(CancelReason.FAIL_FAST)

    def _on_abandoned(self, task: asyncio.Task[object] | None) -> None:
        self.abandoned += 1
        if task is not None:
            self._resources.keep(task)

    def _results(self) -> list[ToolUseResult]:
        return [call.result for call in self._calls if call.result is not None]

    def _report(self) -> BatchReport:
        calls = [call.report() for call in self._calls]
        report = build_report(self.batch.batch_id, self.verdict, calls, self._resources.config)
        return replace(report, abandoned=self.abandoned, cancelled_by=self._cancelled_by)


def _graver(known: CancelReason | None, new: CancelReason) -> CancelReason:
    """A person's decision outweighs fail_fast; among decisions the first one stands."""
    return new if known is None or known is CancelReason.FAIL_FAST else known
