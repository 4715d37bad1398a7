"""Two terminals: what one sends reaches the session in the other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from midturn_core.session.running import SessionState
from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import COMMAND, Start, live_midturn, write_config
from tests.support.messages_script import DEADLINE, Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.pty_harness import PtySession
from tests.support.redis_server import RedisServer
from tests.support.request_texts import injected, said_in, times_said, typed, words_in
from tests.support.running import reachable

ALLOWED = Start(["--allow", "Bash(cat:*)"])


def second_terminal(workspace: Path, *arguments: str) -> str:
    """What a command shows in a terminal of its own, once it has ended well."""
    environ = midturn_environment()
    with PtySession([*COMMAND, *arguments], env=environ, cwd=str(workspace)) as terminal:
        terminal.wait(r"\n", timeout=DEADLINE)
        assert terminal.wait_exit(DEADLINE) == 0
        return bytes(terminal.log.data).decode()


def outside(workspace: Path, *arguments: str, stdin: bytes = b"") -> str:
    done = run_midturn(*arguments, stdin=stdin, cwd=workspace)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def refused(workspace: Path, code: int, *arguments: str) -> str:
    done = run_midturn(*arguments, cwd=workspace)
    assert (done.returncode, done.stdout) == (code, b""), done
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


def test_a_now_line_of_a_second_terminal_shows_at_once_and_goes_in_after_the_step(
    tmp_path: Path,
) -> None:
    gate = FifoLatch(tmp_path)
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": gate.command})), Reply(Says("changed course"))
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("run it")
        gate.reached()
        said = second_terminal(tmp_path, "send", "--now", "--from", "ci", "stop, use the new one")
        assert "as NOW; it is working." in said
        live.see(r"^NOW +stop, use the new one · from ci · waits for Bash")
        gate.open()
        live.see("changed course")
        _, second = server.wait_for_requests(2)
        assert words_in(second) == [injected("stop, use the new one")]
        assert times_said("stop, use the new one", second) == 1
        live.see_anywhere(r"❯ stop, use the new one\n  NOW · after step 1 · from ci")
        live.see_nothing_waiting()


def test_an_idle_session_begins_with_what_arrives(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("on it"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        reachable()
        outside(tmp_path, "send", "--later", stdin=b"from a pipe\n")
        live.see("on it")
        assert said_in(server.requests[0]) == [typed("from a pipe")]
        live.see_anywhere(r"❯ from a pipe\n  from outside")


def test_what_waits_is_seen_and_changed_from_outside_and_the_screen_follows(
    tmp_path: Path,
) -> None:
    latch = Latch()
    with (
        MessagesServer(
            Reply(Says("half ", latch, "done")), Reply(Says("all")), Reply(Says("of it"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("begin")
        live.see("half")
        live.enter("typed here")
        outside(tmp_path, "send", "one")
        outside(tmp_path, "send", "two")
        live.see(r"^NEXT +typed here · .*\nNEXT +one · from outside · .*\nNEXT +two · from outside")

        assert outside(tmp_path, "queue", "mv", "3", "1") == "Number 1 now: two\n"
        live.see(r"^NEXT +two .*\nNEXT +typed here .*\nNEXT +one")
        assert outside(tmp_path, "queue", "later", "2") == "LATER now: typed here\n"
        live.see(r"^NEXT +two .*\nNEXT +one .*\nLATER +typed here")
        assert outside(tmp_path, "queue", "rm", "2") == "Removed, never sent: one\n"
        live.see(r"^NEXT +two .*\nLATER +typed here")
        assert "3: the list ends at 2" in refused(tmp_path, 1, "queue", "rm", "3")

        listed = json.loads(outside(tmp_path, "queue", "ls", "--json"))
        assert [item["text"] for item in listed["waiting"]] == ["two", "typed here"]
        (session,) = json.loads(outside(tmp_path, "sessions", "--json"))["running"]
        assert (session["id"], session["state"]) == (listed["session"], "working")
        assert (session["waiting"], session["folder"]) == (2, str(tmp_path.resolve()))
        assert session["pid"] == live.process.pid

        latch.open()
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == [typed("two")]
        assert said_in(third) == [typed("typed here")]


def test_the_list_says_when_a_reminder_is_due_and_is_no_flood(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(Reply(Says("half ", latch, "done"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("begin")
        live.see("half")
        live.enter("/remind 20m tea")
        live.see(r"Queued in 20 min")
        outside(tmp_path, "send", "--later", "x" * 100_000)
        listed = outside(tmp_path, "queue")
        assert re.search(r"LATER  tea · in \d+ min \(", listed)
        assert f"{'x' * 300}… · from outside" in listed
        assert len(listed) < 1000
        outside(tmp_path, "queue", "clear")
        latch.open()
        live.see_idle()


def test_a_command_from_outside_is_refused_by_the_sender_with_the_way_out(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        reachable()
        for line in ("!touch made", "/clear"):
            said = refused(tmp_path, 2, "send", line)
            assert "remote_commands = true" in said
        assert "There is no command /cleer" in refused(tmp_path, 2, "send", "/cleer")
        live.enter("!true")
        live.see_idle()
    assert not (tmp_path / "made").exists()


def test_where_commands_may_come_from_outside_they_run(tmp_path: Path) -> None:
    start = Start(config="[queue]\nremote_commands = true\n")
    with MessagesServer() as server, live_midturn(server, tmp_path, start) as live:
        reachable()
        outside(tmp_path, "send", "!echo made by $((40 + 2))")
        live.see("made by 42")


def test_a_question_is_not_answered_from_outside(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "touch made"})), Reply(Says("as you say"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("make it")
        live.see("y once")
        outside(tmp_path, "send", "y")
        live.see(r"^NEXT +y · from outside")
        (session,) = reachable()
        assert session.state is SessionState.ASKING
        assert not (tmp_path / "made").exists()
        live.send("n")
        live.see("as you say")
        assert words_in(server.requests[1]) == [injected("y")]
    assert not (tmp_path / "made").exists()


def test_it_must_be_clear_which_session_is_meant(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert "no session runs" in refused(tmp_path, 2, "send", "hello")
    answers = [Reply(Says("heard")) for _ in range(2)]
    with (
        MessagesServer(*answers) as server,
        live_midturn(server, tmp_path) as here,
        live_midturn(server, other) as there,
    ):
        reachable(2)
        (one,) = [s for s in running(tmp_path) if s["folder"] == str(tmp_path.resolve())]
        assert f"Sent to {one['id']}" in outside(tmp_path, "send", "here")
        said = refused(tmp_path.parent, 2, "send", "nowhere")
        assert "2 sessions run and none of them in this folder" in said and str(one["id"]) in said
        assert "choose one with --to SESSION" in said
        begin = str(one["id"])[:-1]
        assert f"Sent to {one['id']}" in outside(other, "send", "--to", begin, "there")
        assert "no session with an id" in refused(other, 2, "queue", "--to", "nobody")
        here.see_anywhere(r"❯ here(.*\n)+.*❯ there")
        assert "here" not in there.shown().text


def running(workspace: Path) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(outside(workspace, "sessions", "--json"))[
        "running"
    ]
    return listed


def test_over_the_cap_the_text_is_refused_and_not_stored(tmp_path: Path) -> None:
    latch = Latch()
    start = Start(config="[queue]\ncap = 2\n")
    with (
        MessagesServer(Reply(Says("half ", latch)), Reply(Says("done"))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("begin")
        live.see("half")
        outside(tmp_path, "send", "one")
        outside(tmp_path, "send", "two")
        said = refused(tmp_path, 1, "send", "three")
        assert said.startswith("midturn: not sent: 2 inputs are already waiting")
        assert "three" not in outside(tmp_path, "queue")
        latch.open()
        live.see("done")


def test_the_way_back_to_a_session_of_the_demo_names_the_demo(tmp_path: Path) -> None:
    assert run_midturn("demo", "-p", "count to 1", cwd=tmp_path).returncode == 0
    said = outside(tmp_path, "send", "--last", "for next time")
    assert "offers the text when it goes on: midturn demo -r " in said


def test_what_is_sent_to_a_session_that_does_not_run_is_offered_when_it_goes_on(
    tmp_path: Path,
) -> None:
    with MessagesServer(Reply(Says("hello")), Reply(Says("again"))) as server:
        environ = midturn_environment(**server.environment())
        assert run_midturn("-p", "hi", environ=environ, cwd=tmp_path).returncode == 0
        said = outside(tmp_path, "send", "--last", "for next time")
        assert "it does not run, and offers the text when it goes on: midturn -r " in said
        session = said.rsplit(" ", 1)[1].strip()

        with live_midturn(server, tmp_path) as live:
            live.see_anywhere(
                rf"1 input waits in an earlier session of this folder: midturn -r {session}"
            )
            live.see_anywhere(rf"midturn queue --to\s+{session}\s+shows")
            live.see_anywhere(rf"midturn queue clear --to\s+{session}\s+removes")
        assert "for next time" in outside(tmp_path, "queue", "--to", session)
        assert f"{session}  1  midturn -r {session}" in outside(tmp_path, "sessions")
        again = run_midturn("-p", "-c", "once more", environ=environ, cwd=tmp_path)
        assert b"1 queued input(s) wait in this session" in again.stderr
        with live_midturn(server, tmp_path, Start(["-r", session])) as live:
            live.see(r"for next time")
            live.see("Left from last time, held")


def test_what_an_earlier_session_left_is_removed_by_the_command_that_is_named(
    tmp_path: Path,
) -> None:
    with MessagesServer(Reply(Says("hello"))) as server:
        environ = midturn_environment(**server.environment())
        assert run_midturn("-p", "hi", environ=environ, cwd=tmp_path).returncode == 0
        outside(tmp_path, "send", "--last", "for next time")
        with live_midturn(server, tmp_path) as live:
            shown = live.see_anywhere("removes")
        words = " ".join(shown.text.split())
        found = re.search(r"midturn (queue clear --to \S+) removes", words)
        assert found is not None
        outside(tmp_path, *found[1].split())
        assert "for next time" not in outside(tmp_path, "sessions")
        outside(tmp_path, "send", "--last", "another", "--later")
        with live_midturn(server, tmp_path) as live:
            live.see_anywhere("1 input waits in an earlier session")


def test_a_session_of_another_machine_is_reached_through_redis_by_its_id(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    config = f'[queue]\nbackend = "redis"\nurl = "{redis_server.url}"\n'
    with (
        MessagesServer(Reply(Says("heard you"))) as server,
        live_midturn(server, tmp_path, Start(config=config)) as live,
    ):
        (session,) = reachable()
        # A home folder of its own is a machine of its own: no socket, no list of sessions.
        elsewhere = tmp_path / "elsewhere"
        (elsewhere / "midturn").mkdir(parents=True)
        (elsewhere / "midturn" / "config.toml").write_text(config)
        environ = midturn_environment(
            XDG_CONFIG_HOME=str(elsewhere), XDG_STATE_HOME=str(elsewhere / "state")
        )
        words = ("send", "--to", session.id, "--from", "other machine", "hello")
        done = run_midturn(*words, environ=environ, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"it does not run on this machine" in done.stdout
        live.see("heard you")
        live.see_anywhere(r"❯ hello\n  from other machine")


def test_a_store_that_cannot_be_used_is_told_by_every_command(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    write_config(f'[queue]\npath = "{shared}/queue.db"\n')
    listed = run_midturn("sessions", cwd=tmp_path)
    assert (listed.returncode, listed.stdout) == (1, b"No session runs.\n")
    assert f"make it private with: chmod 700 '{shared}'".encode() in listed.stderr
    write_config('[queue]\nbackend = "redis"\nurl = "redis://127.0.0.1:1"\n')
    said = refused(tmp_path, 1, "send", "--to", "20260704-091200-a1b2c3", "hello")
    assert said.startswith("midturn: not sent: the queue in Redis at 127.0.0.1:1/0 cannot be used")
    said = refused(tmp_path, 1, "queue", "--to", "20260704-091200-a1b2c3")
    assert "start the server, or correct queue.url" in said
    write_config('[queue]\nbackend = "memory"\n')
    assert "no session with an id" in refused(tmp_path, 2, "send", "--to", "none", "hello")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("send", "send needs a text"),
        ("send --now --later x", "--now and --later cannot be used together"),
        ("send --to a --last x", "--to and --last cannot be used together"),
        ("send --to= x", "--to needs the ID of a session"),
        ("send a b", "put a prompt of several words in quotes"),
        ("queue mv 1", "needs the number of the list and the number to move it to"),
        ("queue drop 1", "does not know 'drop 1'; it takes ls, rm N, mv N M"),
        ("queue rm 1 --json", "--json goes with midturn queue ls"),
    ],
)
def test_a_mistake_in_the_command_line_is_told(line: str, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, 2, *line.split(" "))
