"""The list of running sessions: alive is who holds the lock, and a call means "look"."""

from __future__ import annotations

import os
import select
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from midturn_core.errors import SessionError
from midturn_core.session.running import (
    SOCKET_BYTES,
    Presence,
    RunningSession,
    RunningSessions,
    SessionState,
)
from tests.support.midturn_process import midturn_environment

DEADLINE = 30.0


def a_session(session_id: str = "s-1") -> RunningSession:
    return RunningSession(session_id, os.getpid(), "/work", "2026-07-04T09:12:00+00:00", "store")


@contextmanager
def present(
    folder: Path, session: RunningSession, environ: dict[str, str] | None = None
) -> Generator[Presence]:
    presence = Presence(folder, session, environ or {})
    presence.announce()
    try:
        yield presence
    finally:
        presence.close()


def woken(presence: Presence) -> bool:
    number = presence.fileno()
    assert number is not None
    return bool(select.select([number], [], [], DEADLINE)[0])


def quiet(presence: Presence) -> bool:
    number = presence.fileno()
    return number is not None and not select.select([number], [], [], 0)[0]


def test_a_session_is_listed_with_its_state_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    sessions = RunningSessions(folder)
    assert sessions.list() == []
    with present(folder, a_session()) as presence:
        (found,) = sessions.list()
        assert (found.id, found.pid, found.state) == ("s-1", os.getpid(), SessionState.IDLE)
        presence.set_state(SessionState.ASKING)
        assert sessions.list()[0].state is SessionState.ASKING
    assert sessions.list() == []
    presence.set_state(SessionState.IDLE)  # a word that comes too late
    assert list(folder.iterdir()) == []


def test_everything_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    with present(folder, a_session()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {file.suffix: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == {".json": 0o600, ".lock": 0o600, ".sock": 0o600}


def test_what_a_killed_session_left_is_swept_and_a_reused_process_id_deceives_nobody(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    program = (
        "import os, sys, time; from pathlib import Path\n"
        "from midturn_core.session.running import Presence, RunningSession\n"
        "session = RunningSession('s-2', int(sys.argv[2]), '/work', 'now', 'store')\n"
        "Presence(Path(sys.argv[1]), session, {}).announce()\n"
        "print('here', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, folder, str(os.getpid())],
        stdout=subprocess.PIPE,
        env=midturn_environment(),
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        sessions = RunningSessions(folder)
        assert [session.id for session in sessions.list()] == ["s-2"]
        child.kill()
        child.wait()
        assert sessions.list() == []
    assert list(folder.iterdir()) == []


def test_a_call_wakes_the_session_and_nothing_in_it_counts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with present(folder, a_session()) as presence:
        (found,) = RunningSessions(folder).list()
        assert RunningSessions(folder).wake(found)
        assert woken(presence)
        presence.take_calls()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            for words in (b"!rm -rf /", b"\0" * 5_000, b""):
                stranger.sendto(words, found.socket)
        assert woken(presence)
        presence.take_calls()
        presence.take_calls()
    assert not RunningSessions(folder).wake(found)


def test_too_many_calls_hold_nobody_up(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with present(folder, a_session()) as presence:
        (found,) = RunningSessions(folder).list()
        assert all(RunningSessions(folder).wake(found) for _ in range(2_000))
        presence.take_calls()
        assert quiet(presence)


def test_where_the_path_is_too_long_for_a_socket_it_is_in_the_runtime_folder(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("deep" * 20) / "run"
    folder.parent.mkdir(parents=True)
    runtime = Path(f"/tmp/midturn-test-{os.getpid()}")
    runtime.mkdir(mode=0o700)
    try:
        with present(folder, a_session(), {"XDG_RUNTIME_DIR": str(runtime)}) as presence:
            (found,) = RunningSessions(folder).list()
            assert found.socket.startswith(f"{runtime}/midturn/")
            assert len(found.socket) <= SOCKET_BYTES
            assert RunningSessions(folder).wake(found)
            assert woken(presence)
        assert list((runtime / "midturn").iterdir()) == []
    finally:
        (runtime / "midturn").rmdir()
        runtime.rmdir()


def test_a_session_that_another_process_has_open_is_announced_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with present(folder, a_session()):
        with pytest.raises(SessionError, match="another process has it open"):
            Presence(folder, a_session(), {}).announce()
        assert len(RunningSessions(folder).list()) == 1


def test_what_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with present(folder, a_session()):
        (folder / "s-1.json").write_text('{"id": 1}')
        assert RunningSessions(folder).list() == []
        (folder / "other.json").write_text("half an ent")
        assert RunningSessions(folder).list() == []
