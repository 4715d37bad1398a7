"""Waiting for sessions to be reachable from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from midturn_core import paths
from midturn_core.session.running import RunningSession, RunningSessions
from tests.support.messages_script import DEADLINE


def running_sessions(
    holds: Callable[[Sequence[RunningSession]], bool], what: str
) -> list[RunningSession]:
    """The running sessions of the test's home folder, once they are as wanted."""
    sessions = RunningSessions(paths.running_folder(os.environ))
    until = time.monotonic() + DEADLINE
    while not holds(found := sessions.list()):
        assert time.monotonic() < until, f"not in time: {what}; there are {found}"
        time.sleep(0.02)
    return found


def reachable(count: int = 1) -> list[RunningSession]:
    """So many sessions, as soon as they can be reached."""
    return running_sessions(lambda found: len(found) == count, f"{count} running sessions")
