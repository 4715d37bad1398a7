from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.pty_harness import PtySession
from tests.support.terminal_screen import Rendered
from tests.support.tmux_session import TmuxSession

ROOT = Path(__file__).parents[3]
DEMO = [sys.executable, "-m", "tests.support.terminal_demo"]
ENVIRON = {"PYTHONPATH": ".:cli:core:tools", "PYTHONDONTWRITEBYTECODE": "1"}
DEADLINE = 30.0


@pytest.fixture
def terminal() -> Generator[PtySession]:
    with PtySession(DEMO, env=ENVIRON, cwd=str(ROOT)) as session:
        session.wait_screen("status row", DEADLINE)
        yield session


def numbered(rendered: Rendered) -> list[str]:
    return [line.rstrip() for line in rendered.lines if re.match(r"L\d{5} ", line)]


def test_keys_echo_while_an_answer_streams_and_every_row_arrives_once(
    terminal: PtySession,
) -> None:
    terminal.send("go 300 100\r")
    terminal.wait_screen("L00020", DEADLINE)
    latency = terminal.echo(30, interval=0.02)
    terminal.wait_screen("ENDED done", DEADLINE)
    assert latency.missed == 0
    assert numbered(terminal.render()) == [f"L{n:05} streamed text" for n in range(300)]
    assert terminal.traffic().cursor_queries == 0
    assert terminal.flicker("›", honour_sync=True).missing <= 1


def test_a_pasted_file_arrives_unchanged_during_a_turn(terminal: PtySession) -> None:
    text = "".join(f"{number:05} some pasted text äöü\n" for number in range(2000))
    terminal.send("go 2000 100\r")
    terminal.wait_screen("L00005", DEADLINE)
    terminal.paste(text)
    terminal.wait_screen(r"Pasted #1 2001 lines", DEADLINE)
    terminal.send("\r")
    digest = subprocess.run(["sha256sum"], input=text.encode(), capture_output=True, check=True)
    expected = digest.stdout.decode()[:12]
    terminal.wait(f"GOT {len(text)} {expected}", DEADLINE)


def test_lines_typed_fast_during_a_flood_arrive_intact_and_in_order(
    terminal: PtySession,
) -> None:
    terminal.send("go 20000 0\r")
    terminal.wait_screen("L0", DEADLINE)
    lines = [f"typed {number:02} line" for number in range(20)]
    for line in lines:
        for key in f"{line}\r":
            terminal.send(key)
            time.sleep(0.003)
        # Not further ahead than a line: two Enters in one read, and then a pause of this test in
        # the middle of a line, are what a paste without marks looks like.
        terminal.wait(re.escape(f"'{line}'"), DEADLINE)
    terminal.wait_screen("ENDED done", 120)
    rendered = terminal.render()
    got = re.findall(r"GOT \d+ \w+ '([^']*)'", rendered.text)
    assert got == lines
    assert numbered(rendered) == [f"L{n:05} streamed text" for n in range(20_000)]


def test_ctrl_c_cancels_the_turn_and_the_draft_stays(terminal: PtySession) -> None:
    terminal.send("go 100000 100\r")
    terminal.wait_screen("L00010", DEADLINE)
    terminal.send("draft")
    terminal.wait_screen("› draft", DEADLINE)
    terminal.signal(signal.SIGINT)
    terminal.wait_screen("ENDED interrupted", DEADLINE)
    terminal.send("!")
    terminal.wait_screen("› draft!", DEADLINE)


@pytest.mark.parametrize(
    ("leave", "code"),
    [("\x04", 0), ("\x03\x03", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_every_way_out_leaves_the_terminal_as_it_was(
    terminal: PtySession, leave: str | signal.Signals, code: int
) -> None:
    terminal.send("go 30 100\r")
    terminal.wait_screen("ENDED done", DEADLINE)
    if isinstance(leave, str):
        terminal.send(leave)
    else:
        terminal.signal(leave)
    assert terminal.wait_exit(DEADLINE) == code
    modes = termios.tcgetattr(terminal.master)
    assert modes[3] & termios.ICANON and modes[3] & termios.ECHO and modes[3] & termios.ISIG
    assert modes[0] & termios.ICRNL and modes[1] & termios.ONLCR
    terminal.wait_idle(0.2)
    written = bytes(terminal.log.data)
    assert written.rindex(b"\x1b[?2004l") > written.rindex(b"\x1b[?2004h")
    assert written.rindex(b"\x1b[?25h") > written.rindex(b"\x1b[?25l")
    rendered = terminal.render()
    assert rendered.cursor[0] == 0
    assert "status row" not in rendered.text


def test_prints_warnings_and_loop_failures_become_notices(terminal: PtySession) -> None:
    terminal.send("print from a library\r")
    terminal.wait_screen(r"\[info\] print from a library", DEADLINE)
    terminal.send("warn about it\r")
    terminal.wait_screen(r"\[warning\] UserWarning: warn about it", DEADLINE)
    terminal.send("raise\r")
    terminal.wait_screen(r"\[error\] Something went wrong .*planted failure", DEADLINE)
    terminal.send("still here\r")
    terminal.wait_screen("GOT 10", DEADLINE)
    assert "Press ENTER" not in terminal.render().text


def test_keys_typed_before_the_start_is_over_are_not_lost() -> None:
    with PtySession(DEMO, env=ENVIRON, cwd=str(ROOT)) as session:
        session.wait("›", DEADLINE)
        session.send("early bird\r")
        session.wait_screen("GOT 10", DEADLINE)


def test_the_kernel_hands_no_row_of_a_frame_on_by_itself(terminal: PtySession) -> None:
    """Else the terminal may paint in the middle of a frame, without the prompt."""
    terminal.send("go 30 100\r")
    terminal.wait_screen("ENDED done", DEADLINE)
    assert not termios.tcgetattr(terminal.master)[1] & termios.ONLCR
    assert b"\r\r\n" not in bytes(terminal.log.data).partition(b"L00005")[2]


def test_the_external_editor_has_usual_line_feeds() -> None:
    editor = 'sh -c \'stty -a </dev/tty | grep -c " onlcr" >"$0"\''
    with PtySession(DEMO, env={**ENVIRON, "EDITOR": editor}, cwd=str(ROOT)) as session:
        session.wait_screen("status row", DEADLINE)
        session.send("my draft\x07")
        session.wait_screen("› 1", DEADLINE)


def test_nothing_is_written_while_idle(terminal: PtySession) -> None:
    terminal.wait_idle(0.5, DEADLINE)
    before = terminal.mark()
    time.sleep(1.0)  # the thing observed: a second without anything to do
    assert terminal.mark() == before


def test_a_stop_from_outside_and_the_shell_key_leave_a_usable_shell() -> None:
    command = " ".join(DEMO)
    with PtySession(["bash", "--norc", "-i"], env=ENVIRON, cwd=str(ROOT)) as shell:
        shell.send(f"PS1='READY> '; {command}\r")
        shell.wait_screen("status row", DEADLINE)
        shell.send("draft")
        shell.wait_screen("› draft", DEADLINE)
        shell.key("ctrl-z")
        shell.wait_screen(r"Stopped", DEADLINE)
        shell.send("stty -a | grep -c -e 'icanon.* echo ' -e ' onlcr'; echo shell-$((40+2))\r")
        shown = shell.wait_screen("^shell-42", DEADLINE)
        assert shown.screen[shown.screen.index("shell-42") - 1] == "2"
        shell.send("fg\r")
        shell.wait_screen("› draft", DEADLINE)
        shell.send(" more\r")
        shell.wait_screen("GOT 10", DEADLINE)
        pid = _child_of(shell.process.pid)
        os.kill(pid, signal.SIGTSTP)
        shell.wait_screen(r"Stopped(.|\n)*Stopped|GOT 10(.|\n)*Stopped", DEADLINE)
        shell.send("fg\r")
        # What is typed before that is the shell's: it would make a line feed of the Enter.
        shell.wait_screen(r"fg\n(.|\n)*fg\n(.|\n)*^status row", DEADLINE)
        shell.send("after\r")
        shell.wait_screen("GOT 5", DEADLINE)
        shell.send("\x04")
        shell.wait_screen(r"READY>\s*\Z", DEADLINE)
        shell.send("exit\r")
        shell.wait_exit(DEADLINE)


def test_the_external_editor_changes_the_draft() -> None:
    editor = "sed -i 's/draft/better draft/'"
    with PtySession(DEMO, env={**ENVIRON, "EDITOR": editor}, cwd=str(ROOT)) as session:
        session.wait_screen("status row", DEADLINE)
        session.send("my draft\x07")
        session.wait_screen("› my better draft", DEADLINE)
        session.send("!\r")
        session.wait_screen("GOT 16", DEADLINE)


def test_a_folded_paste_survives_the_external_editor() -> None:
    editor = "sed -i 's/draft/better draft/'"
    paste = "pasted line\r" * 25
    with PtySession(DEMO, env={**ENVIRON, "EDITOR": editor}, cwd=str(ROOT)) as session:
        session.wait_screen("status row", DEADLINE)
        session.send("my draft: ")
        session.paste(paste)
        session.wait_screen(r"› my draft: \[Pasted #1 26 lines\]", DEADLINE)
        session.key("ctrl-g")
        session.wait_screen(r"› my better draft: \[Pasted #1 26 lines\]$", DEADLINE)
        session.send("\r")
        session.wait_screen(f"GOT {len('my better draft: ' + paste)} ", DEADLINE)


def test_the_external_editor_waits_for_the_end_of_the_turn(terminal: PtySession) -> None:
    terminal.send("go 100000 100\r")
    terminal.wait_screen("L00005", DEADLINE)
    terminal.send("draft\x07")
    terminal.wait_screen("editor opens when the turn is over", DEADLINE)
    terminal.wait_screen("› draft", DEADLINE)


def test_a_process_that_was_stopped_hard_takes_the_terminal_back(terminal: PtySession) -> None:
    terminal.signal(signal.SIGSTOP)
    modes = termios.tcgetattr(terminal.master)
    modes[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(terminal.master, termios.TCSANOW, modes)
    terminal.signal(signal.SIGCONT)
    terminal.send("x")
    terminal.wait_screen("› x$", DEADLINE)


def _child_of(pid: int) -> int:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


def test_resizing_a_terminal_that_does_not_rewrap_loses_and_doubles_nothing(
    terminal: PtySession,
) -> None:
    terminal.send("go 150 50\r")
    terminal.wait_screen("L00005", DEADLINE)
    terminal.send("x" * 80)
    for columns, rows in [(80, 24), (60, 30), (120, 30), (100, 30)]:
        terminal.resize(columns, rows)
        time.sleep(0.5)  # the pace of a person: a resize, then a look
    terminal.wait_screen("ENDED done", DEADLINE)
    shown = terminal.render()
    assert numbered(shown) == [f"L{n:05} streamed text" for n in range(150)]
    assert sum("›" in line for line in shown.lines) == 1
    assert shown.text.count("status row") == 1


@pytest.mark.slow
def test_a_slow_terminal_keeps_echoing_and_an_interrupt_acts_at_once() -> None:
    with PtySession(DEMO, env=ENVIRON, cwd=str(ROOT), read_rate=15_000) as session:
        session.wait_screen("status row", DEADLINE)
        session.send("go 1000000 0\r")
        session.wait_screen("L0", DEADLINE)
        latency = session.echo(6, interval=0.3, timeout=10.0)
        assert latency.missed == 0
        session.key("ctrl-c")
        session.wait("lines not shown", DEADLINE)
        session.wait_screen("ENDED interrupted", DEADLINE)


@pytest.mark.slow
def test_resizing_a_rewrapping_terminal_loses_and_doubles_nothing() -> None:
    sizes = [(80, 24), (60, 30), (120, 30), (40, 15), (100, 40), (100, 30)]
    with TmuxSession(DEMO, env=ENVIRON, cwd=str(ROOT)) as session:
        session.wait_screen("status row", DEADLINE)
        session.send("go 600 50")
        session.key("enter")
        session.wait_screen("L00010", DEADLINE)
        session.send("x" * 80)
        session.wait_screen("xxxx", DEADLINE)
        for columns, rows in sizes:
            session.resize(columns, rows)
            time.sleep(0.9)  # the pace of a person: a resize, then a look
        shown = session.wait_screen("ENDED done", 60)
        expected = [f"L{n:05} streamed text" for n in range(600)]
        assert numbered(shown) == expected
        assert sum("›" in line for line in shown.lines) == 1
        assert shown.text.count("status row") == 1
