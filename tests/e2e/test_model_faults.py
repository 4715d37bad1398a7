"""Whatever the service does: bounded, said on screen, the prompt is back, the history is valid."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_connection import ScriptItem, ServerOptions
from tests.support.messages_script import (
    Calls,
    Close,
    Cut,
    Failure,
    HangUp,
    Latch,
    NoAnswer,
    Page,
    Pause,
    RawBytes,
    Reply,
    Says,
    Silence,
    Step,
    error_event,
    ping,
)
from tests.support.messages_server import KEY, MessagesServer
from tests.support.midturn_process import ROOT
from tests.support.request_texts import notes_in, said_in, times_said, typed, words_in

QUICK = Start(
    command=(sys.executable, str(ROOT / "tests" / "support" / "quick_midturn.py")),
    environ={"PYTHONPATH": ":".join(str(ROOT / name) for name in ("cli", "core", "tools"))},
)
SOON = {"retry-after-ms": "20"}
OVERLOADED = Failure(529, "overloaded_error", "Overloaded")

BROKEN_JSON = RawBytes(b'event: content_block_delta\ndata: {"type": "content_block_del\n\n')
BREAKS: dict[str, Step] = {
    "the connection breaks": Cut(),
    "no message_stop": Close(),
    "an error event": error_event("overloaded_error", "Overloaded"),
    "broken JSON": BROKEN_JSON,
    "silence": Silence(),
}
"""How a stream can end too early."""


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Failure(429, "rate_limit_error", "slow down", SOON), id="429"),
        pytest.param(Failure(529, "overloaded_error", "Overloaded", SOON), id="529"),
        pytest.param(Failure(500, "api_error", "Internal server error", SOON), id="500"),
    ],
)
def test_a_busy_service_is_asked_again_and_the_screen_says_so(
    tmp_path: Path, failure: Failure
) -> None:
    """MB-1010."""
    with (
        MessagesServer(failure, failure, Reply(Says("there it is"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("hello")
        shown = live.see("there it is")
        assert "(1/5)" in shown.text and "(2/5)" in shown.text
        first, second, third = server.wait_for_requests(3)
        assert first.messages == second.messages == third.messages


def test_a_service_that_stays_busy_ends_the_turn_and_nothing_has_to_be_typed_again(
    tmp_path: Path,
) -> None:
    """MB-1009: as many requests as documented; what waits is held."""
    with MessagesServer() as server, live_midturn(server, tmp_path, QUICK) as live:
        server.always(OVERLOADED)
        live.enter("hello")
        shown = live.see("Failed after")
        assert "The service is overloaded" in shown.text
        assert "/retry" in shown.text
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == 6

        server.always(Reply(Says("at last")))
        live.enter("/retry")
        live.see("at last")
        again = server.requests[-1]
        assert said_in(again) == [typed("hello")]
        assert len(again.messages) == 1


def test_a_retry_in_the_middle_of_a_turn_runs_no_tool_twice(tmp_path: Path) -> None:
    """D46: the failed step is sent again, with the results of the steps before it."""
    counter = tmp_path / "runs.txt"
    start = Start(["--permission-mode", "yolo"])
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "echo run >> runs.txt"})),
            Failure(400, "invalid_request_error", "not now"),
            Reply(Says("finished")),
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("run it")
        live.see("Failed after")
        live.enter("/retry")
        live.see("finished")
        _, second, third = server.wait_for_requests(3)
        assert second.messages == third.messages
        assert counter.read_text(encoding="utf-8") == "run\n"


def test_lines_typed_before_a_failure_are_held(tmp_path: Path) -> None:
    latch = Latch()
    with (
        MessagesServer(
            Reply(Says("never"), before=latch),
            Failure(401, "authentication_error", "invalid x-api-key"),
            Reply(Says("both read")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("hello")
        latch.reached.wait()
        live.enter_as("LATER", "for later")
        live.see("queue 1 LATER")
        live.enter_as("NOW", "at once")
        live.see("Failed after")
        live.see("queue 1 held")
        assert len(server.requests) == 2
        live.key("enter")
        live.see("both read")
        assert [said.text for said in said_in(server.requests[-1])] == [
            "hello",
            "at once",
            "for later",
        ]


def test_a_wait_of_an_hour_is_told_and_not_waited_for(tmp_path: Path) -> None:
    """MB-1010."""
    failure = Failure(429, "rate_limit_error", "slow down", {"retry-after": "3600"})
    with MessagesServer(failure) as server, live_midturn(server, tmp_path) as live:
        live.enter("hello")
        shown = live.see("Failed after")
        assert "wait 1 h" in shown.text
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == 1


def test_what_stays_wrong_is_tried_once_and_the_way_out_is_said(tmp_path: Path) -> None:
    """MB-1008: and the key is never printed."""
    wrong: list[tuple[ScriptItem, str]] = [
        (Failure(401, "authentication_error", "invalid x-api-key"), "ANTHROPIC_API_KEY"),
        (Failure(403, "permission_error", f"not with {KEY}"), "does not allow this"),
        (Failure(400, "invalid_request_error", "thinking: nonsense"), "thinking: nonsense"),
        (Failure(404, "not_found_error", "model: gone"), "/model"),
        (Page("<html><title>Login of the hotel</title></html>"), "ANTHROPIC_BASE_URL"),
    ]
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        for number, (failure, words) in enumerate(wrong, 1):
            server.add(failure)
            live.enter(f"hello {number}")
            shown = live.see_times("Failed after", number)
            said = shown.text.rpartition(f"hello {number}")[2]
            assert words in " ".join(said.split())
            live.see(rf"^{GLYPH} *$")
            assert len(server.requests) == number
        assert KEY.encode() not in live.log.data


def test_a_wrong_key_is_told_by_the_service_itself(tmp_path: Path) -> None:
    """MB-1008."""
    options = ServerOptions(key="the-right-key")
    start = Start(environ={"ANTHROPIC_API_KEY": "the-wrong-key"})
    with MessagesServer(options=options) as server, live_midturn(server, tmp_path, start) as live:
        live.enter("hello")
        live.see("refused the key")
        assert len(server.requests) == 1
        assert b"the-wrong-key" not in live.log.data


@pytest.mark.parametrize("fault", BREAKS.values(), ids=BREAKS.keys())
def test_an_answer_that_breaks_off_starts_over_and_the_first_try_does_not_count(
    tmp_path: Path, fault: Step
) -> None:
    """MB-1001, MB-1003: what was shown is marked, the history has the second answer alone."""
    with (
        MessagesServer(Reply(Says("half of an "), fault), Reply(Says("a whole answer"))) as server,
        live_midturn(server, tmp_path, QUICK) as live,
    ):
        live.enter("hello")
        shown = live.see("a whole answer")
        assert "superseded" in shown.text
        server.add(Reply(Says("the next turn")))
        live.enter("go on")
        live.see("the next turn")
        first, second, third = server.wait_for_requests(3)
        assert first.messages == second.messages
        assert times_said("half of an", third) == 0
        assert times_said("a whole answer", third) == 1


def test_an_interrupt_before_the_next_try_leaves_nothing_of_the_broken_one(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        server.always(Reply(Says("half of an "), Cut()))
        live.enter("hello")
        live.see("trying again in")
        live.key("ctrl-c")
        live.see("Interrupted after")
        server.always(Reply(Says("all of it")))
        live.enter("once more")
        live.see("all of it")
        assert times_said("half of an", server.requests[-1]) == 0


@pytest.mark.slow
def test_a_slow_but_healthy_stream_is_never_cut(tmp_path: Path) -> None:
    """MB-1002: it lasts several times as long as a service may be silent."""
    beats = [step for _ in range(8) for step in (Pause(0.2), ping())]
    words = [step for number in range(8) for step in (Pause(0.2), f"word-{number} ")]
    with (
        MessagesServer(Reply(*beats, Says(*words))) as server,
        live_midturn(server, tmp_path, QUICK) as live,
    ):
        live.enter("slowly please")
        shown = live.see("word-7")
        assert "superseded" not in shown.text
        assert len(server.requests) == 1


@pytest.mark.slow
def test_no_tool_runs_from_half_a_call(tmp_path: Path) -> None:
    """MB-1003: not even a complete call before it, whose message never came to its end."""
    start = Start(["--permission-mode", "yolo"], environ=QUICK.environ, command=QUICK.command)
    with MessagesServer() as server, live_midturn(server, tmp_path, start) as live:
        for number, fault in enumerate(BREAKS.values(), 1):
            server.add(
                Reply(
                    Calls("Write", {"file_path": "made.txt", "content": "x"}),
                    Calls("Bash", None, '{"command": "touch ', fault),
                ),
                Reply(Says(f"never mind {number}")),
            )
            live.enter(f"make it {number}")
            live.see(f"never mind {number}")
            broken, whole = server.wait_for_requests(2 * number)[-2:]
            assert broken.messages == whole.messages
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_answer_that_always_breaks_off_ends_the_turn(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path, QUICK) as live:
        for number, fault in enumerate(BREAKS.values(), 1):
            server.always(Reply(Says("half of an "), fault))
            live.enter(f"hello {number}")
            shown = live.see_times("Failed after", number)
            assert "/retry" in shown.text.rpartition("Failed after")[2]
            live.see(rf"^{GLYPH} *$")
            assert len(server.requests) == 3 * number
        server.always(Reply(Says("all of it")))
        live.enter("once more")
        live.see("all of it")
        assert [said.text for said in said_in(server.requests[-1])] == [
            *(f"hello {number}" for number in range(1, 6)),
            "once more",
        ]


@pytest.mark.parametrize(
    "answer", [pytest.param(NoAnswer(), id="silent"), pytest.param(HangUp(), id="hangs up")]
)
def test_a_service_that_says_nothing_is_given_up(tmp_path: Path, answer: ScriptItem) -> None:
    """MB-1009."""
    with MessagesServer() as server, live_midturn(server, tmp_path, QUICK) as live:
        server.always(answer)
        live.enter("hello")
        live.see("Failed after")
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == (2 if isinstance(answer, NoAnswer) else 6)


def test_an_address_where_nobody_listens_is_named(tmp_path: Path) -> None:
    with MessagesServer() as server:
        closed_url = server.url
    environ = {**QUICK.environ, "ANTHROPIC_BASE_URL": closed_url}
    start = Start(environ=environ, command=QUICK.command)
    with live_midturn(server, tmp_path, start) as live:
        live.enter("hello")
        shown = live.see("Failed after")
        assert f"No connection to {closed_url}" in " ".join(shown.text.split())
        live.see(rf"^{GLYPH} *$")


@pytest.mark.parametrize("unfinished", [True, False], ids=["open block", "closed block"])
def test_a_call_cut_at_the_output_limit_is_not_run_and_the_model_is_told(
    tmp_path: Path, unfinished: bool
) -> None:
    """MB-1004: half JSON; the text before it stays."""
    start = Start(["--permission-mode", "yolo"])
    with (
        MessagesServer(
            Reply(
                Says("I write it."),
                Calls("Write", None, '{"file_path": "x.txt"', unfinished=unfinished),
                stop_reason="max_tokens",
            ),
            Reply(Says("in smaller pieces then")),
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("write")
        shown = live.see("in smaller pieces then")
        assert "output limit" in shown.text
        _, second = server.wait_for_requests(2)
        assert "cut at the output limit" in notes_in(second)[0]
        assert times_said("x.txt", second) == 0
        assert second.results == []
        assert list(tmp_path.iterdir()) == []


def test_a_call_that_lacks_a_part_after_the_cut_is_not_run(tmp_path: Path) -> None:
    """MB-1004: the JSON is whole, what it needs is not there."""
    start = Start(["--permission-mode", "yolo"])
    with (
        MessagesServer(
            Reply(Calls("Write", {"file_path": "x.txt"}), stop_reason="max_tokens"),
            Reply(Says("I see")),
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("write")
        live.see("I see")
        _, second = server.wait_for_requests(2)
        assert second.results[0]["is_error"] is True
        assert "content" in str(second.results[0]["content"])
        assert "cut at the output limit" in notes_in(second)[0]
        assert list(tmp_path.iterdir()) == []


def test_an_answer_at_the_output_limit_goes_on_at_most_three_times(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        server.always(Reply(Says("and on "), stop_reason="max_tokens"))
        live.enter("talk")
        live.see_times("↑ cut: the answer reached the output limit", 4)
        live.see_idle()
        server.always(Reply(Says("all right")))
        live.enter("enough")
        live.see("all right")
        assert len(server.requests) == 5
        assert words_in(server.requests[-1]) == [typed("enough")]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(), id="no block"),
        pytest.param(Reply(Says("")), id="an empty text"),
        pytest.param(Reply(Says("  \n ")), id="spaces alone"),
    ],
)
def test_an_empty_answer_is_shown_as_such_and_the_session_goes_on(
    tmp_path: Path, reply: Reply
) -> None:
    """MB-1005."""
    with MessagesServer(reply) as server, live_midturn(server, tmp_path) as live:
        live.enter("hello")
        live.see("answer was empty")
        server.add(Reply(Says("hello again")))
        live.enter("are you there?")
        live.see("hello again")
        assert said_in(server.requests[-1]) == [typed("hello"), typed("are you there?")]


def test_an_empty_text_before_a_call_is_not_sent_back(tmp_path: Path) -> None:
    """MB-1005."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Says(""), Calls("Read", {"file_path": "a.txt"})), Reply(Says("a plum"))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("read")
        live.see("a plum")


def test_a_termination_while_the_service_is_silent_leaves_at_once(tmp_path: Path) -> None:
    """MB-1011: the terminal is as before, the session can be resumed."""
    with MessagesServer(NoAnswer()) as server, live_midturn(server, tmp_path) as live:
        live.enter("remember this prompt")
        server.wait_for_requests(1)
        live.signal(signal.SIGTERM)
        assert live.wait_exit(30) == 143
        assert _leaves_the_terminal_as_it_was(live)
        server.add(Reply(Says("I do")))
        with live_midturn(server, tmp_path, Start(["--continue"])) as again:
            again.see_anywhere("remember this prompt")
            again.enter("do you remember?")
            again.see("I do")
        assert times_said("remember this prompt", server.requests[-1]) == 1


def _leaves_the_terminal_as_it_was(live: LiveMidturn) -> bool:
    output = bytes(live.log.data)
    return output.rfind(b"\x1b[?25h") > output.rfind(b"\x1b[?25l") and (
        output.rfind(b"\x1b[?2004l") > output.rfind(b"\x1b[?2004h")
    )
