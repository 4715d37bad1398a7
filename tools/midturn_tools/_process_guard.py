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
from typing import NamedTuple

_PROC = Path("/proc")
_ROUNDS = 5
"""A process that forks while the session is being killed is met in the next round."""


class Process(NamedTuple):
    """A living process. The time tells it from a later one that was given the same id."""

    pid: int
    started: str


class _Listed(NamedTuple):
    process: Process
    parent: int
    owners: tuple[int, int]
    """The ids of its process group and of its session."""


def session_members(session: int) -> tuple[int, ...]:
    """The ids of ``session_processes``."""
    return tuple(process.pid for process in session_processes(session))


def session_processes(session: int) -> tuple[Process, ...]:
    """The living processes of a session or process group, oldest first, zombies not counted.

    Their descendants belong to them although they made a session of their own (``setsid``), as
    long as no process between has ended: what has cut itself off that far is a daemon.
    """
    listed = tuple(_processes())
    members = {entry.process.pid for entry in listed if session in entry.owners}
    more = members
    while more:
        more = {e.process.pid for e in listed if e.parent in more} - members
        members |= more
    return _oldest_first(entry.process for entry in listed if entry.process.pid in members)


def living_sessions() -> frozenset[int]:
    """The ids of all sessions and process groups that have a living process."""
    return frozenset(owner for entry in _processes() for owner in entry.owners)


def still_living(processes: Iterable[Process]) -> frozenset[Process]:
    return frozenset(processes) & {entry.process for entry in _processes()}


def send_signal(processes: Iterable[Process], number: int) -> None:
    """Send one signal to each, in this order."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def kill_session(session: int, met: Iterable[Process] = ()) -> None:
    """End every process of a session at once; ``met`` are such that were seen in it before."""
    members = still_living(met) | set(session_processes(session))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for _ in range(_ROUNDS):
        # A shell whose child is killed first still says so.
        send_signal(_oldest_first(members), signal.SIGKILL)
        members = still_living(members) | set(session_processes(session))
        if not members:
            return


def _oldest_first(processes: Iterable[Process]) -> tuple[Process, ...]:
    """A parent comes before its children."""
    return tuple(sorted(processes, key=lambda process: (_age(process), process.pid)))


def _age(process: Process) -> int:
    """Where no number is told, the id alone decides."""
    return int(process.started) if process.started.isdigit() else 0


def _processes() -> Iterator[_Listed]:
    """Every living process that may be looked at."""
    return _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()


def _from_proc() -> Iterator[_Listed]:
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            status = (_PROC / entry / "stat").read_bytes()
        except OSError:
            continue
        # The name in parentheses may hold anything, blanks and parentheses included.
        fields = status.rpartition(b")")[2].split()
        state, parent, group, session = fields[:4]
        if state not in (b"Z", b"X"):
            process = Process(int(entry), fields[19].decode())
            yield _Listed(process, int(parent), (int(group), int(session)))


def _from_ps() -> Iterator[_Listed]:
    listing = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,state=,lstart="],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    for line in listing.stdout.splitlines():
        pid, parent, state, started = (*line.split(None, 3), "", "", "", "")[:4]
        if pid.isdigit() and parent.isdigit() and not state.startswith("Z"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                owners = os.getpgid(int(pid)), os.getsid(int(pid))
                yield _Listed(Process(int(pid), started.strip()), int(parent), owners)


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
