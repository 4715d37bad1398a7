"""/copy through the real command: the one way in which anything reaches a terminal's clipboard."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import DEADLINE, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.stand_in_program import search_only, stand_in
from tests.support.tmux_session import TmuxSession

EVIL = "\x1b]52;c;ZXZpbA==\x07"
ANSWER = f"Run this{EVIL}:\n\n```sh\necho '안녕'{EVIL}\n```\n"
COPIED = re.compile(rb"\x1b\]52;([^\x07\x1b]*)(?:\x07|\x1b\\)")
FROM_AFAR = {"SSH_TTY": "/dev/pts/0"}
"""Then no clipboard program of the machine is used."""


def test_the_terminal_gets_one_sequence_with_what_was_copied_and_none_from_elsewhere(
    tmp_path: Path,
) -> None:
    with (
        MessagesServer(Reply(Says(ANSWER))) as server,
        live_midturn(server, tmp_path, Start(environ=FROM_AFAR)) as live,
    ):
        live.enter("how do I greet?")
        live.see_anywhere("echo '안녕'")
        live.see_idle()
        assert COPIED.findall(bytes(live.log.data)) == []
        live.enter("/copy code")
        live.see_anywhere(r"Copied the last code block, sh \(1 line, 9 characters\)")
        (sent,) = COPIED.findall(bytes(live.log.data))
        assert sent.startswith(b"c;")
        assert base64.b64decode(sent[2:], validate=True).decode() == "echo '안녕'"


def test_in_plain_mode_a_clipboard_program_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    search_only(monkeypatch, programs)
    xclip = stand_in(programs, "xclip")
    workspace = tmp_path / "work"
    workspace.mkdir()
    done = run_midturn(
        "demo",
        "--plain",
        stdin=b"rate 100000\n/copy\n",
        environ=midturn_environment(DISPLAY=":0"),
        cwd=workspace,
    )
    assert xclip.taken == b"From now on I stream 100000 words per second."
    assert b"with xclip" in done.stdout
    assert b"\x1b" not in done.stdout


@pytest.mark.slow
def test_inside_tmux_it_becomes_the_newest_buffer(tmp_path: Path) -> None:
    environ = {**midturn_environment(), **FROM_AFAR, "TERM": "tmux-256color"}
    command = [sys.executable, "-m", "midturn_cli.main", "demo"]
    with TmuxSession(command, env=environ, cwd=str(tmp_path)) as session:
        session.wait_screen(f"^{GLYPH}", timeout=DEADLINE)
        session.send("rate 100000")
        session.key("enter")
        session.wait_screen("From now on I stream", timeout=DEADLINE)
        session.send("/copy")
        session.key("enter")
        session.wait_screen("with tmux", timeout=DEADLINE)
        assert session.buffer() == "From now on I stream 100000 words per second."


@pytest.mark.slow
def test_tmux_hands_it_to_the_terminal_around_it(tmp_path: Path) -> None:
    """With the settings that tmux has by itself."""
    environ = {**midturn_environment(), **FROM_AFAR, "TERM": "tmux-256color"}
    command = [sys.executable, "-m", "midturn_cli.main", "demo"]
    with TmuxSession(command, env=environ, cwd=str(tmp_path)) as session:
        session.wait_screen(f"^{GLYPH}", timeout=DEADLINE)
        with session.attached() as outer:
            outer.wait(GLYPH, timeout=DEADLINE)
            session.send("rate 100000")
            session.key("enter")
            session.wait_screen("From now on I stream", timeout=DEADLINE)
            session.send("/copy")
            session.key("enter")
            session.wait_screen("with tmux", timeout=DEADLINE)
            found = outer.wait(r"\x1b\]52;[^;]*;([A-Za-z0-9+/=]*)", timeout=DEADLINE)
            assert base64.b64decode(found[1]).startswith(b"From now on I stream")
