"""Early start (D24): calls that run while the model still writes the message that asks for them.

A call may start as soon as it is complete when it and every call before it in the message is
safe, and when it needs no question. Nothing of it is emitted as part of a batch, and nothing is
committed, before the message is complete; then the batch goes on with it as with any other call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from midturn_core.dispatch.batch import BatchExecution
from midturn_core.dispatch.gate import is_safe, may_run_together
from midturn_core.dispatch.runner import BatchSignals, ToolBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.model.messages import ToolUse

Complete: TypeAlias = Callable[[BatchExecution, ToolBatch, BatchSignals], Awaitable[BatchOutcome]]
LetGo: TypeAlias = Callable[[BatchExecution], None]


class EarlyBatch:
    """The batch of a message that still streams. ``finish`` or ``drop`` ends it, once."""

    def __init__(self, execution: BatchExecution, complete: Complete, let_go: LetGo) -> None:
        self._execution = execution
        self._complete = complete
        self._let_go = let_go
        self._count = 0
        self._barred = False

    @property
    def batch(self) -> ToolBatch:
        """With its uses once ``finish`` was called."""
        return self._execution.batch

    def hear(self, use: ToolUse) -> None:
        """The next tool use of the message is complete; it starts now if it may.

        It comes with the id that it will have in the history.
        """
        index = self._count
        self._count += 1
        registry = self._execution.batch.registry
        self._barred = self._barred or not is_safe(use, registry)
        tool = registry.get(use.name)
        if self._barred or index >= self._execution.config.max_calls or tool is None:
            return
        if may_run_together(tool):
            # Others, such as subagents, are safe beside it, but do not start for a mere promise.
            self._execution.start_early(index, use)

    async def finish(self, uses: Sequence[ToolUse], signals: BatchSignals) -> BatchOutcome:
        """The message is over and asks for exactly these: run them as ``dispatch`` does.

        What started early and is not among them is cut and joined, its result is dropped.
        """
        batch = replace(self._execution.batch, uses=tuple(uses))
        return await self._complete(self._execution, batch, signals)

    async def drop(self) -> None:
        """The message counts for nothing: cut and join what started, drop its results (D38).

        Cancelling it ends them on the spot and raises again.
        """
        try:
            await self._execution.drop()
        finally:
            self._let_go(self._execution)
