"""Ctrl-C and Esc: at once, nothing typed is lost, nothing is sent by itself, the history is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import (
    Answer,
    Calls,
    Failure,
    Latch,
    NoAnswer,
    Reply,
    Says,
    Silence,
    Thinks,
)
from tests.support.messages_server import MessagesServer
from tests.support.request_texts import (
    kinds_in,
    never_said,
    notes_in,
    said_in,
    times_said,
    typed,
    words_in,
)

ALLOWED = Start(["--allow", "Bash(cat:*)"])


@pytest.mark.parametrize("key", ["ctrl-c", "esc"])
def test_a_streaming_answer_is_cancelled_and_the_next_turn_goes_on_from_it(
    tmp_path: Path, key: str
) -> None:
    latch = Latch()
    with (
        MessagesServer(
            Reply(Says("a long story begins ", latch, "and never ends")), Reply(Says("a short one"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("tell me a story")
        live.see("a long story begins")
        live.type("a draft of mine")
        live.key(key)
        live.see("Interrupted after")
        server.requests[0].disconnected.wait()
        live.see(rf"^{GLYPH} a draft of mine")

        live.key("enter")
        live.see("a short one")
        _, second = server.wait_for_requests(2)
        assert "a long story begins" in str(second.messages[1]["content"])
        assert words_in(second) == [typed("a draft of mine")]
        assert "interrupted" in notes_in(second)[0]


def test_a_running_command_is_killed_and_every_call_is_answered(tmp_path: Path) -> None:
    gate = FifoLatch(tmp_path)
    (tmp_path / "a.txt").write_text("never read\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(
                Says("Both of them."),
                Calls("Bash", {"command": gate.command}),
                Calls("Read", {"file_path": "a.txt"}),
            ),
            Reply(Says("on we go")),
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("do both")
        gate.reached()
        live.type("draft X")
        live.key("ctrl-c")
        gate.abandoned()
        live.see("Interrupted after")
        live.see(rf"^{GLYPH} draft X")
        live.key("enter")
        live.see("on we go")
        _, second = server.wait_for_requests(2)
        stopped, skipped = second.results
        assert "stopped" in str(stopped["content"])
        assert "the user interrupted the turn" in str(stopped["content"])
        assert skipped["content"] == "skipped: the user interrupted the turn"
        assert kinds_in(second)[:2] == ["tool_result", "tool_result"]
        assert words_in(second) == [typed("draft X")]


def test_results_of_finished_calls_survive_an_interrupt(tmp_path: Path) -> None:
    gate = FifoLatch(tmp_path)
    (tmp_path / "a.txt").write_text("the word is plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Calls("Read", {"file_path": "a.txt"}), Calls("Bash", {"command": gate.command})),
            Reply(Says("on we go")),
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("do both")
        gate.reached()
        live.key("esc")
        live.see("Interrupted after")
        live.enter("go on")
        live.see("on we go")
        _, second = server.wait_for_requests(2)
        assert "plum" in str(second.results[0]["content"])


def test_after_an_interrupt_what_waits_is_held_and_one_key_sends_it(tmp_path: Path) -> None:
    """MB-0112: nothing starts by itself; Enter on the empty line resumes, in order."""
    gate = FifoLatch(tmp_path)
    with (
        MessagesServer(Reply(Calls("Bash", {"command": gate.command}))) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("go")
        gate.reached()
        for line in ("alpha", "beta", "gamma"):
            live.enter(line)
        live.see("queue 3 NEXT")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see(r"^NEXT +alpha · held — Enter on an empty line sends it")
        live.see("queue 3 held")
        assert len(server.requests) == 1

        server.add(Reply(Says("all three at last")))
        live.key("enter")
        live.see("all three at last")
        _, second = server.wait_for_requests(2)
        assert words_in(second) == [typed("alpha"), typed("beta"), typed("gamma")]
        live.see_nothing_waiting()


def test_a_prompt_after_an_interrupt_does_not_take_the_held_lines_along(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(Reply(Says("on ", latch)), Reply(Says("only yours"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("on")
        live.enter("held back")
        live.see("queue 1 NEXT")
        live.key("ctrl-c")
        live.see("queue 1 held")
        live.enter("something else")
        live.see("only yours")
        _, second = server.wait_for_requests(2)
        assert words_in(second) == [typed("something else")]
        live.see("queue 1 held")


def test_unfinished_thinking_is_not_sent_back(tmp_path: Path) -> None:
    """MB-1006: the service would refuse thinking without a signature."""
    latch = Latch()
    with (
        MessagesServer(
            Reply(Thinks("let me see ", latch), Says("never")), Reply(Says("fine"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("think")
        live.see("let me see")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.enter("again")
        live.see("fine")
        _, second = server.wait_for_requests(2)
        assert [message["role"] for message in second.messages] == ["user"]
        assert times_said("let me see", second) == 0


def test_an_unfinished_call_is_dropped_and_a_complete_one_is_answered(tmp_path: Path) -> None:
    latch = Latch()
    (tmp_path / "a.txt").write_text("never read\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(
                Says("Two calls."),
                Calls("Read", {"file_path": "a.txt"}),
                Calls("Write", None, '{"file_path": "b.txt", ', latch, '"content": "x"}'),
            ),
            Reply(Says("fine")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        latch.reached.wait()
        live.see("writing a call of Write")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.enter("again")
        live.see("fine")
        _, second = server.wait_for_requests(2)
        assert [result["content"] for result in second.results] == [
            "skipped: the user interrupted the turn"
        ]
        assert times_said("b.txt", second) == 0
        assert not (tmp_path / "b.txt").exists()


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(NoAnswer(), "waiting for the model", id="no byte of an answer"),
        pytest.param(Reply(Says("half a block "), Silence()), "half a block", id="a silent stream"),
        pytest.param(
            Failure(529, "overloaded_error", "Overloaded", {"retry-after": "50"}),
            "trying again in",
            id="the wait for a retry",
        ),
    ],
)
def test_nothing_the_service_does_keeps_the_key_from_working(
    tmp_path: Path, answer: Answer, shown: str
) -> None:
    """MB-1001, MB-1009: also a queued line is still there."""
    with MessagesServer(answer) as server, live_midturn(server, tmp_path) as live:
        live.enter("hello?")
        server.wait_for_requests(1)
        live.see(shown)
        live.enter("a queued line")
        live.see("queue 1 NEXT")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see("queue 1 held")
        server.add(Reply(Says("back again")))
        live.key("enter")
        live.see("back again")
        assert words_in(server.requests[-1])[-1] == typed("a queued line")


def test_a_chain_of_calls_ends_at_the_first_interrupt(tmp_path: Path) -> None:
    """MB-0113."""
    gates = [FifoLatch(tmp_path, f"gate-{number}") for number in range(3)]
    with (
        MessagesServer(
            *(Reply(Calls("Bash", {"command": gate.command})) for gate in gates)
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("go on for ever")
        for gate in gates[:2]:
            gate.open()
        gates[2].reached()
        live.key("ctrl-c")
        gates[2].abandoned()
        live.see("Interrupted after")
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == 3
        server.add(Reply(Says("a fresh start")))
        live.enter("now something else")
        live.see("a fresh start")
        assert len(server.requests) == 4


def test_the_interrupted_prompt_is_one_key_away(tmp_path: Path) -> None:
    """MB-0109."""
    prompt = "word " * 39 + "the end"
    latch = Latch()
    with (
        MessagesServer(Reply(Says("on ", latch))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter(prompt)
        live.see("on")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.key("up")
        live.see_draft(prompt)
        server.add(Reply(Says("once more")))
        live.key("enter")
        live.see("once more")
        assert words_in(server.requests[-1])[-1] == typed(prompt)


def test_esc_closes_the_completion_menu_and_the_turn_goes_on(tmp_path: Path) -> None:
    """MB-0110."""
    gate = FifoLatch(tmp_path)
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": gate.command})), Reply(Says("went on"))
        ) as server,
        live_midturn(server, tmp_path, ALLOWED) as live,
    ):
        live.enter("go")
        gate.reached()
        live.send("/ex")
        live.see("leave Midturn")
        live.key("esc")
        live.see_not("leave Midturn")
        live.see(rf"{GLYPH} /ex")
        gate.open("the real output\n")
        live.see("went on")
        _, second = server.wait_for_requests(2)
        assert second.results[0]["content"] == "the real output"
        assert never_said("/ex", server.requests)


def test_an_interrupt_takes_an_open_question_back(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(
                Calls("Bash", {"command": "touch made"}),
                Calls("Write", {"file_path": "b.txt", "content": "x"}),
            ),
            Reply(Says("fine")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("y once")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see_not("y once")
        live.enter("again")
        live.see("fine")
        _, second = server.wait_for_requests(2)
        assert [result["content"] for result in second.results] == [
            "skipped: the user interrupted the turn"
        ] * 2
        assert list(tmp_path.iterdir()) == []


def test_the_key_of_an_ended_turn_does_nothing_to_the_next(tmp_path: Path) -> None:
    """D36: Ctrl-C twice during a turn cancels it once and leaves the program open."""
    latch = Latch()
    with (
        MessagesServer(Reply(Says("on ", latch)), Reply(Says("and on"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("on")
        live.key("ctrl-c")
        live.key("ctrl-c")
        shown = live.see("Interrupted after")
        assert shown.text.count("Interrupted after") == 1
        live.enter("again")
        live.see("and on")


def test_many_interrupts_in_a_row_leave_a_valid_history(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        for number in range(1, 6):
            server.add(Reply(Says(f"round {number} ", Latch())))
            live.enter(f"prompt {number}")
            live.see(rf"^round {number}$")
            live.key("ctrl-c")
            live.see_times("Interrupted after", number)
        server.add(Reply(Says("still here")))
        live.enter("and now?")
        live.see("still here")
        last = server.requests[-1]
        assert said_in(last)[-1] == typed("and now?")
        assert len(last.messages) == 11
