"""Finds and ends every process of a session; as a program, it does so when Midturn is gone.

A killed program cannot clean up after itself, and a signal to a process group misses what made a
group of its own (``timeout``, job control). So children are ended by session (where one has only a
process group, "session" means that), and this file runs as a small process of its own that reads
session ids from a pipe: when the other end vanishes, for whatever reason, it kills what is still
registered.

It stands alone (standard library only), since it runs as ``python -I -S _process_guard.py``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 5
"""A process that forks while the session is being killed is met in the next round."""


def session_members(session: int) -> tuple[int, ...]:
    """The living processes of a session or process group, zombies not counted."""
    return tuple(pid for pid, owners in _processes() if session in owners)


def living_sessions() -> frozenset[int]:
    """The ids of all sessions and process groups that have a living process."""
    return frozenset(owner for _, owners in _processes() for owner in owners)


def signal_session(session: int, number: int) -> None:
    """Send one signal to every process of a session."""
    for pid in session_members(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_session(session: int) -> None:
    """End every process of a session at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for _ in range(_ROUNDS):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, tuple[int, int]]]:
    """Of every living process that may be looked at: its id, and those of its group and session."""
    return _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()


def _from_proc() -> Iterator[tuple[int, tuple[int, int]]]:
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            status = (_PROC / entry / "stat").read_bytes()
        except OSError:
            continue
        # The name in parentheses may hold anything, blanks and parentheses included.
        state, _, group, session = status.rpartition(b")")[2].split()[:4]
        if state not in (b"Z", b"X"):
            yield int(entry), (int(group), int(session))


def _from_ps() -> Iterator[tuple[int, tuple[int, int]]]:
    listing = subprocess.run(
        ["/bin/ps", "-axo", "pid=,state="], capture_output=True, check=False, text=True
    )
    for line in listing.stdout.splitlines():
        pid, _, state = line.strip().partition(" ")
        if pid.isdigit() and not state.strip().startswith("Z"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                yield int(pid), (os.getpgid(int(pid)), os.getsid(int(pid)))


def main(orders: Iterable[str]) -> None:
    """Keep the registered sessions (``+id``, ``-id``) and kill them when the orders end."""
    sessions: set[int] = set()
    for order in orders:
        session = int(order[1:])
        if order.startswith("+"):
            sessions.add(session)
        else:
            sessions.discard(session)
    for session in sessions & living_sessions():
        kill_session(session)


if __name__ == "__main__":
    main(sys.stdin)
