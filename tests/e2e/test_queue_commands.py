"""Commands beside typed lines: they run here, at once or in their turn, and reach no request."""

from __future__ import annotations

from pathlib import Path

from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_script import Latch, Reply, Says, Thinks
from tests.support.messages_server import MessagesServer
from tests.support.midway import midway_in_answer, midway_in_bash
from tests.support.request_texts import (
    injected,
    never_said,
    said_in,
    times_said,
    typed,
    words_in,
)


def test_harmless_commands_run_at_once_while_a_tool_runs_and_what_waits_is_not_blocked(
    tmp_path: Path,
) -> None:
    """MB-0106, MB-0107, MB-1210."""
    with midway_in_bash(tmp_path, "hello to you") as (live, server, gate):
        live.enter("/help")
        live.see_anywhere(r"/parallel")
        live.enter("/status")
        live.enter("/cost")
        live.enter("/model")
        live.see_anywhere("longest answer")
        live.enter("hello")
        live.see("queue 1 NEXT")
        live.enter("/queue")
        live.see_anywhere(r"1 +NEXT +after this step +\S+ +hello")
        gate.open()
        live.see("hello to you")
        live.see_nothing_waiting()
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [injected("hello")]
        assert all(
            never_said(word, server.requests)
            for word in ("/help", "/status", "/cost", "/model", "/queue")
        )


def test_a_command_with_a_turn_of_its_own_is_a_barrier_between_the_lines_around_it(
    tmp_path: Path,
) -> None:
    """D3, D4, S2.16: prompts together, the command by itself, then the rest."""
    with midway_in_answer(tmp_path, "one and two", "three and four") as (live, server, latch):
        for line in ("one", "two", "/model other-model", "three", "four"):
            live.enter(line)
        live.see("queue 5 NEXT")
        latch.open()
        live.see("three and four")
        first, second, third = server.wait_for_requests(3)
        assert said_in(second) == [typed("one"), typed("two")]
        assert said_in(third) == [typed("three"), typed("four")]
        assert first.body["model"] == second.body["model"] != "other-model"
        assert third.body["model"] == "other-model"
        assert never_said("/model", server.requests)


def test_a_history_cleared_between_two_lines_starts_anew_with_the_second(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path, prompt="the old topic") as (live, server, latch):
        live.enter("/clear")
        live.see("queue 1 NEXT")
        server.add(Reply(Says("a new beginning")))
        latch.open()
        live.see_nothing_waiting()
        live.enter("the new topic")
        live.see("a new beginning")
        assert never_said("the old topic", server.requests[1:])


def test_a_line_typed_after_clear_waits_for_the_new_history_even_while_a_tool_runs(
    tmp_path: Path,
) -> None:
    with midway_in_bash(tmp_path, "the old is done", "a new beginning", prompt="the old topic") as (
        live,
        server,
        gate,
    ):
        live.enter("/clear")
        live.enter("the new topic")
        live.enter("/queue")
        live.see_anywhere(r"2 +NEXT +after the command before it +\S+ +the new topic")
        gate.open()
        live.see("a new beginning")
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == []
        assert said_in(third) == [typed("the new topic")]
        assert never_said("the old topic", [third])


def test_tiers_can_be_named_in_words(tmp_path: Path) -> None:
    with midway_in_bash(tmp_path, "two heard", "and the third") as (live, server, gate):
        live.enter("/later a late one")
        live.enter("/next a next one")
        live.enter("/now a first one")
        live.see(r"^NOW +a first one .*\nNEXT +a next one .*\nLATER a late one ")
        gate.open()
        live.see("and the third")
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == [injected("a first one"), injected("a next one")]
        assert said_in(third) == [typed("a late one")]
        assert all(never_said(word, server.requests) for word in ("/now", "/next", "/later"))


def test_a_removed_line_reaches_no_request(tmp_path: Path) -> None:
    """MB-0104: the numbers are those of the list on screen."""
    with midway_in_bash(tmp_path, "just the one") as (live, server, gate):
        live.enter("keep this line")
        live.enter("drop this line")
        live.see("queue 2 NEXT")
        live.enter("/queue")
        live.see_anywhere(r"2 +NEXT +after this step +\S+ +drop this line")
        live.enter("/queue rm 2")
        live.see_anywhere("Removed, never sent: drop this line")
        live.see("queue 1 NEXT")
        gate.open()
        live.see("just the one")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [injected("keep this line")]
        assert never_said("drop this line", server.requests)


def test_held_lines_can_be_released_by_command(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("busy ", Latch())), Reply(Says("both sent"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("busy")
        live.enter("one")
        live.enter("two")
        live.see("queue 2 NEXT")
        live.key("ctrl-c")
        live.see("queue 2 held")
        live.enter("/queue release")
        live.see("both sent")
        _, second = server.wait_for_requests(2)
        assert words_in(second) == [typed("one"), typed("two")]


def test_later_lines_may_leave_by_hand_alone(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(Reply(Says("busy ", latch)), Reply(Says("here it is"))) as server,
        live_midturn(server, tmp_path, Start(config='[queue]\nlater = "manual"\n')) as live,
    ):
        live.enter("go")
        live.see("busy")
        live.enter_as("LATER", "whenever")
        live.see("queue 1 LATER")
        latch.open()
        live.see("busy$")
        live.see_not("NEXT after this step")
        assert len(server.requests) == 1
        live.enter("/later run")
        live.see("here it is")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("whenever")]


def test_what_an_unknown_command_says_stays_in_the_input_line(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path) as (live, server, latch):
        live.type("/hlep me")
        live.key("enter")
        live.see_anywhere("(?i)unknown command.*/hlep|/hlep.*/help")
        live.see_draft("/hlep me")
        live.send("\x15")
        live.enter("/etc/hosts is odd")
        live.see("queue 1 NEXT")
        server.add(Reply(Says("it is")))
        latch.open()
        live.see("it is$")
        assert said_in(server.requests[-1]) == [typed("/etc/hosts is odd")]


def test_another_model_gets_no_thinking_of_the_one_before(tmp_path: Path) -> None:
    """MB-1007: the service refuses signatures of another model."""
    with (
        MessagesServer(
            Reply(Thinks("deep thoughts"), Says("thought about it")), Reply(Says("the other one"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("think")
        live.see("thought about it")
        live.enter("/model other-model")
        live.see_anywhere("From now on other-model answers")
        live.enter("go on")
        live.see("the other one")
        _, second = server.wait_for_requests(2)
        assert second.body["model"] == "other-model"
        assert times_said("deep thoughts", second) == 0
        assert times_said("thought about it", second) == 1
