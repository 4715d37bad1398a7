"""One batch on its way: all its calls, what cuts them, and the outcome in call order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from midturn_core.dispatch.call import CallExecution
from midturn_core.dispatch.call_scope import BatchScope, CallPlace
from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.event_hold import EventHold
from midturn_core.dispatch.gate import shares_workers
from midturn_core.dispatch.pool import WorkerPool
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.report import build_report, overlap_ms
from midturn_core.dispatch.runner import BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.segments import SegmentLine
from midturn_core.dispatch.slots import Permits, Slots
from midturn_core.dispatch.types import BatchOutcome, BatchReport, GateVerdict
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    Emit,
    Event,
    ToolUseEndedEarly,
    ToolUseStarted,
    ToolUseStartedEarly,
)
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
    """Runs the calls of one batch and cuts them when a signal says so.

    Calls of it may start before the batch is complete (``start_early``, D24); then ``execute``
    goes on with them or ``drop`` ends them. One of the two is called, once.
    """

    def __init__(
        self, batch: ToolBatch, runner: CallRunner, emit: Emit, resources: BatchResources
    ) -> None:
        self.batch = batch
        """Without its uses until it is complete."""
        self.abandoned = 0
        """Calls that could not be joined (D28)."""
        self.finished = asyncio.Event()
        self._runner = runner
        self._listener = emit
        self._resources = resources
        self._verdict = GateVerdict(parallel=False)
        self._cancelled_by: CancelReason | None = None
        self._clock = BatchClock(resources.config.timeout_per_batch, self._on_batch_limit)
        self._signals: BatchSignals | None = None
        self._complete_at: float | None = None
        """On the loop's clock; None while the message still streams."""
        self._line = SegmentLine()
        self._share = Slots(resources.config.batch_slots)
        self._hold = EventHold(self._emit)
        self._scope = self._make_scope()
        self._early: dict[int, CallExecution] = {}
        self._calls: list[CallExecution] = []
        """In call order, once the batch is complete."""
        self._tasks: dict[CallExecution, asyncio.Task[None]] = {}

    @property
    def config(self) -> ToolConcurrencyConfig:
        """The settings that hold for this batch to its end."""
        return self._resources.config

    @property
    def uses_pool(self) -> bool:
        return self._verdict.parallel or bool(self._early)

    def start_early(self, index: int, use: ToolUse) -> None:
        """Start a safe call now, unless its input, a rule or a person may still stand against it."""
        call = CallExecution(self._scope, self._shared_place(index, use, index + 1, early=True))
        if self._may_start_early(call):
            self._early[index] = call
            self._start(call)

    async def execute(
        self, batch: ToolBatch, verdict: GateVerdict, signals: BatchSignals
    ) -> BatchOutcome:
        """Cancelling it cuts every call, joins them and raises again."""
        self.batch, self._verdict, self._signals = batch, verdict, signals
        self._complete_at = asyncio.get_running_loop().time()
        dropped = self._settle_early()
        self._line.begin(verdict.segments)
        self._emit_start()
        self._hold.release(without=dropped)
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

    async def drop(self) -> None:
        """Cut and join what started early; nothing of it is emitted or kept (D38)."""
        for call in self._tasks:
            call.discard()
        try:
            await self._join()
        finally:
            self.finished.set()

    def stop(self, reason: CancelReason) -> None:
        """Cut every call that has no result yet; on the loop's thread only."""
        if any(call.result is None for call in self._counting()):
            self._cancelled_by = _graver(self._cancelled_by, reason)
        for call in self._tasks:
            call.request_stop(reason)

    def cancel_call(self, tool_use_id: str) -> bool:
        """Cut one call; False when the batch has no such call without a result."""
        for call in self._counting():
            if call.tool_use.id == tool_use_id and call.result is None:
                self._cancelled_by = _graver(self._cancelled_by, CancelReason.CALL_CANCELLED)
                call.request_stop(CancelReason.CALL_CANCELLED)
                return True
        return False

    def _settle_early(self) -> set[str]:
        """Take what started early into the batch; returns the ids of what it does not ask for."""
        uses = self.batch.uses
        kept: dict[int, CallExecution] = {}
        for index, call in self._early.items():
            if index < len(uses) and uses[index] == call.tool_use:
                kept[index] = call
                call.keep()
            else:
                call.discard()
        self._calls = [
            kept[index] if index in kept else CallExecution(self._scope, self._place(index, use))
            for index, use in enumerate(uses)
        ]
        return {call.tool_use.id for call in self._early.values() if call.discarded}

    async def _run_calls(self) -> None:
        for call in self._calls:
            if call not in self._tasks:
                self._start(call)
            elif call.result is not None:
                self._on_result(call.result)
        await self._join()

    def _start(self, call: CallExecution) -> None:
        self._tasks[call] = asyncio.create_task(call.run())

    async def _join(self) -> None:
        if not self._tasks:
            return
        try:
            await asyncio.wait(self._tasks.values())
        except asyncio.CancelledError:
            self.stop(CancelReason.SHUTDOWN)
            await asyncio.wait(self._tasks.values())
            raise
        finally:
            # Only a second cancellation leaves some behind: they end on the spot.
            for call, task in self._tasks.items():
                if task.cancel():
                    call.give_up()

    def _counting(self) -> list[CallExecution]:
        return [call for call in self._tasks if not call.discarded]

    def _make_scope(self) -> BatchScope:
        resources = self._resources
        return BatchScope(
            batch=self.batch,
            runner=self._runner,
            emit=self._hold,
            config=resources.config,
            limits=resources.limits,
            clock=self._clock,
            line=self._line,
            on_running=self._on_running,
            on_result=self._on_result,
            on_abandoned=self._on_abandoned,
        )

    def _place(self, index: int, use: ToolUse) -> CallPlace:
        batch = self.batch
        count = len(batch.uses)
        if shares_workers(use, batch.registry, self._verdict):
            return self._shared_place(index, use, count)
        tool = batch.registry.get(use.name)
        own = (tool.places,) if isinstance(tool, PerCallConcurrency) else ()
        return CallPlace(index, use, count, own, self._resources.io_pool(), pooled=False)

    def _shared_place(
        self, index: int, use: ToolUse, count: int, *, early: bool = False
    ) -> CallPlace:
        tiers, pool = (self._share, self._resources.slots), self._resources.shared_pool()
        return CallPlace(index, use, count, tiers, pool, pooled=True, early=early)

    def _may_start_early(self, call: CallExecution) -> bool:
        try:
            return self._runner.may_start_early(call.batch_call())
        except Exception:
            # Isolation wall: what is wrong with the call is told when its batch runs it.
            log.debug("no early start for %s", call.tool_use.id, exc_info=True)
            return False

    def _emit_start(self) -> None:
        batch = self.batch
        count = len(batch.uses)
        self._emit(BatchStarted(batch.batch_id, batch.step, count, self._verdict))
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

    def _on_running(self, use: ToolUse) -> None:
        if self._complete_at is None:
            self._emit(ToolUseStartedEarly(use.id, use.name, self._title(use)))

    def _on_result(self, result: ToolUseResult) -> None:
        if self._signals is None:
            # The batch looks at it again when it is complete.
            self._emit(ToolUseEndedEarly(result.tool_use_id, result.duration_ms))
            return
        failed = result.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
        if failed and self._resources.config.fail_fast:
            self._signals.batch.trip(CancelReason.FAIL_FAST)

    def _on_abandoned(self, task: asyncio.Task[object] | None) -> None:
        self.abandoned += 1
        if task is not None:
            self._resources.keep(task)

    def _results(self) -> list[ToolUseResult]:
        return [call.result for call in self._calls if call.result is not None]

    def _report(self) -> BatchReport:
        calls = [call.report() for call in self._calls]
        report = build_report(self.batch.batch_id, self._verdict, calls, self._resources.config)
        assert self._complete_at is not None
        return replace(
            report,
            abandoned=self.abandoned,
            cancelled_by=self._cancelled_by,
            overlap_ms=overlap_ms(calls, self._complete_at),
        )


def _graver(known: CancelReason | None, new: CancelReason) -> CancelReason:
    """A person's decision outweighs fail_fast; among decisions the first one stands."""
    return new if known is None or known is CancelReason.FAIL_FAST else known
