"""What the tool calls of a session's main agent run with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from midturn_core.batches import ToolBatches
from midturn_core.call_runner import ToolCallRunner
from midturn_core.dispatch.runner import BatchCall
from midturn_core.permission.stage import PermissionStage
from midturn_core.tool import BlockingRunner, ToolContext

if TYPE_CHECKING:
    from midturn_cli.engine import Engine


def tool_batches(engine: Engine) -> ToolBatches:
    """Runs a response's calls: permission, interceptors and tool, recorded in the session."""
    permission = PermissionStage(engine.authorizer, engine.context_id)
    runner = ToolCallRunner(
        engine.registry,
        permission,
        partial(_tool_context, engine),
        engine.interceptors,
        permission.permits,
    )
    return ToolBatches(
        engine.context_id,
        engine.registry,
        engine.dispatcher,
        runner,
        engine.observe,
        engine.session.record_batch,
    )


def _tool_context(engine: Engine, call: BatchCall, run_blocking: BlockingRunner) -> ToolContext:
    return ToolContext(
        context_id=engine.context_id,
        workspace=engine.workspace,
        read_files=engine.read_files,
        signal=call.signal,
        run_blocking=run_blocking,
        progress=call.progress,
        tool_use_id=call.tool_use.id,
        withholds=partial(engine.authorizer.withholds, call.tool_use.name),
    )
