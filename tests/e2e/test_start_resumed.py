"""Going on with a session: what is shown, what is sent, and what is said when it is damaged."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.model.messages import TextBlock
from midturn_core.paths import sessions_folder
from midturn_core.session.store import SessionStore
from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn

CONTINUE = Start(arguments=("-c",))


def saved_session(workspace: Path, prompt: str, answer: str) -> str:
    """A session of one turn in the store; its id."""
    session = SessionStore(sessions_folder(os.environ)).create(workspace)
    conversation = Conversation(session.record_change)
    conversation.add_user_text(prompt)
    conversation.add_assistant([TextBlock(answer)])
    session.close()
    return session.id


def print_turn(workspace: Path, prompt: str, answer: str, *arguments: str) -> RecordedRequest:
    """One turn of ``midturn -p``; its request."""
    with MessagesServer(Reply(Says(answer))) as server:
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", prompt, *arguments, environ=environ, cwd=workspace)
    assert done.stdout.decode().strip() == answer, done.stderr
    [request] = server.requests
    return request


def session_file(session: str) -> Path:
    return sessions_folder(os.environ) / f"{session}.jsonl"


def said(request: RecordedRequest) -> list[tuple[object, str]]:
    """Role and text of all messages of a request."""
    shown: list[tuple[object, str]] = []
    for message in request.messages:
        content = message["content"]
        if isinstance(content, list):
            texts = [
                str(block["text"])
                for block in content
                if isinstance(block, dict) and "text" in block
            ]
            content = "|".join(texts)
        shown.append((message["role"], str(content)))
    return shown


@pytest.mark.parametrize("how", ["-c", "-r"])
def test_a_session_goes_on_with_its_history_on_the_screen(tmp_path: Path, how: str) -> None:
    session = saved_session(tmp_path, "the word is plum", "I keep it.")
    arguments = ("-c",) if how == "-c" else ("-r", session)
    with (
        MessagesServer(Reply(Says("It was plum."))) as server,
        live_midturn(server, tmp_path, Start(arguments=arguments)) as live,
    ):
        live.see("❯ the word is plum\n\nI keep it")
        live.enter("which word?")
        live.see("It was plum")
        [request] = server.requests
    assert said(request) == [
        ("user", "the word is plum"),
        ("assistant", "I keep it."),
        ("user", "which word?"),
    ]


@pytest.mark.slow
def test_print_mode_goes_on_too(tmp_path: Path) -> None:
    print_turn(tmp_path, "the word is plum", "I keep it.")
    print_turn(tmp_path, "which word?", "Plum.", "-c")
    [file] = sessions_folder(os.environ).glob("*.jsonl")
    third = print_turn(tmp_path, "how often?", "Twice.", "-r", file.stem)
    assert [text for _, text in said(third)] == [
        "the word is plum",
        "I keep it.",
        "which word?",
        "Plum.",
        "how often?",
    ]


def test_the_latest_session_is_the_latest_of_this_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    saved_session(here, "I am here", "Yes.")
    saved_session(there, "I am there", "Yes.")
    with MessagesServer() as server, live_midturn(server, here, CONTINUE) as live:
        live.see("❯ I am here")


def test_a_session_killed_in_the_middle_of_a_call_goes_on_with_a_valid_history(
    tmp_path: Path,
) -> None:
    (tmp_path / "wait.sh").write_text("echo begun; sleep 600\n", encoding="utf-8")
    allowed = Start(arguments=("--allow", "Bash(sh wait.sh)"))
    with (
        MessagesServer(
            Reply(Says("I run it."), Calls("Bash", {"command": "sh wait.sh"}))
        ) as server,
        live_midturn(server, tmp_path, allowed) as live,
    ):
        live.enter("run it")
        live.see("begun")
        live.signal(signal.SIGKILL)
        live.wait_exit(30)
    with (
        MessagesServer(Reply(Says("I see."))) as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        live.see("❯ run it")
        live.enter("what happened?")
        live.see("I see")
        [request] = server.requests
    assert request.texts[-1] == "what happened?"
    assert said(request)[0] == ("user", "run it")


def test_an_answer_cut_by_a_kill_is_no_obstacle(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("The first half", Latch()))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("tell me")
        live.see("The first half")
        live.signal(signal.SIGKILL)
        live.wait_exit(30)
    with (
        MessagesServer(Reply(Says("Again."))) as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        live.see("❯ tell me")
        live.enter("go on")
        live.see(r"Again\.")
        assert server.requests[0].texts[-1] == "go on"


@pytest.mark.parametrize(
    ("lost", "added"),
    [(7, b""), (0, b'{"half of a rec'), (0, bytes(100))],
    ids=["cut", "half-a-record", "zeros"],
)
def test_a_damaged_end_is_said_and_the_rest_goes_on(
    tmp_path: Path, lost: int, added: bytes
) -> None:
    """MB-0903."""
    session = saved_session(tmp_path, "the word is plum", "I keep it.")
    file = session_file(session)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) - lost] + added)
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        live.see_anywhere("The session file was damaged")
        live.see("❯ the word is plum")
        live.enter("go on")
        live.see(r"Fine\.")


@pytest.mark.parametrize("content", [b"\x00\x01 no session at all\n", b"[1, 2]\n"])
def test_a_file_that_is_no_session_is_said_and_kept(tmp_path: Path, content: bytes) -> None:
    session = saved_session(tmp_path, "the word is plum", "I keep it.")
    file = session_file(session)
    file.write_bytes(content)
    with MessagesServer(Reply(Says("Fine."))) as server:
        done = run_midturn(
            "-p",
            "go",
            "-r",
            session,
            environ=midturn_environment(**server.environment()),
            cwd=tmp_path,
        )
    assert (done.returncode, done.stdout) == (0, b"Fine.\n")
    assert done.stderr.startswith(b"midturn: warning: ")
    assert b"Traceback" not in done.stderr
    assert content in [kept.read_bytes() for kept in file.parent.iterdir()]


@pytest.mark.parametrize("arguments", [("-r", "20200101-000000-abcdef"), ("-c",)])
def test_a_session_that_is_not_there_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run_midturn("-p", "go", *arguments, environ=midturn_environment(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_in_a_terminal_the_sentence_stands_on_a_clean_screen(tmp_path: Path) -> None:
    with MessagesServer() as server:
        start = Start(arguments=("-r", "20200101-000000-abcdef"))
        with live_midturn(server, tmp_path, start) as live:
            assert live.wait_exit(30) == 2
            shown = live.shown()
    assert "20200101-000000-abcdef" in shown.text
    assert "›" not in shown.text


def test_a_line_entered_before_the_session_turned_out_to_be_missing_is_given_back(
    tmp_path: Path,
) -> None:
    with MessagesServer() as server:
        environ = midturn_environment(**server.environment())
        with LiveMidturn(tmp_path, Start(("-r", "20200101-000000-abcdef")), environ) as live:
            live.send("my long first prompt\r")
            assert live.wait_exit(30) == 2
            assert "my long first prompt" in live.shown().text
    assert server.requests == []


def test_a_session_in_use_is_not_opened_twice(tmp_path: Path) -> None:
    session = saved_session(tmp_path, "the word is plum", "I keep it.")
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, Start(arguments=("-r", session))) as live,
    ):
        live.see("❯ the word is plum")
        second = run_midturn(
            "-p",
            "and I?",
            "-r",
            session,
            environ=midturn_environment(**server.environment()),
            cwd=tmp_path,
        )
        assert second.returncode == 2
        assert b"another Midturn writes to it" in second.stderr
        live.enter("go on")
        live.see(r"Fine\.")
        assert [request.texts[-1] for request in server.requests] == ["go on"]
