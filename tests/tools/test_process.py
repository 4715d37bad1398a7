"""Children: their own session, bounded, ended as a whole, never left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_core.interrupt import CancelReason, Signal, SignalSource
from midturn_tools import _process
from midturn_tools._process import (
    ChildCommand,
    ChildLimits,
    ChildResult,
    Ending,
    run_child,
    settle_session,
)
from midturn_tools._process_guard import kill_session, session_members
from tests.support.processes import DEADLINE, until, until_session_is_empty

ROOT = Path(__file__).resolve().parents[2]


def shell(script: str, *, may_leave_jobs: bool = False) -> ChildCommand:
    return ChildCommand(("/bin/sh", "-c", script), Path("/"), may_leave_jobs=may_leave_jobs)


PYTHON = (sys.executable, "-I", "-S", "-c")
NICED = """
import os, sys, time
while os.getpriority(os.PRIO_PROCESS, 0) != int(sys.argv[1]):
    time.sleep(0.01)
print(os.getsid(0), os.getpgid(0))
"""


class Collected:
    """A consumer that keeps everything and can wait for a text."""

    def __init__(self, enough: int | None = None) -> None:
        self.data = b""
        self._enough = enough

    def take(self, data: bytes) -> bool:
        self.data += data
        return self._enough is not None and len(self.data) >= self._enough

    async def until_it_holds(self, text: bytes) -> None:
        await until(lambda: text in self.data, f"{text!r} in the output")


async def run(
    command: ChildCommand,
    output: Collected,
    *,
    seconds: float = DEADLINE,
    grace: float = 0.0,
    by: Signal | None = None,
) -> ChildResult:
    return await run_child(command, ChildLimits(seconds, by or Signal(), grace), output.take)


async def test_output_and_exit_code_arrive() -> None:
    output = Collected()
    result = await run(shell("echo out; echo err >&2; exit 3"), output)
    assert (result.ending, result.exit_code) == (Ending.EXITED, 3)
    assert output.data == b"out\nerr\n"


async def test_errors_are_kept_apart_on_request() -> None:
    output, errors = Collected(), Collected()
    limits = ChildLimits(DEADLINE, Signal())
    await run_child(shell("echo out; echo err >&2"), limits, output.take, errors.take)
    assert (output.data, errors.data) == (b"out\n", b"err\n")


async def test_everything_written_before_the_exit_is_read() -> None:
    output = Collected()
    await run(shell("head -c 9000000 /dev/zero; echo end"), output)
    assert len(output.data) == 9_000_004
    assert output.data.endswith(b"end\n")


async def test_a_child_has_no_input_and_no_terminal() -> None:
    output = Collected()
    await run(shell("cat; if (: </dev/tty) 2>/dev/null; then echo tty; else echo none; fi"), output)
    assert output.data == b"none\n"


async def test_a_child_leads_its_own_session() -> None:
    output = Collected()
    result = await run(shell("ps -o sid= -p $$ || true"), output)
    assert result.session != os.getsid(0)
    assert output.data.strip() in (b"", str(result.session).encode())


async def test_a_niced_child_gives_way_within_the_session_of_midturn() -> None:
    output = Collected()
    niced = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    result = await run(
        ChildCommand((*PYTHON, NICED, str(niced)), Path("/"), niceness=niced), output
    )
    session, group = map(int, output.data.split())
    assert session == os.getsid(0)
    assert group == result.session != os.getpgid(0)


async def test_the_time_limit_ends_the_whole_group_of_a_niced_child() -> None:
    output = Collected()
    argv = ("/bin/sh", "-c", "sleep 300 & echo up; wait")
    result = await run(ChildCommand(argv, Path("/"), niceness=3), output, seconds=1.0)
    assert (result.ending, output.data) == (Ending.TIMED_OUT, b"up\n")
    assert session_members(result.session) == ()


async def test_the_time_limit_ends_the_whole_tree() -> None:
    output = Collected()
    script = "sh -c 'sleep 300 & sleep 300 & wait' & timeout 300 sleep 300 & echo up; wait"
    result = await run(shell(script), output, seconds=1.0)
    assert result.ending is Ending.TIMED_OUT
    assert output.data == b"up\n"
    assert session_members(result.session) == ()


@pytest.mark.parametrize("grace", [0.0, 0.3])
async def test_what_made_a_session_of_its_own_is_ended_with_the_rest(grace: float) -> None:
    """As MB-0703: also when it ignores the request to end, and its parent does not."""
    output, stop = Collected(), SignalSource()
    deaf = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
    call = asyncio.create_task(
        run(
            shell(f'setsid sh -c "{deaf}"; echo late'.replace("$$", "\\$\\$")),
            output,
            grace=grace,
            by=stop,
        )
    )
    await output.until_it_holds(b"\n")
    other = int(output.data)
    assert os.getsid(other) == other
    stop.trip(CancelReason.INTERRUPT)
    await call
    await until_session_is_empty(other)
    assert output.data == f"{other}\n".encode()


async def test_a_child_that_ignores_term_is_killed_after_the_grace() -> None:
    output, stop = Collected(), SignalSource()
    script = "trap 'echo deaf' TERM; echo up; while :; do sleep 0.05; done"
    call = asyncio.create_task(run(shell(script), output, grace=0.3, by=stop))
    await output.until_it_holds(b"up")
    stop.trip(CancelReason.INTERRUPT)
    result = await call
    assert (result.ending, result.exit_code) == (Ending.CANCELLED, -signal.SIGKILL)
    assert b"deaf" in output.data


async def test_a_child_may_clean_up_within_the_grace() -> None:
    output, stop = Collected(), SignalSource()
    script = "trap 'echo tidy; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    call = asyncio.create_task(run(shell(script), output, grace=DEADLINE, by=stop))
    await output.until_it_holds(b"up")
    stop.trip(CancelReason.INTERRUPT)
    assert (await call).ending is Ending.CANCELLED
    assert output.data.endswith(b"tidy\n")


async def test_a_signal_that_had_tripped_ends_the_child_at_once() -> None:
    stop = SignalSource()
    stop.trip(CancelReason.INTERRUPT)
    result = await run(shell("sleep 300"), Collected(), by=stop)
    assert result.ending is Ending.CANCELLED


async def test_a_cancelled_caller_leaves_nothing_behind() -> None:
    output = Collected()
    call = asyncio.create_task(run(shell("echo $$; sleep 300 & sleep 300"), output))
    await output.until_it_holds(b"\n")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until_session_is_empty(int(output.data))


async def test_a_consumer_that_has_seen_enough_ends_the_child() -> None:
    output = Collected(enough=100)
    result = await run(shell("yes"), output)
    assert result.ending is Ending.ENOUGH
    assert session_members(result.session) == ()


async def test_endless_output_leaves_the_loop_its_time() -> None:
    stop = SignalSource()
    ticks: list[int] = []

    async def tick() -> None:
        for number in range(50):
            ticks.append(number)
            await asyncio.sleep(0.005)
        stop.trip(CancelReason.INTERRUPT)

    ticking = asyncio.create_task(tick())
    result = await run_child(shell("yes"), ChildLimits(DEADLINE, stop), lambda _: False)
    await ticking
    assert (result.ending, len(ticks)) == (Ending.CANCELLED, 50)


async def test_a_background_job_that_holds_the_pipe_does_not_hold_the_call() -> None:
    output = Collected()
    result = await run(shell("sleep 300 & echo started", may_leave_jobs=True), output)
    try:
        assert output.data == b"started\n"
        assert len(settle_session(result.session)) == 1
    finally:
        kill_session(result.session)


async def test_a_background_job_may_go_on_writing_after_the_call(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"(sleep 0.4; head -c 3000000 /dev/zero; touch {done}) & echo started"
    output = Collected()
    result = await run(shell(script, may_leave_jobs=True), output)
    await until(done.exists, "the job went on")
    assert output.data == b"started\n"
    await until_session_is_empty(result.session)
    assert settle_session(result.session) == ()


async def test_a_missing_program_or_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await run(ChildCommand((str(tmp_path / "none"),), tmp_path), Collected())
    with pytest.raises(OSError):
        await run(ChildCommand(("/bin/sh", "-c", ":"), tmp_path / "none"), Collected())


async def test_a_machine_that_starts_no_more_processes_leaves_no_descriptor_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> subprocess.Popen[bytes]:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(_process, "_sessions", _process._Sessions())  # pyright: ignore[reportPrivateUsage] no guard yet
    monkeypatch.setattr(_process, "_start_guard", refuse)
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        with pytest.raises(OSError):
            await run(shell("true"), Collected())
    await until(lambda: len(os.listdir("/dev/fd")) <= before, "the pipes are closed")


async def test_many_children_leave_no_descriptor_open() -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    await run(shell("true"), Collected())
    before = open_descriptors()
    for _ in range(10):
        await run(shell("echo x"), Collected())
    await until(lambda: open_descriptors() <= before, "all descriptors are closed")


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from midturn_core.interrupt import Signal
from midturn_tools._process import ChildCommand, ChildLimits, run_child

async def main():
    script = "trap '' HUP; (timeout 300 sleep 300 &) ; sleep 300 & echo $$"
    job = ChildCommand(("/bin/sh", "-c", script), Path("/"), may_leave_jobs=True)
    said = []
    await run_child(job, ChildLimits(30, Signal()), lambda data: bool(said.append(data)))
    argv = ("/bin/sh", "-c", "echo $$; sleep 300")
    running = ChildCommand(argv, Path("/"), niceness=int(sys.argv[1]))
    def tell(data):
        sys.stdout.write((b"".join(said) + data).decode())
        sys.stdout.flush()
        return False
    call = asyncio.ensure_future(run_child(running, ChildLimits(300, Signal()), tell))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    sys.exit(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("niceness", [0, 3])
@pytest.mark.parametrize("way", ["exit", "kill"])
def test_no_child_outlives_the_program_however_it_ends(way: str, niceness: int) -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("cli", "core", "tools"))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(niceness)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        sessions = [int(program.stdout.readline()) for _ in range(2)]
        assert all(session_members(session) for session in sessions)
        if way == "kill":
            program.kill()
        else:
            program.stdin.write(b"\n")
            program.stdin.flush()
        program.wait(DEADLINE)
    for session in sessions:
        asyncio.run(until_session_is_empty(session))
