"""A search is ended with its call and with Midturn, however that goes, and is never left stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import DEADLINE, Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import ROOT, midturn_environment
from tests.support.processes import until
from tests.support.pty_harness import PtySession

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, str(ROOT / "tests" / "support" / "own_search_midturn.py"))
ENDLESS = Calls("Grep", {"pattern": "(a+)+$"})
SHELL = """
set -m
sh -c 'echo $$ > pid; exec "$@"' sh "$@"
echo it was put aside
read -r _
fg > /dev/null
"""
"""A shell with job control, to which a suspended command returns."""


def searches(folder: Path) -> list[int]:
    """The processes that search in this folder."""
    found: list[int] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes()
        except OSError:
            continue
        if b"_search_child.py" in words and os.fsencode(folder) in words:
            found.append(int(entry))
    return found


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until_searching(folder: Path) -> int:
    """Wait for a search that gives way already: from then on it is known to the guard."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)

    def known() -> list[int]:
        return [s for s in searches(folder) if os.getpriority(os.PRIO_PROCESS, s) > usual]

    asyncio.run(until(lambda: bool(known()), "a search runs"))
    return known()[0]


def until_none_searches(folder: Path) -> None:
    asyncio.run(until(lambda: not searches(folder), "no search runs any more"))


def searching(live: LiveMidturn, folder: Path) -> int:
    live.enter("search")
    return until_searching(folder)


def backtracking(folder: Path) -> Path:
    (folder / "f").write_text("a" * 60 + "!\n")
    return folder


def started(command: Sequence[str] = COMMAND) -> Start:
    return Start(["--parallel"], command=command)


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_no_search_outlives_midturn(tmp_path: Path, way: signal.Signals) -> None:
    backtracking(tmp_path)
    with (
        MessagesServer(Reply(ENDLESS, ENDLESS)) as server,
        live_midturn(server, tmp_path, started()) as live,
    ):
        searching(live, tmp_path)
        live.signal(way)
        live.wait_exit(DEADLINE)
        until_none_searches(tmp_path)


def test_no_search_outlives_its_terminal(tmp_path: Path) -> None:
    backtracking(tmp_path)
    with MessagesServer(Reply(ENDLESS)) as server:
        with live_midturn(server, tmp_path, started()) as live:
            searching(live, tmp_path)
        until_none_searches(tmp_path)


@pytest.mark.parametrize("end", ["ctrl-c", "kill"])
def test_a_search_is_not_stopped_for_ever_with_midturn(tmp_path: Path, end: str) -> None:
    """It goes on while Midturn is put aside, and ends with the call or with Midturn."""
    backtracking(tmp_path)
    with (
        MessagesServer(Reply(ENDLESS)) as server,
        live_midturn(server, tmp_path, started(("bash", "-c", SHELL, "bash", *COMMAND))) as live,
    ):
        search = searching(live, tmp_path)
        live.key("ctrl-z")
        live.see("it was put aside")
        midturn = int((tmp_path / "pid").read_text())
        assert (state(midturn), state(search)) == ("T", "R")
        if end == "kill":
            os.kill(midturn, signal.SIGKILL)
        else:
            live.key("enter")
            asyncio.run(until(lambda: state(midturn) != "T", "it goes on"))
            live.see("Grep")
            live.key("ctrl-c")
            live.see("Interrupted after")
        until_none_searches(tmp_path)


def test_ctrl_c_in_print_mode_ends_the_search_too(tmp_path: Path) -> None:
    backtracking(tmp_path)
    with MessagesServer(Reply(ENDLESS)) as server:
        environ = midturn_environment(**server.environment())
        command = [*COMMAND, "-p", "search"]
        with PtySession(command, env=environ, cwd=str(tmp_path)) as terminal:
            until_searching(tmp_path)
            terminal.key("ctrl-c")
            assert terminal.wait_exit(DEADLINE) == 130
    until_none_searches(tmp_path)


def test_what_a_search_holds_up_is_only_itself(tmp_path: Path) -> None:
    """MB-0509: a pattern that takes for ever beside a Read, with keys typed meanwhile."""
    backtracking(tmp_path)
    (tmp_path / "other.txt").write_text("plum\n")
    with (
        MessagesServer(
            Reply(ENDLESS, Calls("Read", {"file_path": "other.txt"})), Reply(Says("Both."))
        ) as server,
        live_midturn(server, tmp_path, started()) as live,
    ):
        live.enter("search")
        live.see(r"✓ \[2/2\] Read")
        assert searches(tmp_path)
        latency = live.echo(20, interval=0.05)
        assert latency.missed == 0
        live.see(r"Both\.")
        found, read = server.wait_for_requests(2)[1].results
        assert found.get("is_error") and "ended after 25 s" in str(found["content"])
        assert "plum" in str(read["content"])
    until_none_searches(tmp_path)
