"""``ToolBatches``: the batches of one agent, from the turn loop to the dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from midturn_core.conversation import FreshId
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher, ParallelToolDispatcher
from midturn_core.dispatch.early import EarlyBatch
from midturn_core.dispatch.runner import BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.events import Emit
from midturn_core.ids import AgentRuntimeId
from midturn_core.ledger.entries import LedgerBatch, entry_of
from midturn_core.model.messages import ToolUse
from midturn_core.tool import ToolRegistry


class StreamedUses:
    """The tool uses of one message on their way to the dispatcher. A ``UseListener``.

    ``begin`` opens a batch for a message that begins, or says that nothing starts early.
    """

    def __init__(self, begin: Callable[[], EarlyBatch | None], fresh_id: FreshId) -> None:
        self._begin = begin
        self._fresh_id = fresh_id
        self._heard: set[str] = set()
        """Their ids in the history."""
        self._batch: EarlyBatch | None = None
        self._drops: list[asyncio.Task[None]] = []

    def complete(self, use: ToolUse) -> None:
        if not self._heard:
            self._batch = self._begin()
        own = replace(use, id=self._fresh_id(use.id, self._heard))
        self._heard.add(own.id)
        if self._batch is not None:
            self._batch.hear(own)

    def superseded(self) -> None:
        batch = self.take()
        self._heard.clear()
        if batch is not None:
            self._drops.append(asyncio.create_task(batch.drop()))

    def take(self) -> EarlyBatch | None:
        """The batch that was begun, for whoever finishes it; None when there is none."""
        batch, self._batch = self._batch, None
        return batch

    async def close(self) -> None:
        """Drop what nobody took, and return when nothing runs any more of what was dropped."""
        self.superseded()
        await asyncio.gather(*self._drops)


class ToolBatches:
    """Implements the loop's ``BatchRunner`` with a dispatcher, the agent's tools and its runner.

    Keeps the outcome of the newest batch, for whoever explains it afterwards.
    """

    def __init__(
        self,
        context_id: AgentRuntimeId,
        registry: ToolRegistry,
        dispatcher: ParallelToolDispatcher | ToolConcurrencyConfig,
        runner: CallRunner,
        emit: Emit,
        record: Callable[[LedgerBatch], None] | None = None,
    ) -> None:
        """``dispatcher`` is ready and stays its owner's (S1.9), or it is a configuration, for which
        one is made that ``close`` ends (S1.8).

        ``record`` gets the ledger's entry of each batch, before its results are in the history."""
        self._context_id = context_id
        self._registry = registry
        self._own: DefaultParallelToolDispatcher | None = None
        if isinstance(dispatcher, ToolConcurrencyConfig):
            dispatcher = self._own = DefaultParallelToolDispatcher(dispatcher)
        self._dispatcher = dispatcher
        self._runner = runner
        self._emit = emit
        self._record = record
        self._open: tuple[ToolUse, ...] = ()
        self._streamed: StreamedUses | None = None
        self.last: BatchOutcome | None = None

    @contextlib.asynccontextmanager
    async def listening(self, step: int, fresh_id: FreshId) -> AsyncGenerator[StreamedUses]:
        """While a message is read and, with ``run``, answered. What it hears may start early
        (D24); what ``run`` does not take is cut and joined at the end.
        """
        self._streamed = StreamedUses(lambda: self._begin(step), fresh_id)
        try:
            yield self._streamed
        finally:
            streamed, self._streamed = self._streamed, None
            await streamed.close()

    async def run(self, uses: Sequence[ToolUse], step: int, signals: BatchSignals) -> BatchOutcome:
        self._open = tuple(uses)
        try:
            batch, self.last = await self._run(uses, step, signals)
        finally:
            self._open = ()
        if self._record is not None:
            self._record(entry_of(batch, self.last))
        return self.last

    async def _run(
        self, uses: Sequence[ToolUse], step: int, signals: BatchSignals
    ) -> tuple[ToolBatch, BatchOutcome]:
        begun = self._streamed.take() if self._streamed is not None else None
        if begun is not None:
            outcome = await begun.finish(uses, signals)
            return begun.batch, outcome
        batch = self._batch(uses, step)
        return batch, await self._dispatcher.dispatch(batch, self._runner, self._emit, signals)

    def _begin(self, step: int) -> EarlyBatch | None:
        return self._dispatcher.begin(self._batch((), step), self._runner, self._emit)

    def _batch(self, uses: Sequence[ToolUse], step: int) -> ToolBatch:
        return ToolBatch(tuple(uses), self._registry, self._context_id, step)

    async def close(self) -> None:
        """End the dispatcher that was made for these batches; may be called again (S1.48, S1.49)."""
        if self._own is not None:
            await self._own.close()

    def cancel_open_calls(self) -> bool:
        """Cut every call of the batch that has no result yet; False when there was none.

        For Esc while a NOW input waits behind a call that NOW itself never cuts (D1).
        """
        return any([self._dispatcher.cancel_call(use.id) for use in self._open])
