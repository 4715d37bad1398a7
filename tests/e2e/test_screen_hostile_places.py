"""Hostile text in names, commands, menus, titles and notifications, in the real command."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from midturn_cli.terminal.modes import FOCUS_LOST
from tests.support.git_folder import GitFolder
from tests.support.hostile_screen import (
    ENCODABLE,
    IN_ONE_LINE,
    LINES,
    TYPED,
    assert_harmless,
    file_names,
)
from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.picture_files import png
from tests.support.pty_harness import PtySession

pytestmark = pytest.mark.slow

COMMANDS = (
    "/help {}",
    "/model {}",
    "/mode {}",
    "/theme {}",
    "/permissions allow {}",
    "/permissions deny Bash({})",
    "/permissions",
    "/queue rm {}",
    "/later run {}",
    "/resume {}",
    "/resume",
    "/export {}",
    "/export {}.md",
    "/copy {}",
    "/expand {}",
    "/expand",
    "/parallel max {}",
    "/init",
    "/diff",
    "/status",
    "/context",
    "/cost",
    "/config",
    "/tools",
    "!printf '%s' {}",
)
WINDOW = Start(cols=120, rows=40)
TOLD = Start(cols=120, rows=40, config='[ui]\ntitle = true\nnotify = "osc9"\n')


def run_line(live: LiveMidturn, line: str) -> None:
    """Paste what follows the first letters of a line, and wait until it has been taken."""
    begin, _, rest = line.partition(" ")
    live.send(begin if rest else line)
    if rest:
        live.send(" ")
        live.paste(rest)
    live.key("enter")
    live.see_idle()


@pytest.mark.parametrize("piece", range(0, len(TYPED), 300))
def test_no_command_acts_on_the_terminal_by_what_it_is_given_or_finds(
    tmp_path: Path, piece: int
) -> None:
    text = " ".join(TYPED[piece : piece + 300].split())
    git = GitFolder(tmp_path)
    git.commit("tracked.txt", "before\n")
    (tmp_path / "tracked.txt").write_bytes(LINES.encode("utf-8", "surrogatepass"))
    for name in file_names():
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("x\n")
    with (
        MessagesServer(
            Reply(Says(LINES), Calls("Read", {"file_path": "tracked.txt"})), Reply(Says(LINES))
        ) as server,
        live_midturn(server, tmp_path, WINDOW) as live,
    ):
        server.always(Reply(Says(LINES)))
        live.paste(f"first {text}")
        live.key("enter")
        live.see_anywhere("❯ first")
        live.see_idle()
        for line in COMMANDS:
            run_line(live, line.format(shlex.quote(text) if line.startswith("!") else text))
            live.key("ctrl-u")
        live.enter("/exit")
        assert live.wait_exit(30) == 0
        assert_harmless(live)


def test_no_file_name_acts_on_the_terminal_in_the_menu_or_in_the_draft(tmp_path: Path) -> None:
    names = file_names()
    for name in names:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("x\n")
    with MessagesServer() as server, live_midturn(server, tmp_path, WINDOW) as live:
        server.always(Reply(Says("Fine.")))
        live.send("look at @")
        live.see(r"\+\d+")
        for place in range(len(names) + 5):
            live.key("down")
            live.see(rf"^  {min(place, len(names)) + 1} of |{GLYPH} look at")
        live.key("ctrl-u")
        for name in names:
            live.send(b"@" + name.replace(b"\r", b"").replace(b"\x1b", b"")[:10])
            live.send("\t ")
            live.key("ctrl-u")
        assert_harmless(live)


@pytest.mark.parametrize("way", ["stash", "undo", "search", "recall", "editor"])
def test_no_draft_acts_on_the_terminal(tmp_path: Path, way: str) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ncp hostile.txt "$1"\n')
    editor.chmod(0o755)
    (tmp_path / "hostile.txt").write_bytes(ENCODABLE.encode())
    start = Start(cols=120, rows=40, environ={"VISUAL": str(editor)})
    with MessagesServer() as server, live_midturn(server, tmp_path, start) as live:
        server.always(Reply(Says("Fine.")))
        if way == "editor":
            live.key("ctrl-g")
            live.see(r"\[Pasted|tt-")
        else:
            live.paste(TYPED)
            live.send("end of it")
            live.see("end of it")
        match way:
            case "stash":
                live.key("ctrl-s")
                live.see("^stashed")
                live.key("ctrl-s")
                live.see("end of it")
            case "undo":
                live.key("ctrl-c")
                live.see(rf"^{GLYPH} *$")
                live.send("\x1f")
                live.see("end of it")
            case "search" | "recall":
                live.key("enter")
                live.see("Fine")
                live.see_idle()
                live.key("ctrl-r" if way == "search" else "up")
                if way == "search":
                    live.send("end of")
                live.see(rf"{GLYPH}(.|\n)*end of it")
            case _:
                live.key("enter")
                live.see("Fine")
        assert_harmless(live)


NAMES = file_names()
FOLDERS = [b" ".join(NAMES[place : place + 4])[:100] for place in range(0, len(NAMES), 4)]


@pytest.mark.parametrize("number", range(len(FOLDERS)))
def test_no_name_of_a_folder_acts_on_the_terminal(tmp_path: Path, number: int) -> None:
    """In the greeting, the window's title, the name of a picture and /status."""
    name = FOLDERS[number]
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    folder.mkdir()
    picture = Path(os.fsdecode(os.fsencode(folder) + b"/" + name + b".png"))
    picture.write_bytes(png())
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, folder, TOLD) as live,
    ):
        live.wait(r"\x1b\]2;idle", timeout=30)
        live.paste(str(picture).encode("utf-8", "replace").decode())
        live.send(" go")
        live.key("enter")
        live.see_anywhere("Fine")
        run_line(live, "/status")
        live.enter("/exit")
        assert live.wait_exit(30) == 0
        assert_harmless(live)


def test_no_question_acts_on_the_terminal_in_a_notification(tmp_path: Path) -> None:
    asked = Latch()
    with (
        MessagesServer(
            Reply(Says("It streams"), asked, Calls("Bash", {"command": f"true {TYPED[:300]}"})),
            Reply(Says("Fine.")),
        ) as server,
        live_midturn(server, tmp_path, TOLD) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.send(FOCUS_LOST)
        asked.open()
        live.wait(r"\x1b\]9;Midturn in .*: asks ", timeout=30)
        live.see("y once")
        live.send("n")
        live.see("Fine")
        assert_harmless(live)


def test_no_refusal_acts_on_the_terminal_while_it_is_tried_again(tmp_path: Path) -> None:
    busy = Failure(529, "overloaded_error", IN_ONE_LINE, {"retry-after": "30"})
    with (
        MessagesServer(busy, Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, WINDOW) as live,
    ):
        live.enter("go")
        live.see("trying again in")
        live.key("ctrl-c")
        live.see("Interrupted")
        assert_harmless(live)


def plain_terminal(server: MessagesServer, folder: Path) -> PtySession:
    argv = [sys.executable, "-m", "midturn_cli.main", "--plain"]
    environ = midturn_environment(**server.environment())
    return PtySession(argv, env=environ, cwd=str(folder), cols=120, rows=40)


def test_nothing_of_a_plain_session_acts_on_the_terminal(tmp_path: Path) -> None:
    """An answer, results, errors, questions, commands and a failed turn as plain lines."""
    (tmp_path / "hostile.txt").write_bytes(LINES.encode("utf-8", "surrogatepass"))
    script = (
        Reply(
            Says(LINES),
            Calls("Read", {"file_path": "hostile.txt"}),
            Calls("Read", {"file_path": IN_ONE_LINE[:200]}),
            Calls(IN_ONE_LINE[:60], {}),
        ),
        Reply(Calls("Bash", {"command": f"true {TYPED[:600]}"})),
        Reply(Calls("Write", {"file_path": "made.txt", "content": ENCODABLE})),
        Failure(400, message=IN_ONE_LINE),
    )
    with MessagesServer(*script) as server, plain_terminal(server, tmp_path) as live:
        live.send("go\n")
        for title in ("Bash", "Write"):
            asked = live.wait(rf"\? {title}", timeout=30).end()
            live.wait("y once", timeout=30, start=asked)
            live.send("n\n")
        live.wait("Failed after", timeout=30)
        live.send("!cat hostile.txt\n/status\n/context\n/expand\n/queue\n/exit\n")
        assert live.wait_exit(30) == 0
        assert b"\x1b" not in live.log.data
        assert_harmless(live)


@pytest.mark.parametrize("command", ["doctor", "config"])
@pytest.mark.parametrize("given", ["--config", "MIDTURN_MODEL_NAME", "MIDTURN_PERMISSIONS_DENY"])
def test_nothing_of_the_other_commands_acts_on_the_terminal(
    tmp_path: Path, command: str, given: str
) -> None:
    text = re.sub("[\\ud800-\\udfff]", "", TYPED)[:200]
    flags = ("--config", text) if given.startswith("--") else ()
    environ = {} if flags else {given: text}
    argv = [sys.executable, "-m", "midturn_cli.main", command, *flags]
    with PtySession(argv, env=midturn_environment(**environ), cwd=str(tmp_path)) as session:
        session.wait_exit(30)
        session.wait_idle(0.2)
        assert_harmless(session)
