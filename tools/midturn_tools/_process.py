"""Runs a child process: own session (a niced one: own process group), no input, bounded output,
never left behind.

Everything happens on the running loop without blocking it. A child and all it started end
together when its time is up, when its signal trips, when the caller is cancelled, and when
Midturn ends in whatever way (``_process_guard.py``). A job that a command left in the background
outlives the call, not the program.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from midturn_core.interrupt import Signal
from midturn_tools import _process_guard
from midturn_tools._child_environment import child_environment
from midturn_tools._process_guard import (
    Process,
    kill_session,
    living_sessions,
    send_signal,
    session_members,
    session_processes,
    still_living,
)
from midturn_tools._start_environment import blank_start_environment

_READ_SIZE = 64 * 1024
_PIPE_SIZE = 1024 * 1024
_UNPACED = 4 * 1024 * 1024
_PACE = 0.002
"""Seconds between two reads of a pipe that has given more than ``_UNPACED`` bytes: endless output
must not take the loop's time away from the input line."""
_LINGER = 0.2
"""Seconds to wait for the end of the output after the process itself has ended."""
_KILL_WAIT = 3.0
_POLL = 0.05

Consumer = Callable[[bytes], bool]
"""Takes a piece of output; True means that the caller has seen enough and the child may end."""


class Ending(Enum):
    """Why a child is over."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    ENOUGH = "enough"
    """The consumer had seen enough."""


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """What to run. ``argv[0]`` is an absolute path; no shell is involved."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=child_environment)
    niceness: int = 0
    """Above 0, the child gives way to Midturn, and has a process group of its own instead of a
    session: Linux shares the processor out among sessions (``sched_autogroup``) and looks at
    niceness only within one. For programs that start no others.
    """
    keep_descriptors: tuple[int, ...] = ()
    may_leave_jobs: bool = False
    """Processes that it leaves in the background live on until the program ends, see
    ``settle_session``. False is for programs that start no others.
    """


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """When a child is ended from outside. ``grace`` is the time between TERM and KILL."""

    timeout: float
    signal: Signal
    grace: float = 0.0


@dataclass(frozen=True, slots=True)
class ChildResult:
    """``exit_code`` is negative for a signal; ``session`` is the id for ``settle_session``."""

    ending: Ending
    exit_code: int
    seconds: float
    session: int


async def run_child(
    command: ChildCommand,
    limits: ChildLimits,
    output: Consumer,
    errors: Consumer | None = None,
) -> ChildResult:
    """Run a child to its end and hand its output over piece by piece.

    Without ``errors`` its two outputs come as one. When the process is over but somebody else
    still holds the pipe, what was written so far is read and the rest is thrown away.

    Raises:
        OSError: the program or the folder cannot be used.
    """
    ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
    pipes = [_Pipe(output, ended)]
    if errors is not None:
        pipes.append(_Pipe(errors, ended))
    started = time.monotonic()
    try:
        process = await _spawn(command, pipes)
        try:
            ending = await _until_ended(process, limits, ended)
            if ending is not Ending.EXITED:
                await _end_gently(process.pid, limits.grace)
                await _reap(process)
            await asyncio.gather(*(pipe.finish() for pipe in pipes))
        finally:
            await _leave(process, command)
    finally:
        for pipe in pipes:
            pipe.let_go()
    seconds = time.monotonic() - started
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return ChildResult(ending, code, seconds, process.pid)


async def _spawn(command: ChildCommand, pipes: list[_Pipe]) -> asyncio.subprocess.Process:
    try:
        blank_start_environment()
        _sessions.prepare()
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            stdin=subprocess.DEVNULL,
            stdout=pipes[0].write_end,
            stderr=pipes[-1].write_end,
            cwd=command.cwd,
            env=command.environment,
            pass_fds=command.keep_descriptors,
            start_new_session=not command.niceness,
            process_group=0 if command.niceness else None,
        )
    finally:
        for pipe in pipes:
            pipe.close_write_end()
    _sessions.add(process.pid)
    if command.niceness:
        # The group: Linux would take "the process" for its first thread, and there may be more.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, process.pid, command.niceness)
    return process


async def _until_ended(
    process: asyncio.subprocess.Process, limits: ChildLimits, ended: asyncio.Future[Ending]
) -> Ending:
    loop = asyncio.get_running_loop()

    def end(ending: Ending) -> None:
        if not ended.done():
            ended.set_result(ending)

    def cancel(_: object) -> None:
        # The loop may have closed meanwhile; then nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end, Ending.CANCELLED)

    exit_wait = asyncio.ensure_future(process.wait())
    exit_wait.add_done_callback(lambda _: end(Ending.EXITED))
    timer = loop.call_later(limits.timeout, end, Ending.TIMED_OUT)
    unsubscribe = limits.signal.on_trip(cancel)
    try:
        return await ended
    finally:
        unsubscribe()
        timer.cancel()
        exit_wait.cancel()


async def _end_gently(session: int, grace: float) -> None:
    """TERM first where there is a grace, so that locks and temporary files can be removed."""
    met = session_processes(session)
    if grace > 0:
        deadline = time.monotonic() + grace
        # Parents first: one whose child has ended would go on with its next command.
        send_signal(met, signal.SIGTERM)
        send_signal(met, signal.SIGCONT)
        # No event tells that a whole session is gone, only looking does.
        while _anything_left(session, met) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
    kill_session(session, met)


def _anything_left(session: int, met: Iterable[Process]) -> bool:
    return bool(still_living(met)) or bool(session_members(session))


async def _reap(process: asyncio.subprocess.Process) -> None:
    # A process in an uninterruptible wait of the kernel cannot be ended; nobody waits for it.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _KILL_WAIT)


async def _leave(process: asyncio.subprocess.Process, command: ChildCommand) -> None:
    """However the call went: nothing of it stays, except jobs of a command that ended itself."""
    if process.returncode is None:
        kill_session(process.pid)
        await asyncio.shield(_reap(process))
        _sessions.remove(process.pid)
    elif not command.may_leave_jobs:
        _sessions.remove(process.pid)


class _Pipe:
    """The reading end of a child's output on the loop."""

    def __init__(self, consume: Consumer, ended: asyncio.Future[Ending]) -> None:
        self._loop = asyncio.get_running_loop()
        self._consume = consume
        self._ended = ended
        self._eof = asyncio.Event()
        self._total = 0
        read_end, self.write_end = os.pipe()
        self._read_end = read_end
        # A pipe that a background job still holds is read for as long as the loop lives, and
        # only the loop refers to it then: the descriptor goes with the object.
        self._close = weakref.finalize(self, os.close, read_end)
        self._close_write = weakref.finalize(self, os.close, self.write_end)
        os.set_blocking(read_end, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._loop.add_reader(read_end, self._on_readable)

    def close_write_end(self) -> None:
        self._close_write()

    async def finish(self) -> None:
        """Wait for the end of the output, or read what was written when it does not come."""
        try:
            await asyncio.wait_for(self._eof.wait(), _LINGER)
        except TimeoutError:
            self._read(_PIPE_SIZE)

    def let_go(self) -> None:
        """Hand nothing over any more; what a background job writes from now on is thrown away."""
        self._consume = _throw_away

    def _on_readable(self) -> None:
        self._read(_READ_SIZE)
        if self._total > _UNPACED and not self._eof.is_set():
            self._loop.remove_reader(self._read_end)
            self._loop.call_later(_PACE, self._resume)

    def _resume(self) -> None:
        if not self._eof.is_set():
            self._read(_PIPE_SIZE)
        if not self._eof.is_set():
            self._loop.add_reader(self._read_end, self._on_readable)

    def _read(self, at_most: int) -> None:
        while at_most > 0 and not self._eof.is_set():
            try:
                data = os.read(self._read_end, _READ_SIZE)
            except BlockingIOError:
                return
            at_most -= len(data)
            self._take(data)

    def _take(self, data: bytes) -> None:
        if not data:
            self._eof.set()
            self._loop.remove_reader(self._read_end)
            self._close()
            return
        self._total += len(data)
        if self._consume(data) and not self._ended.done():
            self._ended.set_result(Ending.ENOUGH)


def _throw_away(_: bytes) -> bool:
    return False


class _Sessions:
    """The sessions of living children, also known to the guard process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: set[int] = set()
        self._guard: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Before a child starts: it must be known in time, and the guard takes a while to start."""
        with self._lock:
            if self._guard is None:
                self._guard = _start_guard()

    def add(self, session: int) -> None:
        with self._lock:
            self._ids.add(session)
            self._tell(f"+{session}\n")

    def remove(self, session: int) -> None:
        with self._lock:
            self._ids.discard(session)
            self._tell(f"-{session}\n")

    def forget_dead(self) -> None:
        """Let go of sessions without a process, before their ids are given to others."""
        with self._lock:
            known = frozenset(self._ids)
        for session in known - living_sessions():
            self.remove(session)

    def end_all(self) -> None:
        with self._lock:
            sessions, self._ids = self._ids, set()
            guard, self._guard = self._guard, None
        for session in sessions & living_sessions():
            kill_session(session)
        if guard is not None and guard.stdin is not None:
            with contextlib.suppress(OSError):
                guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(_KILL_WAIT)

    def _tell(self, order: str) -> None:
        # A guard that somebody killed is not replaced: the exit handler is still there.
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(self._guard.stdin.fileno(), order.encode())


def _start_guard() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _process_guard.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=child_environment(),
        start_new_session=True,
    )


_sessions = _Sessions()


def settle_session(session: int) -> tuple[int, ...]:
    """The processes a finished command left in the background; looks at all processes (blocking).

    They live until ``end_all_children``; sessions without any are forgotten.
    """
    _sessions.forget_dead()
    return session_members(session)


def end_all_children() -> None:
    """Kill everything that was started and still lives. Runs by itself when the program exits."""
    _sessions.end_all()


atexit.register(end_all_children)
