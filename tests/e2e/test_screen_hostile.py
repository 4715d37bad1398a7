"""Hostile text on every way to the screen of the real command.

What reaches the terminal is looked at byte by byte: apart from the sequences that the program
itself writes, nothing in it may act on the terminal or hide in it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says, Thinks
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.pty_harness import PtySession
from tests.support.terminal_text import acts_on_terminal, cases

OWN = re.compile(
    r"\x1b\[\?(?:25|7|2004|2026)[hl]"  # cursor, wrapping, paste marks, frames
    r"|\x1b\[\?1l|\x1b[78]|\x1b\[2?[KJ]|\x1b\[\d*[ABCD]|\x1b\[H|\r"
)
SHORT = [case for case in cases() if len(case.text) < 300]
HOSTILE = "\n\n".join(f"{case.id} {case.text} end." for case in SHORT)
IN_ONE_LINE = " ".join(case.text for case in SHORT).replace("\n", " ").replace("\0", "")
ENCODABLE = HOSTILE.encode("utf-8", "replace").decode()
PASTED = IN_ONE_LINE.encode("utf-8", "replace").decode()[:1500]
MARK = "after all of it"


def assert_harmless(live: PtySession) -> None:
    # A screen clearing of ours would be allowed below, so that of a text is looked for first.
    written = bytes(live.log.data)
    for sequence in (
        b"\x1b[2J",
        b"\x1b[3J",
        b"\x1b]",
        b"\x1bc",
        b"\x1b[6n",
        b"\x1b[?1049",
        b"\x07",
    ):
        assert sequence not in written
    assert acts_on_terminal(OWN.sub("", written.decode("utf-8"))) == []


def answers(workspace: Path) -> list[Reply | Failure]:
    """An answer, thinking, results, errors, questions, and a refusal of the service."""
    (workspace / "hostile.txt").write_bytes(HOSTILE.encode("utf-8", "surrogatepass"))
    return [
        Reply(
            Thinks(ENCODABLE),
            Says(HOSTILE),
            Calls("Read", {"file_path": "hostile.txt"}),
            Calls("Read", {"file_path": IN_ONE_LINE[:200]}),
            Calls("Grep", {"pattern": "end", "path": "hostile.txt"}),
            Calls(IN_ONE_LINE[:60], {}),
            Calls("WebFetch", {"url": f"http://127.0.0.1:1/{IN_ONE_LINE[:300]}"}),
            Calls("TodoWrite", {"todos": [{"content": IN_ONE_LINE[:300], "status": "pending"}]}),
        ),
        Reply(Calls("Bash", {"command": f"true {PASTED[:600]}"})),
        Reply(Calls("Write", {"file_path": "made.txt", "content": HOSTILE})),
        Failure(400, message=IN_ONE_LINE),
    ]


def deny(live: LiveMidturn, title: str) -> None:
    live.see(rf"^\? {title}(.|\n)*y once")
    live.send("n")


def test_nothing_of_a_turn_acts_on_the_terminal(tmp_path: Path) -> None:
    with (
        MessagesServer(*answers(tmp_path)) as server,
        live_midturn(server, tmp_path, Start(cols=120, rows=40)) as live,
    ):
        live.enter("go")
        deny(live, "Bash")
        deny(live, "Write")
        live.see_anywhere("Failed after")
        live.see_idle()
        assert_harmless(live)


@pytest.mark.parametrize("line", ["{}", "/later {}", "!cat hostile.txt #{}"])
def test_nothing_that_is_pasted_acts_on_the_terminal(tmp_path: Path, line: str) -> None:
    """The draft, the queue rows, the transcript, the list of the queue, and a ``!`` line."""
    (tmp_path / "hostile.txt").write_bytes(HOSTILE.encode("utf-8", "surrogatepass"))
    with (
        MessagesServer(Reply(Says("It streams", latch := Latch())), Reply(Says(MARK))) as server,
        live_midturn(server, tmp_path, Start(cols=120, rows=40)) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.paste(line.format(PASTED))
        live.send("!")
        live.key("enter")
        live.see("queue 1")
        live.enter("/queue")
        live.see_anywhere("❯ /queue")
        latch.open()
        live.see_nothing_waiting()
        live.see_idle()
        assert_harmless(live)


def test_nothing_of_a_resumed_history_acts_on_the_terminal(tmp_path: Path) -> None:
    with (
        MessagesServer(*answers(tmp_path)[:1], Reply(Says(MARK))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(MARK)
        live.enter("/exit")
        assert live.wait_exit(30) == 0
    with MessagesServer() as server, live_midturn(server, tmp_path, Start(["-c"])) as live:
        live.see(MARK)
        live.enter("/exit")
        assert live.wait_exit(30) == 0
        assert_harmless(live)


@pytest.mark.parametrize(
    "script",
    [[Reply(Says(HOSTILE))], [Failure(400, message=IN_ONE_LINE)]],
    ids=["an answer", "an error"],
)
def test_nothing_of_print_mode_acts_on_the_terminal(
    tmp_path: Path, script: list[Reply | Failure]
) -> None:
    with MessagesServer(*script) as server:
        environ = midturn_environment(**server.environment())
        argv = [sys.executable, "-m", "midturn_cli.main", "-p", "go"]
        with PtySession(argv, env=environ, cwd=str(tmp_path)) as session:
            session.wait_exit(30)
            session.wait_idle(0.2)
            assert_harmless(session)


@pytest.mark.parametrize("plain", [(), ("--plain",)], ids=["live", "plain"])
def test_nothing_of_the_command_line_acts_on_the_terminal(
    tmp_path: Path, plain: tuple[str, ...]
) -> None:
    """Errors of the start quote what was given."""
    argv = [
        sys.executable,
        "-m",
        "midturn_cli.main",
        *plain,
        "-r",
        PASTED[:400],
    ]
    with PtySession(argv, env=midturn_environment(), cwd=str(tmp_path)) as session:
        session.wait_exit(30)
        session.wait_idle(0.2)
        assert_harmless(session)
