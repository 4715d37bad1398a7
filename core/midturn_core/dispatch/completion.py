"""The stage of a call after its slot (D30): what the tool left may be completed, never lost."""

from __future__ import annotations

import asyncio
import logging

from midturn_core.dispatch.runner import PreparedCall
from midturn_core.dispatch.supervision import StopRequests
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import ToolUseResult

log = logging.getLogger(__name__)

CUTTING = frozenset(CancelReason) - {CancelReason.USER_MESSAGE, CancelReason.FAIL_FAST}
"""A message of the user and fail_fast stop tools; a tool that has ended is completed anyway."""


async def complete(
    prepared: PreparedCall, result: ToolUseResult, requests: StopRequests
) -> ToolUseResult:
    """The completed result; the tool's own where a stop came first or the stage fails."""
    if prepared.complete is None:
        return result
    stage = asyncio.ensure_future(prepared.complete(result))
    try:
        await _until_done_or_cut(stage, requests)
    finally:
        stage.cancel()
    if not stage.done():
        # One round of the loop, in which what was just cancelled ends.
        await asyncio.sleep(0)
    if not stage.done() or stage.cancelled():
        return result
    if (error := stage.exception()) is not None:
        # Isolation wall: what follows a tool never costs its result.
        log.error("the stage after %s failed", result.tool_use_id, exc_info=error)
        return result
    return stage.result()


async def _until_done_or_cut(stage: asyncio.Future[ToolUseResult], requests: StopRequests) -> None:
    while not stage.done():
        await requests.wait_beside(stage)
        if requests.take() in CUTTING:
            return
