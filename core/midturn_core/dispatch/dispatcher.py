"""``ParallelToolDispatcher``: runs the tool uses of one response and gives exactly one result for
each, in call order (S1.5, S1.42).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from midturn_core.dispatch.batch import BatchExecution, BatchResources
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.early import EarlyBatch
from midturn_core.dispatch.fair_slots import FairSlots
from midturn_core.dispatch.gate import judge
from midturn_core.dispatch.pool import WorkerPool
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.types import BatchOutcome, GateVerdict
from midturn_core.events import Emit
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason

DRAIN_SECONDS = 30.0
"""How long ``close`` waits for batches on their way (S1.48)."""


class ParallelToolDispatcher(Protocol):
    """Gate, distribution and reordering of the calls of one batch.

    The main agent and its subagents may share one: the cap on running tools is then common to
    them and goes round between them (S1.6, S1.7, S1.16). It belongs to one event loop, and so do its methods.
    """

    async def dispatch(
        self, batch: ToolBatch, runner: CallRunner, emit: Emit, signals: BatchSignals
    ) -> BatchOutcome:
        """Run a batch. Returns when nothing of it runs any more, except calls that were abandoned
        after their limit (D28). Cancelling it cuts the batch, joins it and raises again.
        """
        ...

    def begin(self, batch: ToolBatch, runner: CallRunner, emit: Emit) -> EarlyBatch | None:
        """Open the batch of a message that still streams, so far without uses (D24); None when
        nothing starts early and ``dispatch`` runs it once it is complete.
        """
        ...

    def cancel_call(self, tool_use_id: str) -> bool:
        """Cut one call that has no result yet; False when there is none of this id."""
        ...


class DefaultParallelToolDispatcher:
    """Runs batches that pass the gate on a bounded pool of daemon workers, others in order.

    The pool is created by the first batch whose calls run together and ends when parallel is
    switched off or the dispatcher is closed. A call that runs by itself takes no slot of it: it
    may run a subagent whose batches need slots themselves.
    """

    def __init__(
        self,
        config: ToolConcurrencyConfig | None = None,
        limits: StopLimits | None = None,
        on_slots_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_slots_changed`` is called whenever ``slots_in_use`` has changed; it must not raise,
        and it may come several times in a row.
        """
        self._config = config if config is not None else ToolConcurrencyConfig()
        self._limits = limits if limits is not None else StopLimits()
        self._slots = FairSlots(self._config.max_concurrency, on_change=on_slots_changed)
        self._pool: WorkerPool | None = None
        self._io_worker: WorkerPool | None = None
        self._running: set[BatchExecution] = set()
        self._orphans: set[asyncio.Task[object]] = set()
        self._abandoned = 0
        self._closed = False

    @classmethod
    def sequential(cls) -> DefaultParallelToolDispatcher:
        """One call at a time, no pool (S1.43)."""
        return cls(ToolConcurrencyConfig.off())

    @property
    def config(self) -> ToolConcurrencyConfig:
        return self._config

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def abandoned(self) -> int:
        """Calls since the start that outlived their limit and could not be joined (D28)."""
        return self._abandoned

    @property
    def workers(self) -> int:
        """Threads of the dispatch pool that live now; 0 while there is no pool (S1.47)."""
        return self._pool.size if self._pool is not None else 0

    @property
    def slots_in_use(self) -> int:
        """Tools that run now and count towards ``max_concurrency``, over all contexts."""
        return self._slots.in_use

    @property
    def waiting_for_slots(self) -> int:
        """Calls that would run now if a slot were free."""
        return self._slots.waiting

    @property
    def in_use_by_context(self) -> Counter[AgentRuntimeId]:
        """Who has how many of ``slots_in_use``; a context without any is not in it."""
        return self._slots.in_use_by_context

    def configure(self, config: ToolConcurrencyConfig) -> None:
        """Use other settings from the next batch on; batches on their way keep theirs."""
        self._config = config
        self._end_idle_workers()

    def judge(self, batch: ToolBatch) -> GateVerdict:
        """How this batch would run now."""
        return self._judge(batch, self._config)

    async def dispatch(
        self, batch: ToolBatch, runner: CallRunner, emit: Emit, signals: BatchSignals
    ) -> BatchOutcome:
        """See ``ParallelToolDispatcher.dispatch``."""
        return await self._complete(self._open(batch, runner, emit), batch, signals)

    def begin(self, batch: ToolBatch, runner: CallRunner, emit: Emit) -> EarlyBatch | None:
        """See ``ParallelToolDispatcher.begin``."""
        if self._closed or not self._config.starts_early:
            return None
        return EarlyBatch(self._open(batch, runner, emit), self._complete, self._let_go)

    def cancel_call(self, tool_use_id: str) -> bool:
        """See ``ParallelToolDispatcher.cancel_call``."""
        return any(execution.cancel_call(tool_use_id) for execution in list(self._running))

    async def close(self, seconds: float = DRAIN_SECONDS) -> None:
        """Let batches on their way finish for ``seconds``, cut what is left, end the workers.

        Later batches run in order; that is no error (S1.51). May be called again.
        """
        self._closed = True
        try:
            if not await self._drained(seconds):
                for execution in self._running:
                    execution.stop(CancelReason.SHUTDOWN)
                await self._drained(self._limits.join)
        finally:
            self._end_workers()

    async def __aenter__(self) -> DefaultParallelToolDispatcher:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _open(self, batch: ToolBatch, runner: CallRunner, emit: Emit) -> BatchExecution:
        execution = BatchExecution(batch, runner, emit, self._lend(batch.context_id))
        self._running.add(execution)
        return execution

    async def _complete(
        self, execution: BatchExecution, batch: ToolBatch, signals: BatchSignals
    ) -> BatchOutcome:
        try:
            return await execution.execute(batch, self._judge(batch, execution.config), signals)
        finally:
            self._let_go(execution)

    def _judge(self, batch: ToolBatch, config: ToolConcurrencyConfig) -> GateVerdict:
        return judge(batch.uses[: config.max_calls], batch.registry, config, self._closed)

    def _let_go(self, execution: BatchExecution) -> None:
        self._running.discard(execution)
        self._abandoned += execution.abandoned
        self._end_idle_workers()

    def _lend(self, context_id: AgentRuntimeId) -> BatchResources:
        return BatchResources(
            config=self._config,
            limits=self._limits,
            slots=self._slots.of(context_id),
            shared_pool=self._shared_pool,
            io_pool=self._sequential_pool,
            keep=self._keep,
        )

    def _shared_pool(self) -> WorkerPool:
        self._slots.resize(self._config.max_concurrency, self._config.per_context_max)
        if self._pool is None:
            self._pool = WorkerPool.for_dispatch(self._config.max_concurrency)
        self._pool.resize(self._config.max_concurrency)
        return self._pool

    def _sequential_pool(self) -> WorkerPool:
        if self._io_worker is None:
            self._io_worker = WorkerPool.for_io()
        return self._io_worker

    def _keep(self, task: asyncio.Task[object]) -> None:
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)

    def _end_workers(self) -> None:
        for pool in (self._pool, self._io_worker):
            if pool is not None:
                pool.stop()
        self._pool = self._io_worker = None

    def _end_idle_workers(self) -> None:
        if self._closed and not self._running:
            # A batch that came after the close had its own I/O worker.
            self._end_workers()
        in_use = any(execution.uses_pool for execution in self._running)
        if self._pool is not None and not self._config.enabled and not in_use:
            self._pool.stop()
            self._pool = None

    async def _drained(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while self._running:
                    await next(iter(self._running)).finished.wait()
                    await asyncio.sleep(0)
        except TimeoutError:
            return False
        return True
