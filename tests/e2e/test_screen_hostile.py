"""Hostile text on the ways to the screen that a turn and its start take, in the real command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.hostile_screen import ENCODABLE, IN_ONE_LINE, LINES, TYPED, assert_harmless
from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says, Thinks
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.pty_harness import PtySession

MARK = "after all of it"


def answers(workspace: Path) -> list[Reply | Failure]:
    """An answer, thinking, results, errors, questions, and a refusal of the service."""
    (workspace / "hostile.txt").write_bytes(LINES.encode("utf-8", "surrogatepass"))
    return [
        Reply(
            Thinks(ENCODABLE),
            Says(LINES),
            Calls("Read", {"file_path": "hostile.txt"}),
            Calls("Read", {"file_path": IN_ONE_LINE[:200]}),
            Calls("Grep", {"pattern": "end", "path": "hostile.txt"}),
            Calls(IN_ONE_LINE[:60], {}),
            Calls("WebFetch", {"url": f"http://127.0.0.1:1/{IN_ONE_LINE[:300]}"}),
            Calls("Write", {"file_path": "made.txt", "content": LINES}),
            Calls("TodoWrite", {"todos": [{"content": IN_ONE_LINE[:300], "status": "pending"}]}),
        ),
        Reply(Calls("Bash", {"command": f"true {TYPED[:600]}"})),
        Reply(Calls("Write", {"file_path": "made.txt", "content": ENCODABLE})),
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
    (tmp_path / "hostile.txt").write_bytes(LINES.encode("utf-8", "surrogatepass"))
    with (
        MessagesServer(Reply(Says("It streams", latch := Latch())), Reply(Says(MARK))) as server,
        live_midturn(server, tmp_path, Start(cols=120, rows=40)) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.paste(line.format(TYPED))
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
    [[Reply(Says(LINES))], [Failure(400, message=IN_ONE_LINE)]],
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
        TYPED[:400],
    ]
    with PtySession(argv, env=midturn_environment(), cwd=str(tmp_path)) as session:
        session.wait_exit(30)
        session.wait_idle(0.2)
        assert_harmless(session)
