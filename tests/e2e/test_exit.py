"""Every way out of a session leaves the terminal as it was found, with the right exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.processes import until_session_is_empty

SHELL = """
stty -a > before
sh -c 'echo $$ > pid; exec "$@"' sh "$@"
echo $? > code
stty -a > after
echo the shell is back
"""
"""A shell that stays when the command is gone, as a user's does."""

COMMAND = (sys.executable, "-m", "midturn_cli.main")
CURSOR_HIDDEN, CURSOR_SHOWN = b"\x1b[?25l", b"\x1b[?25h"
EVERY_MODE = '[ui]\nnotify = "bell"\ntitle = true\n'
FOCUS_ON, FOCUS_OFF = b"\x1b[?1004h", b"\x1b[?1004l"
TITLE_KEPT, TITLE_BACK, TITLE_SET = b"\x1b[22;0t", b"\x1b[23;0t", b"\x1b]2;"
PASTE_ON, PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"


@contextmanager
def shell_around(
    server: MessagesServer, folder: Path, command: Sequence[str] = COMMAND
) -> Generator[LiveMidturn]:
    start = Start(command=("sh", "-c", SHELL, "sh", *command), config=EVERY_MODE)
    with live_midturn(server, folder, start) as live:
        yield live


def check_terminal(live: LiveMidturn, folder: Path, code: int) -> None:
    live.see("the shell is back")
    assert int((folder / "code").read_text()) == code
    assert (folder / "after").read_text() == (folder / "before").read_text()
    data = bytes(live.log.data)
    assert data.rfind(CURSOR_SHOWN) >= data.rfind(CURSOR_HIDDEN)
    assert data.rfind(PASTE_OFF) >= data.rfind(PASTE_ON)
    assert data.rfind(FOCUS_OFF) >= data.rfind(FOCUS_ON)
    assert data.count(TITLE_BACK) == data.count(TITLE_KEPT)
    assert data.rfind(TITLE_BACK) >= data.rfind(TITLE_SET)
    assert b"Traceback" not in data


def check_left(live: LiveMidturn, folder: Path, code: int) -> None:
    """The same, and nothing of the input line is left."""
    check_terminal(live, folder, code)
    for mode in (PASTE_ON, FOCUS_ON, TITLE_KEPT):
        assert mode in live.log.data
    assert not any(row.startswith(GLYPH) for row in live.shown().screen)


def leave(live: LiveMidturn, way: str) -> None:
    match way:
        case "/exit":
            live.enter("/exit")
        case "Ctrl-D":
            live.key("ctrl-d")
        case _:
            live.key("ctrl-c")
            live.see("Press Ctrl-C again")
            live.key("ctrl-c")


def send_signal(folder: Path, number: signal.Signals) -> None:
    os.kill(int((folder / "pid").read_text()), number)


@pytest.mark.parametrize("way", ["/exit", "Ctrl-D", "Ctrl-C twice"])
def test_leaving_by_hand(tmp_path: Path, way: str) -> None:
    """MB-0801, MB-0802."""
    with (
        MessagesServer(Reply(Says("The answer."))) as server,
        shell_around(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"The answer\.")
        live.see_idle()
        leave(live, way)
        check_left(live, tmp_path, 0)
        assert "The answer." in live.shown().text


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["SIGTERM", "SIGHUP"]
)
def test_a_signal_in_the_middle_of_an_answer(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """MB-0801."""
    with (
        MessagesServer(Reply(Says("The first half", Latch()))) as server,
        shell_around(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("The first half")
        live.enter("a line that waits")
        send_signal(tmp_path, number)
        check_left(live, tmp_path, code)
        shown = live.shown().text
    assert "The first half" in shown
    assert "a line that waits" in shown.split("not sent")[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_first_sight_of_the_input_line(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The glyph is there long before the application: whoever has the signal then restores."""
    with MessagesServer() as server, shell_around(server, tmp_path) as live:
        send_signal(tmp_path, number)
        check_terminal(live, tmp_path, 128 + number)


def test_an_interrupt_at_the_first_sight_of_the_input_line(tmp_path: Path) -> None:
    """Before the application is there it ends the start; after that it is a first Ctrl-C."""
    with MessagesServer() as server, shell_around(server, tmp_path) as live:
        send_signal(tmp_path, signal.SIGINT)
        shown = live.see("the shell is back|Press Ctrl-C again")
        if "the shell is back" in shown.text:
            check_terminal(live, tmp_path, 130)
        else:
            live.key("ctrl-d")
            check_terminal(live, tmp_path, 0)


def test_a_signal_before_an_open_question_ends_the_command_too(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Calls("Bash", {"command": "touch made"}))) as server,
        shell_around(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("y once")
        send_signal(tmp_path, signal.SIGTERM)
        check_left(live, tmp_path, 143)
    assert not (tmp_path / "made").exists()


def test_a_signal_ends_what_a_tool_has_started(tmp_path: Path) -> None:
    (tmp_path / "wait.sh").write_text("echo $PPID > session; echo begun; sleep 600\n")
    with (
        MessagesServer(Reply(Calls("Bash", {"command": "sh wait.sh"}))) as server,
        shell_around(server, tmp_path, (*COMMAND, "--allow", "Bash(sh wait.sh)")) as live,
    ):
        live.enter("go")
        live.see("begun")
        send_signal(tmp_path, signal.SIGTERM)
        check_left(live, tmp_path, 143)
        asyncio.run(until_session_is_empty(int((tmp_path / "session").read_text())))


@pytest.mark.parametrize("way", ["/exit", "SIGTERM"])
def test_a_stashed_draft_is_printed_at_the_end(tmp_path: Path, way: str) -> None:
    with MessagesServer() as server, shell_around(server, tmp_path) as live:
        live.type("two\nlines")
        live.key("ctrl-s")
        live.see(r"^stashed \(Ctrl-S brings it back\): two lines")
        if way == "/exit":
            live.enter("/exit")
        else:
            send_signal(tmp_path, signal.SIGTERM)
        check_left(live, tmp_path, 0 if way == "/exit" else 143)
        after = live.shown().text.split("The stashed draft was not sent:\n")[-1]
    assert after.startswith("two\nlines\n")


def test_another_program_has_the_terminal_without_focus_reports(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "EDITOR%s" RUNS\nprintf edited > "$1"\n')
    editor.chmod(0o755)
    with (
        MessagesServer() as server,
        shell_around(server, tmp_path, ("env", f"VISUAL={editor}", *COMMAND)) as live,
    ):
        live.wait(r"\x1b\[\?1004h")
        live.key("ctrl-g")
        live.see_draft("edited")
        before, _, after = bytes(live.log.data).partition(b"EDITORRUNS")
        assert before.rfind(FOCUS_OFF) > before.rfind(FOCUS_ON)
        assert before.count(TITLE_BACK) == before.count(TITLE_KEPT) == 1
        assert FOCUS_ON in after and TITLE_KEPT in after
        live.key("ctrl-c")
        live.see_not("edited")
        live.key("ctrl-d")
        check_left(live, tmp_path, 0)


BROKEN_ENGINE = """
import sys
from midturn_core.agent import Agent
from midturn_cli import main

def fail(*args, **kwargs):
    raise ValueError("planted failure")

Agent.run_turn = fail
sys.exit(main.main())
"""

BROKEN_SCREEN = """
import sys
from midturn_cli.terminal.event_inbox import EventInbox
from midturn_cli import main

def take(self):
    event = before(self)
    if "BREAK" in repr(event):
        raise ValueError("planted failure")
    return event

before, EventInbox.take = EventInbox.take, take
sys.exit(main.main())
"""

BROKEN_START = """
import sys
from midturn_cli import engine, main

def fail(*args, **kwargs):
    raise ValueError("planted failure")

engine.Engine.__init__ = fail
sys.exit(main.main())
"""


def test_leaving_in_the_middle_of_an_answer_keeps_what_was_said(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("The first half", Latch()))) as server,
        shell_around(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("The first half")
        live.enter("/exit")
        check_left(live, tmp_path, 0)
        assert "The first half" in live.shown().text


def test_a_crash_of_the_turn_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    """MB-0801."""
    with (
        MessagesServer() as server,
        shell_around(server, tmp_path, (sys.executable, "-c", BROKEN_ENGINE)) as live,
    ):
        live.enter("go")
        live.see("planted failure")
        live.see_idle()
        live.enter("/exit")
        check_left(live, tmp_path, 0)


def test_a_crash_of_the_screen_ends_the_session_in_order(tmp_path: Path) -> None:
    """MB-0801."""
    with (
        MessagesServer(Reply(Says("The answer. BREAK"))) as server,
        shell_around(server, tmp_path, (sys.executable, "-c", BROKEN_SCREEN)) as live,
    ):
        live.enter("go")
        live.see("planted failure")
        check_left(live, tmp_path, 1)


def test_a_crash_of_the_start_ends_it_in_order(tmp_path: Path) -> None:
    with (
        MessagesServer() as server,
        shell_around(server, tmp_path, (sys.executable, "-c", BROKEN_START)) as live,
    ):
        live.see("planted failure")
        check_left(live, tmp_path, 1)
