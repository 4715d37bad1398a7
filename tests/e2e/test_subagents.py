"""Subagents through the real command: one answer, their questions, and what stops them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from midturn_core.model.messages import JsonObject
from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Calls, Item, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.request_texts import injected, said_in, typed, words_in

ALLOWED = Start(["--allow", "Bash(cat:*)"])
TASK: JsonObject = {
    "description": "find the plum",
    "prompt": "Which file says plum?",
    "subagent_type": "explore",
}


def task(kind: str = "explore") -> Calls:
    return Calls("Task", {**TASK, "subagent_type": kind})


def reads(*items: Item) -> Reply:
    return Reply(Says("I look. "), *items, *(read(name) for name in ("a.txt", "b.txt")))


def read(name: str) -> Calls:
    return Calls("Read", {"file_path": name})


def fruit(workspace: Path) -> None:
    (workspace / "a.txt").write_text("apple\n", encoding="utf-8")
    (workspace / "b.txt").write_text("plum\n", encoding="utf-8")


def tools_of(request: RecordedRequest) -> list[str]:
    tools = request.body["tools"]
    assert isinstance(tools, list)
    return [str(tool["name"]) for tool in tools if isinstance(tool, dict)]


def test_its_answer_alone_reaches_the_main_agent(tmp_path: Path) -> None:
    fruit(tmp_path)
    latch = Latch()
    with (
        MessagesServer(
            Reply(task()),
            reads(),
            Reply(Says("b.txt:1", latch, " says plum.")),
            Reply(Says("It is b.txt.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("where is the plum?")
        live.see(r"^. \[Task: explore: find the plum\].* [\d.]+s · 2 tools · Read: b\.txt$")
        latch.open()
        live.see(r"^\[Task: explore: find the plum\] ✓ \(.*\)\n  → 2 steps · 2 tools · 30 tokens$")
        shown = live.see("It is b.txt.")
        assert "I look." not in shown.text and "says plum" not in shown.text

        first, begun, _, last = server.wait_for_requests(4)
        assert "Task" in tools_of(first)
        assert tools_of(begun) == ["Read", "Grep", "Glob", "WebFetch"]
        assert said_in(begun) == [typed("Which file says plum?")]
        assert [result["content"] for result in last.results] == ["b.txt:1 says plum."]
        assert server.violations == []

        live.enter("/expand")
        expanded = live.see(r"^│ b\.txt:1 says plum\.").text
        assert re.search(r"^│ I look\.\s*\n│ \[Read: a\.txt\] · 1 line", expanded, re.M)
        live.enter("/cost")
        live.see(r"^ *input +40")


def test_the_session_goes_on_after_it_as_if_it_had_been_one_call(tmp_path: Path) -> None:
    fruit(tmp_path)
    with MessagesServer(
        *(Reply(task()), reads(), Reply(Says("b.txt")), Reply(Says("Found."))),
        *(Reply(task()), reads(), Reply(Says("b.txt again")), Reply(Says("Yes."))),
    ) as server:
        environ = midturn_environment(**server.environment())
        found = run_midturn("-p", "find it", environ=environ, cwd=tmp_path)
        again = run_midturn("-p", "-c", "are you sure?", environ=environ, cwd=tmp_path)
    assert (found.stdout, found.stderr, again.stdout) == (b"Found.\n", b"", b"Yes.\n")
    last = server.requests[-1]
    assert [message["role"] for message in last.messages] == ["user", "assistant"] * 3 + ["user"]
    ids = [str(server.requests[number].results[0]["tool_use_id"]) for number in (2, 6)]
    assert [tool_use_id.split("-toolu")[0] for tool_use_id in ids] == ["sub-1", "sub-2"]
    assert server.violations == []


def test_esc_stops_it_with_what_it_runs_and_the_next_turn_is_valid(tmp_path: Path) -> None:
    gate = FifoLatch(tmp_path)
    with (
        MessagesServer(
            Reply(task("general"), read("a.txt")),
            Reply(Says("I run it."), Calls("Bash", {"command": gate.command})),
            Reply(Says("fine")),
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("go")
        gate.reached()
        live.see(r"1 tool · Bash: cat")
        live.key("esc")
        gate.abandoned()
        live.see("Interrupted after")
        live.enter("again")
        live.see("fine")
        last = server.requests[-1]
        stopped, skipped = (str(result["content"]) for result in last.results)
        assert stopped.startswith("stopped after ") and "the user interrupted the turn" in stopped
        assert "- [Bash: cat " in stopped and "I run it." in stopped
        assert skipped == "skipped: the user interrupted the turn"
        assert server.violations == []


def test_esc_while_its_answer_streams_keeps_what_it_had(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(
            Reply(task()), Reply(Says("half an ", latch)), Reply(Says("fine"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        latch.reached.wait()
        live.key("esc")
        live.see("Interrupted after")
        live.enter("again")
        live.see("fine")
        [result] = server.requests[-1].results
        assert "Its last words were:\n\nhalf an" in str(result["content"])


def test_its_question_names_it_and_y_lets_the_call_run(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(task("general")),
            Reply(Calls("Bash", {"command": "touch made"})),
            Reply(Says("made it")),
            Reply(Says("all done")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"^\? general: Bash")
        live.see("^│ touch made")
        live.see(r"Task: general: find the plum.*0 tools · asks: Bash: touch made")
        live.see("y once")
        live.send("y")
        live.see("all done")
        assert (tmp_path / "made").exists()
        assert server.violations == []


def test_an_interrupt_takes_its_question_back(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(task("general")), Reply(Calls("Bash", {"command": "touch made"}))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"^\? general: Bash")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see_not("y once")
        live.see(rf"^{GLYPH}")
        assert len(server.requests) == 2
        assert not (tmp_path / "made").exists()


def test_a_now_waits_for_it_and_esc_then_stops_it_alone(tmp_path: Path) -> None:
    """D1: a running Task is not cut by the NOW itself, and no subagent sees what was typed."""
    gate = FifoLatch(tmp_path)
    with (
        MessagesServer(
            Reply(task("general")),
            Reply(Calls("Bash", {"command": gate.command})),
            Reply(Says("as you wish")),
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("go")
        gate.reached()
        live.enter_as("NOW", "look at b.txt instead")
        live.see("queue 1 NOW")
        assert len(server.requests) == 2
        live.key("esc")
        gate.abandoned()
        shown = live.see("as you wish")
        assert "Interrupted after" not in shown.text
        last = server.requests[-1]
        assert words_in(last) == [injected("look at b.txt instead")]
        assert "the user cancelled this call" in str(last.results[0]["content"])


def test_a_type_of_ones_own_is_used_and_a_broken_file_is_a_warning(tmp_path: Path) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "midturn" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text(
        "---\nname: reviewer\ndescription: Reviews.\ntools: Read\n---\nYou review plums.\n",
        encoding="utf-8",
    )
    (folder / "broken.md").write_text("---\nname: broken\n---\nNo.\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(task("reviewer")), Reply(Says("ripe")), Reply(Says("It is ripe."))
        ) as server,
        live_midturn(server, tmp_path, Start(cols=160)) as live,
    ):
        live.see(r"broken\.md:1: description is missing; write description: \.\.\.;")
        live.enter("review it")
        live.see("It is ripe.")
        _, begun, _ = server.wait_for_requests(3)
        assert tools_of(begun) == ["Read"]
        assert "You review plums." in json.dumps(begun.body["system"])
        live.enter("/agents")
        live.see(r"^ *reviewer +Read +as the session +50")


def test_those_that_only_read_run_together_when_that_is_allowed(tmp_path: Path) -> None:
    """D35: both are in the middle of their answers at the same time."""
    one, other = Latch(), Latch()
    start = Start(["--parallel"], config="[subagents]\nparallel = true\n")
    with (
        MessagesServer(
            Reply(task(), task()),
            Reply(Says("plum ", one)),
            Reply(Says("plum ", other)),
            Reply(Says("both say plum")),
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("ask two")
        one.reached.wait()
        other.reached.wait()
        live.see(r"\[1/2\] Task: explore: find the plum.*\n.*\[2/2\] Task: explore")
        other.open()
        live.see(r"^✓ \[[12]/2\] Task: explore|^│ \[1/2\] Task: explore.* ✓")
        one.open()
        live.see("both say plum")
        live.see_anywhere(r"Total: 2/2 succeeded in .* \(parallel")
        last = server.requests[-1]
        assert [result["content"] for result in last.results] == ["plum", "plum"]
        assert server.violations == []


def test_stream_json_wraps_what_it_does(tmp_path: Path) -> None:
    fruit(tmp_path)
    with MessagesServer(
        Reply(task()), reads(), Reply(Says("b.txt")), Reply(Says("Found."))
    ) as server:
        done = subprocess.run(
            [sys.executable, "-m", "midturn_cli.main", "-p", "x", "--output-format", "stream-json"],
            env=midturn_environment(**server.environment()),
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    [call] = [event["id"] for event in events if event["type"] == "tool_started"]
    wrapped = [event for event in events if event["type"] == "subagent"]
    assert {event["task"] for event in wrapped} == {call}
    assert [event["event"]["name"] for event in wrapped if "name" in event["event"]] == ["Read"] * 4
    assert "".join(event["text"] for event in events if event["type"] == "text") == "Found."
    assert events[-1]["usage"]["input_tokens"] == 40


def test_in_print_mode_its_question_is_answered_with_no_and_said(tmp_path: Path) -> None:
    with MessagesServer(
        Reply(task("general")),
        Reply(Calls("Bash", {"command": "touch made"})),
        Reply(Says("It was not allowed.")),
        Reply(Says("No.")),
    ) as server:
        done = run_midturn(
            "-p", "x", environ=midturn_environment(**server.environment()), cwd=tmp_path
        )
    assert done.stdout == b"No.\n"
    assert b"not allowed: Bash touch made" in done.stderr
    assert server.violations == []
