"""``ToolBatches``: the batches of one agent, from the turn loop to the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from midturn_core.dispatch.dispatcher import ParallelToolDispatcher
from midturn_core.dispatch.runner import BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.events import Emit
from midturn_core.ids import AgentRuntimeId
from midturn_core.ledger import LedgerBatch, entry_of
from midturn_core.model.messages import ToolUse
from midturn_core.tool import ToolRegistry


class ToolBatches:
    """Implements the loop's ``BatchRunner`` with a dispatcher, the agent's tools and its runner.

    Keeps the outcome of the newest batch, for whoever explains it afterwards.
    """

    def __init__(
        self,
        context_id: AgentRuntimeId,
        registry: ToolRegistry,
        dispatcher: ParallelToolDispatcher,
        runner: CallRunner,
        emit: Emit,
        record: Callable[[LedgerBatch], None] | None = None,
    ) -> None:
        """``record`` gets the ledger's entry of each batch, before its results are in the history."""
        self._context_id = context_id
        self._registry = registry
        self._dispatcher = dispatcher
        self._runner = runner
        self._emit = emit
        self._record = record
        self._open: tuple[ToolUse, ...] = ()
        self.last: BatchOutcome | None = None

    async def run(self, uses: Sequence[ToolUse], step: int, signals: BatchSignals) -> BatchOutcome:
        batch = ToolBatch(tuple(uses), self._registry, self._context_id, step)
        self._open = batch.uses
        try:
            self.last = await self._dispatcher.dispatch(batch, self._runner, self._emit, signals)
        finally:
            self._open = ()
        if self._record is not None:
            self._record(entry_of(batch, self.last))
        return self.last

    def cancel_open_calls(self) -> bool:
        """Cut every call of the batch that has no result yet; False when there was none.

        For Esc while a NOW input waits behind a call that NOW itself never cuts (D1).
        """
        return any([self._dispatcher.cancel_call(use.id) for use in self._open])
