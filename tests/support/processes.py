"""Looks at processes from outside: which of a session live, and waiting until one is gone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable

from midturn_tools._process_guard import session_members
from tests.support.services import require

DEADLINE = 30.0
"""Generous: a failing test takes that long, a passing one never does."""


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until ``condition`` holds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.02)


async def until_session_is_empty(session: int) -> None:
    await until(lambda: not session_members(session), f"session {session} is empty")


def child_processes() -> frozenset[int]:
    """The processes that this one has started and that are still there, ended ones included until
    they are reaped.
    """
    with subprocess.Popen(
        [require("ps"), "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True
    ) as ps:
        listed, _ = ps.communicate()
    pairs = [line.split() for line in listed.splitlines()]
    return frozenset(int(pid) for pid, parent in pairs if int(parent) == os.getpid()) - {ps.pid}
