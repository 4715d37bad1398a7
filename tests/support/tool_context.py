"""A ``ToolContext`` for tests, made of real parts: READ_FILES, a signal, a thread for blocking work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import Signal
from midturn_core.read_files import ReadFiles
from midturn_core.tool import ToolContext

T = TypeVar("T")


async def run_on_thread(function: Callable[[], T]) -> T:
    return await asyncio.to_thread(function)


def make_tool_context(
    workspace: Path,
    *,
    read_files: ReadFiles | None = None,
    signal: Signal | None = None,
    progress: Callable[[str], None] = lambda _: None,
    context_id: AgentRuntimeId | None = None,
) -> ToolContext:
    """A context whose workspace is ``workspace``, resolved.

    Give a ``SignalSource`` as ``signal`` to trip it, and ``progress=notes.append`` to collect.
    """
    return ToolContext(
        context_id=context_id or AgentRuntimeId("session-test"),
        workspace=workspace.resolve(),
        read_files=read_files or ReadFiles(),
        signal=signal or Signal(),
        run_blocking=run_on_thread,
        progress=progress,
        tool_use_id="toolu_test",
    )
