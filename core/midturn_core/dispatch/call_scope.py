"""What a call of a batch is given: what all calls of it share, and its own place among them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.pool import WorkerPool
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import CallRunner, ToolBatch
from midturn_core.dispatch.segments import SegmentLine
from midturn_core.dispatch.slots import Permits
from midturn_core.events import Emit
from midturn_core.model.messages import ToolUse, ToolUseResult


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
    on_running: Callable[[ToolUse], None]
    on_result: Callable[[ToolUseResult], None]
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
