"""Runs the user's own ``!`` lines. No tool: the model neither calls it nor hears of it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from midturn_core.interrupt import Signal
from midturn_tools._bounded_output import BoundedOutput
from midturn_tools._process import ChildCommand, ChildLimits, Ending, run_child, settle_session

TIME_LIMIT = 24 * 3600.0
"""Seconds; the user ends a line with Ctrl-C, this only bounds what is forgotten."""
HEAD = TAIL = 200_000
"""Bytes of output that are kept from its beginning and its end."""
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    output: str
    exit_code: int | None
    """Negative for a signal; None when the user interrupted it."""


async def run_user_command(command: str, folder: Path, signal: Signal) -> UserCommandResult:
    """Run a line in the user's shell, with the user's environment; it gets no input.

    Raises:
        OSError: the shell or the folder cannot be used.
    """
    output = BoundedOutput(HEAD, TAIL)

    def take(data: bytes) -> bool:
        output.feed(data)
        return False

    shell = os.environ.get("SHELL", "")
    program = shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else "/bin/sh"
    child = await run_child(
        ChildCommand((program, "-c", command), folder, dict(os.environ), may_leave_jobs=True),
        ChildLimits(TIME_LIMIT, signal, _GRACE),
        take,
    )
    await asyncio.to_thread(settle_session, child.session)
    code = None if child.ending is Ending.CANCELLED else child.exit_code
    return UserCommandResult(output.text(), code)
