"""Where there is no terminal for a live input line: no escape codes, and the right exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.live_midturn import write_config
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import DEADLINE, midturn_environment, run_midturn
from tests.support.pty_harness import PtySession

COMMAND = (sys.executable, "-m", "midturn_cli.main")


def piped(
    server: MessagesServer, workspace: Path, text: str, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    environ = midturn_environment(**server.environment(), TERM="xterm-256color")
    return run_midturn(*arguments, stdin=text.encode(), environ=environ, cwd=workspace)


def terminal(
    server: MessagesServer,
    workspace: Path,
    *arguments: str,
    command: Sequence[str] = COMMAND,
    term: str = "xterm-256color",
) -> PtySession:
    """``midturn`` with keyboard and screen, for the modes without a live input line."""
    environ = midturn_environment(**server.environment(), TERM=term)
    return PtySession([*command, *arguments], env=environ, cwd=str(workspace))


def test_a_piped_question_is_answered_without_escape_codes(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("the **answer** is \x1b[31mplum\x1b[0m"))) as server:
        done = piped(server, tmp_path, "question\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"the **answer** is plum" in done.stdout
    assert b"\x1b" not in done.stdout
    assert server.requests[0].texts == ["question"]


def test_piped_lines_are_turns_of_their_own_in_order(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("one")), Reply(Says("two"))) as server:
        done = piped(server, tmp_path, "first\nsecond\n")
    assert done.returncode == 0
    assert [request.texts for request in server.requests] == [["first"], ["second"]]
    assert done.stdout.index(b"one") < done.stdout.index(b"two")


def test_what_was_not_sent_is_told_on_one_clean_line_each(tmp_path: Path) -> None:
    """It may be long, and come from somewhere else: its control characters reach no terminal."""
    write_config('[queue]\nlater = "manual"\n')
    with MessagesServer() as server:
        done = piped(server, tmp_path, f"/later a \x1b]0;title\x07line {'word ' * 2_000}\n")
    said = [line for line in done.stdout.decode().splitlines() if line.startswith("not sent: ")]
    assert len(said) == 1 and said[0].startswith("not sent: a ") and len(said[0]) < 400
    assert b"\x1b" not in done.stdout and b"\x07" not in done.stdout


def test_an_empty_input_is_the_end(tmp_path: Path) -> None:
    done = run_midturn(environ=midturn_environment(ANTHROPIC_API_KEY="key"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Traceback" not in done.stdout


def test_a_question_of_a_tool_is_denied_where_nobody_can_answer(tmp_path: Path) -> None:
    with MessagesServer(
        Reply(Calls("Bash", {"command": "touch made"})), Reply(Says("I may not."))
    ) as server:
        done = piped(server, tmp_path, "make it\n")
    assert done.returncode == 0
    assert b"I may not." in done.stdout
    assert not (tmp_path / "made").exists()
    assert server.requests[1].results[0]["is_error"] is True


def test_a_failed_turn_is_the_exit_code_of_a_pipe(tmp_path: Path) -> None:
    with MessagesServer(Failure(401, "authentication_error", "invalid x-api-key")) as server:
        done = piped(server, tmp_path, "question\n")
    assert done.returncode == 1
    assert b"refused the key" in done.stdout + done.stderr
    assert b"\x1b" not in done.stdout


def test_nothing_after_exit_is_sent(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("one"))) as server:
        done = piped(server, tmp_path, "first\n/exit\nnever\n")
    assert done.returncode == 0
    assert [request.texts for request in server.requests] == [["first"]]


def test_a_command_with_a_typing_error_is_told_and_not_sent(tmp_path: Path) -> None:
    """MB-1202."""
    with MessagesServer() as server:
        done = piped(server, tmp_path, "/exti\n/EXITT\n")
    assert (done.returncode, server.requests) == (0, [])
    assert b"no command /exti" in done.stdout
    assert b"no command /EXITT" in done.stdout


def test_output_into_a_pipe_has_no_escape_codes_though_keys_come_from_a_terminal(
    tmp_path: Path,
) -> None:
    through_cat = ("sh", "-c", '"$@" | cat', "sh", *COMMAND)
    with (
        MessagesServer(Reply(Says("the *answer*"))) as server,
        terminal(server, tmp_path, command=through_cat) as live,
    ):
        live.send("question\n")
        live.wait(r"the \*answer\*", timeout=DEADLINE)
        live.send("\x04")
        assert live.wait_exit(DEADLINE) == 0
    assert b"\x1b" not in live.log.data


@pytest.mark.parametrize(
    ("term", "arguments"),
    [("dumb", []), ("xterm-256color", ["--plain"])],
    ids=["TERM=dumb", "--plain"],
)
def test_a_dumb_terminal_gets_the_answer_and_no_escape_codes(
    tmp_path: Path, term: str, arguments: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Says("I look."), Calls("Read", {"file_path": "a.txt"})),
            Reply(Says("It is **plum**.")),
        ) as server,
        terminal(server, tmp_path, *arguments, term=term) as live,
    ):
        live.send("what is it?\n")
        live.wait(r"It is \*\*plum\*\*", timeout=DEADLINE)
        live.wait(r"Done after \S+, 2 steps", timeout=DEADLINE)
        live.send("/exit\n")
        assert live.wait_exit(DEADLINE) == 0
    assert b"\x1b" not in live.log.data


def test_a_dumb_terminal_can_answer_a_question(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "touch made"})), Reply(Says("Made."))
        ) as server,
        terminal(server, tmp_path, "--plain") as live,
    ):
        live.send("make it\n")
        live.wait("y once", timeout=DEADLINE)
        live.send("y\n")
        live.wait(r"Made\.", timeout=DEADLINE)
    assert (tmp_path / "made").exists()


def test_a_line_entered_during_a_turn_reaches_the_model(tmp_path: Path) -> None:
    streaming = Latch()
    with (
        MessagesServer(Reply(Says("one", streaming, " two")), Reply(Says("and three"))) as server,
        terminal(server, tmp_path, "--plain") as live,
    ):
        live.send("first\n")
        streaming.reached.wait()
        live.send("second\n")
        live.wait("queued|second", timeout=DEADLINE)
        streaming.open()
        live.wait("and three", timeout=DEADLINE)
        assert server.requests[1].texts == ["second"]


def test_ctrl_c_cancels_the_turn_and_then_leaves(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("one", Latch()))) as server,
        terminal(server, tmp_path, "--plain") as live,
    ):
        live.send("first\n")
        server.wait_for_requests(1)
        live.send("\x03")
        live.wait("Interrupted after", timeout=DEADLINE)
        live.send("\x03")
        assert live.wait_exit(DEADLINE) == 130
    assert b"Traceback" not in live.log.data
