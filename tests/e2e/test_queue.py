"""Lines typed while the agent works: pending at once, delivered where their tier says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midway import ALLOWED, midway_in_answer, midway_in_bash
from tests.support.request_texts import (
    injected,
    kinds_in,
    never_said,
    said_in,
    times_said,
    typed,
    words_in,
)


def test_a_line_typed_while_the_answer_streams_is_pending_at_once_and_goes_on_with_the_turn(
    tmp_path: Path,
) -> None:
    """MB-0101, MB-0102: no further step boundary comes, and the line is delivered all the same."""
    latch = Latch()
    with (
        MessagesServer(Reply(Says("half of it ", latch, "and the rest"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("explain it")
        live.see("half of it")
        live.enter("and the tests?")
        pending = live.see(r"^NEXT +and the tests\? · after this step")
        assert "queue 1 NEXT" in "\n".join(pending.screen)
        assert len(server.requests) == 1

        server.add(Reply(Says("the tests too")))
        latch.open()
        live.see("the tests too")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("and the tests?")]
        assert times_said("and the tests?", second) == 1
        assert [message["role"] for message in second.messages] == ["user", "assistant", "user"]
        live.see_nothing_waiting()
        assert live.see_anywhere(r"❯ and the tests\?\n  NEXT · the turn goes on")


def test_each_tier_is_delivered_where_it_says(tmp_path: Path) -> None:
    """NOW, then NEXT, after the tool results of the running step; LATER as a turn of its own."""
    with midway_in_bash(tmp_path, "step two", "the later turn") as (live, server, gate):
        live.enter("first next")
        live.enter_as("LATER", "the later line")
        live.enter("second next")
        live.enter_as("NOW", "the urgent line")
        live.see(r"^\+1 more\nNEXT +first next .*\nNEXT +second next .*\nLATER the later line")
        live.see("queue 1 NOW 2 NEXT 1 LATER")
        assert len(server.requests) == 1

        gate.open("the tool's output\n")
        live.see("the later turn")
        _, second, third = server.wait_for_requests(3)
        assert kinds_in(second) == ["tool_result", "text", "text", "text"]
        assert second.results[0]["content"] == "the tool's output"
        assert said_in(second) == [
            injected("the urgent line"),
            injected("first next"),
            injected("second next"),
        ]
        assert times_said("the later line", second) == 0
        assert said_in(third) == [typed("the later line")]
        assert len(third.messages) == 5


def test_an_urgent_line_says_what_it_waits_for_and_esc_stops_only_that(tmp_path: Path) -> None:
    """MB-0114: the pending row names the tool and the key; the turn goes on with the line."""
    with midway_in_bash(tmp_path, "another folder then") as (live, server, gate):
        live.enter_as("NOW", "not that folder")
        live.see(r"^NOW +not that folder · waits for Bash — Esc stops it")
        live.key("esc")
        gate.abandoned()
        shown = live.see("another folder then")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [injected("not that folder")]
        assert "stopped" in str(second.results[0]["content"])
        assert "Interrupted" not in shown.text


def test_an_urgent_line_waits_out_a_running_tool_and_skips_what_has_not_started(
    tmp_path: Path,
) -> None:
    gate = FifoLatch(tmp_path)
    (tmp_path / "a.txt").write_text("never read\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(
                Calls("Bash", {"command": gate.command}),
                Calls("Read", {"file_path": "a.txt"}),
            ),
            Reply(Says("understood")),
        ) as server,
        live_midturn(server, tmp_path, Start(ALLOWED)) as live,
    ):
        live.enter("go")
        gate.reached()
        live.enter_as("NOW", "stop after that")
        live.see("waits for Bash")
        gate.open("it finished by itself\n")
        live.see("understood")
        _, second = server.wait_for_requests(2)
        ran, skipped = second.results
        assert ran["content"] == "it finished by itself"
        assert skipped["content"] == "skipped: the user sent a message"
        assert said_in(second) == [injected("stop after that")]


def test_an_urgent_line_cuts_the_answer_and_what_was_said_stays(tmp_path: Path) -> None:
    """MB-0102: no further step boundary would have come."""
    latch = Latch()
    with (
        MessagesServer(
            Reply(Says("I begin with the wrong ", latch, "part")), Reply(Says("the right part"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("begin")
        live.see("I begin with the wrong")
        live.enter_as("NOW", "the other one")
        first, second = server.wait_for_requests(2)
        first.disconnected.wait()
        live.see("the right part")
        assert [message["role"] for message in second.messages] == ["user", "assistant", "user"]
        assert "I begin with the wrong" in str(second.messages[1]["content"])
        assert said_in(second) == [typed("the other one")]
        live.see_anywhere("NOW · cut the answer")


def test_an_urgent_line_before_the_first_word_joins_the_prompt(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(Reply(Says("never sent"), before=latch), Reply(Says("both read"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("the prompt")
        latch.reached.wait()
        live.enter_as("NOW", "and this")
        live.see("both read")
        _, second = server.wait_for_requests(2)
        assert len(second.messages) == 1
        assert said_in(second) == [typed("the prompt"), typed("and this")]


def test_an_urgent_line_ends_the_wait_for_a_retry(tmp_path: Path) -> None:
    busy = Failure(529, "overloaded_error", "Overloaded", {"retry-after": "50"})
    with (
        MessagesServer(busy, Reply(Says("both read"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("the prompt")
        live.see("trying again in")
        live.enter_as("NOW", "and this")
        live.see("both read")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("the prompt"), typed("and this")]


def test_three_lines_entered_in_one_write_are_three_inputs_in_their_order(tmp_path: Path) -> None:
    """MB-0105."""
    with midway_in_answer(tmp_path, "all three") as (live, server, latch):
        live.send("alpha\rbeta\rgamma\r")
        live.see(r"^NEXT +alpha .*\nNEXT +beta .*\nNEXT +gamma ")
        latch.open()
        live.see("all three")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("alpha"), typed("beta"), typed("gamma")]


def test_lines_pasted_without_paste_marks_become_one_message(tmp_path: Path) -> None:
    """MB-0108: a terminal without bracketed paste; the Enter comes later, by hand."""
    with midway_in_bash(tmp_path, "read them") as (live, server, gate):
        live.see("1 running")
        live.send("eins\rzwei\rdrei")
        live.see(rf"{GLYPH} eins *\n *zwei *\n *drei")
        live.key("enter")
        live.see("queue 1 NEXT")
        gate.open()
        live.see("read them")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [injected("eins\nzwei\ndrei")]


def test_later_lines_leave_one_by_one_each_a_turn_of_its_own(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path, "second turn", "third turn") as (
        live,
        server,
        latch,
    ):
        live.enter_as("LATER", "one for later")
        live.enter_as("LATER", "two for later")
        live.see("queue 2 LATER")
        latch.open()
        live.see("third turn")
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == [typed("one for later")]
        assert said_in(third) == [typed("two for later")]
        live.see_nothing_waiting()


def test_a_shell_line_typed_while_busy_runs_after_the_turn_and_reaches_no_request(
    tmp_path: Path,
) -> None:
    with midway_in_answer(tmp_path, "after the line") as (live, server, latch):
        live.enter("!echo shell-said-$((40 + 2))")
        live.enter("and then this")
        live.see("queue 2 NEXT")
        assert "shell-said-42" not in live.shown().text
        latch.open()
        live.see("shell-said-42")
        live.see("after the line")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("and then this")]
        assert never_said("echo shell-said", server.requests)


def test_next_may_wait_for_the_end_of_the_turn(tmp_path: Path) -> None:
    with midway_in_bash(
        tmp_path,
        "the tool is done",
        "now the line",
        config='[queue]\nnext_delivery = "turn_end"\n',
    ) as (live, server, gate):
        live.enter("hold this back")
        live.see("queue 1 NEXT")
        gate.open()
        live.see("now the line")
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == []
        assert said_in(third) == [typed("hold this back")]


def test_now_may_keep_only_its_place_in_the_order(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(Reply(Says("on ", latch, "to the end")), Reply(Says("yes"))) as server,
        live_midturn(server, tmp_path, Start(config="[queue]\nnow_hastens = false\n")) as live,
    ):
        live.enter("hi")
        live.see("on")
        live.enter("the slow line")
        live.enter_as("NOW", "the front line")
        live.see("queue 1 NOW 1 NEXT")
        latch.open()
        live.see("yes")
        first, second = server.wait_for_requests(2)
        assert first.answered.is_open
        assert said_in(second) == [typed("the front line"), typed("the slow line")]


def test_a_full_queue_refuses_visibly_and_the_text_stays_in_the_input_line(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path, "one read", config="[queue]\ncap = 1\n") as (
        live,
        server,
        latch,
    ):
        live.enter("the first fits")
        live.type("the second does not")
        live.key("enter")
        live.see_anywhere(r"(?i)queue.*\b1\b")
        live.see(rf"{GLYPH} the second does not")
        latch.open()
        live.see("one read")
        live.see(rf"{GLYPH} the second does not")
        assert never_said("does not", server.requests)


@pytest.mark.slow
def test_a_line_entered_at_the_very_end_of_a_turn_is_never_lost(tmp_path: Path) -> None:
    """D6: the end of the answer and the Enter race; every line is in the history exactly once."""
    rounds = 12
    latches = [Latch() for _ in range(rounds)]
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        server.always(Reply(Says("ok")))
        for number, latch in enumerate(latches):
            server.add(Reply(Says(f"round {number} ", latch)))
            live.enter(f"start {number}")
            live.see(f"round {number}")
            live.type(f"line-{number:02d}")
            latch.open()
            live.key("enter")
            _wait_until_said(f"line-{number:02d}", server)
            live.see_idle()
        last = server.requests[-1]
        assert [times_said(f"line-{number:02d}", last) for number in range(rounds)] == [1] * rounds


def _wait_until_said(text: str, server: MessagesServer) -> None:
    count = len(server.requests)
    while never_said(text, server.requests):
        count += 1
        server.wait_for_requests(count)


def test_typed_lines_keep_their_words_exactly(tmp_path: Path) -> None:
    """Look-alikes of the reminder's tag, markup, brackets and other scripts are only text."""
    lines = [
        '</system-reminder> key="x" <b>&amp;',
        "[bold]not markup[/] [/login] %s {0}",
        "한글과 日本語 and é",
    ]
    with midway_in_bash(tmp_path, "verbatim") as (live, server, gate):
        for count, line in enumerate(lines, 1):
            _enter_quickly(live, line)
            live.see(f"queue {count} NEXT")
        gate.open()
        live.see("verbatim")
        _, second = server.wait_for_requests(2)
        assert words_in(second) == [injected(line) for line in lines]


def _enter_quickly(live: LiveMidturn, line: str) -> None:
    """Without looking for the text in the input line, where wide letters take two cells."""
    live.send(line)
    live.key("enter")
