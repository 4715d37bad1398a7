from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from midturn_cli.render.plain import PlainPresenter
from midturn_cli.ui_events import CommandOutput, CommandTable, QueueChanged, UiEvent
from midturn_core.events import (
    AskRequested,
    DeliveryPoint,
    InputsDelivered,
    Notice,
    NoticeLevel,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    TurnEndReason,
)
from midturn_core.model.messages import DiffDetail, Outcome, OutputDetail
from midturn_core.queue.types import QueuedInputPriority
from tests.support.screen_events import (
    PARALLEL,
    SEQUENTIAL,
    SUB,
    ask,
    batch_finished,
    batch_started,
    call_ready,
    call_runs,
    call_started,
    message_ended,
    turn_ended,
    turn_started,
    typed,
)


class FakeClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def plain(*events: UiEvent) -> str:
    subject = PlainPresenter()
    return "".join(subject.apply(event) for event in events)


def test_an_answer_streams_through_as_it_comes() -> None:
    subject = PlainPresenter()
    assert subject.apply(turn_started(typed("hello"))) == ""
    assert subject.apply(TextDelta("**Hel")) == "**Hel"
    assert subject.apply(TextDelta("lo**\tyou")) == "lo**\tyou"
    assert subject.apply(message_ended()) == "\n"


def test_an_answer_that_ends_with_a_line_end_gets_no_second_one() -> None:
    assert plain(TextDelta("text\n"), message_ended()) == "text\n"


def test_a_notice_waits_for_the_end_of_the_answer_line() -> None:
    subject = PlainPresenter()
    subject.apply(TextDelta("half a "))
    assert subject.apply(Notice(NoticeLevel.WARNING, "careful")) == ""
    assert subject.apply(TextDelta("line\nnext")) == "line\nwarning: careful\nnext"


def test_a_notice_that_waited_comes_with_the_end_of_the_answer() -> None:
    text = plain(TextDelta("all"), Notice(NoticeLevel.ERROR, "broken"), message_ended())
    assert text == "all\nerror: broken\n"


def test_the_end_of_each_turn_is_one_line_for_whoever_reads_line_by_line() -> None:
    subject = PlainPresenter(tells_end=True)
    said = [subject.apply(event) for event in (turn_started(), TextDelta("all"), turn_ended())]
    assert said == ["", "all", "\nDone after 12.0s, 3 steps\n"]
    assert subject.apply(turn_ended(TurnEndReason.INTERRUPTED)) == (
        "Interrupted after 12.0s, 3 steps\n"
    )


def test_a_pipe_is_not_told_that_a_turn_is_done() -> None:
    assert plain(turn_started(), TextDelta("all"), message_ended(), turn_ended()) == "all\n"


def test_thinking_is_silent() -> None:
    assert plain(ThinkingDelta("hm"), TextDelta("a\n"), message_ended()) == "a\n"


def test_calls_are_lines() -> None:
    text = plain(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Edit"),
        call_ready(
            0, Outcome.FAILED, content="Error: no", detail=DiffDetail("a", "-a\n+b\n", 1, 1)
        ),
    )
    assert text == "[Edit: src/0.py] ✗ failed (45ms)\n    Error: no\n    -a\n    +b\n"


def test_a_skipped_call_says_so_once_and_has_no_duration() -> None:
    skipped = call_ready(0, Outcome.SKIPPED, content="skipped: you interrupted", ran=False)
    text = plain(batch_started(1, SEQUENTIAL), call_started(0, 1), skipped)
    assert text == "[Read: src/0.py] –\n    skipped: you interrupted\n"


def test_a_batch_has_its_totals() -> None:
    text = plain(
        batch_started(2, PARALLEL),
        call_started(0, 2),
        call_started(1, 2),
        call_ready(1, summary="3 lines"),
        call_ready(0),
        batch_finished(Outcome.SUCCEEDED, Outcome.SUCCEEDED),
    )
    assert text == (
        "Parallel Tool Execution (2 calls)\n"
        "[1/2] Read: src/0.py ✓ (45ms)\n"
        "[2/2] Read: src/1.py ✓ (46ms) · 3 lines\n"
        "Total: 2/2 succeeded in 156ms (parallel)\n"
        "Sequential would have taken: 311ms (saved 155ms)\n"
    )


def test_a_question_is_readable_even_in_the_middle_of_a_line() -> None:
    text = plain(TextDelta("half"), AskRequested(ask("rm x", index=1, count=2, rule="Bash(rm x)")))
    assert text == (
        "half\n? Bash: rm x (2 of 2)\n| rm x\nwhy: no rule allows it\n"
        "t, s allow Bash(rm x)\n"
        "y once, t this turn, s this session, n no, r no with a reason\n"
    )


def test_always_is_offered_where_the_rule_may_be_stored() -> None:
    text = plain(AskRequested(replace(ask("ls", rule="Bash(ls:*)"), may_store=True)))
    assert text.endswith(
        "t, s, a allow Bash(ls:*)\n"
        "y once, t this turn, s this session, a always, n no, r no with a reason\n"
    )


def test_a_line_that_waits_is_told_once_and_shown_where_it_is_delivered() -> None:
    line = typed("faster", QueuedInputPriority.NOW)
    text = plain(
        turn_started(),
        QueueChanged((line,)),
        QueueChanged((line,)),
        QueueChanged(()),
        InputsDelivered((line,), DeliveryPoint.STEP_BOUNDARY, 1),
    )
    assert text == "queued NOW (at once): faster\n> faster (NOW · after step 1)\n"


def test_a_failed_turn_says_why() -> None:
    text = plain(
        turn_started(), turn_ended(TurnEndReason.FAILED, error="offline", way_out="/retry")
    )
    assert text == "Failed after 12.0s, 3 steps: offline → /retry\n"


def test_commands_write_plain_lines() -> None:
    assert plain(CommandOutput("one\ntwo", markdown=True)) == "one\ntwo\n"
    assert plain(CommandTable("T", ("k", "v"), (("long", "1"),))) == "T\nk     v\nlong  1\n"


def loaded_after_importing(module: str) -> set[str]:
    program = f"import sys, {module}; sys.stdout.write(' '.join(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["midturn_cli.ui_state", "midturn_cli.render.plain"])
def test_plain_mode_and_the_reducer_need_no_rich(module: str) -> None:
    assert not loaded_after_importing(module) & {"rich", "markdown_it"}


def test_the_screen_needs_no_rich_markdown_before_the_first_answer() -> None:
    loaded = loaded_after_importing("midturn_cli.render.presenter")
    assert not loaded & {"rich.markdown", "markdown_it"}


def test_a_subagent_is_told_at_its_start_its_end_and_now_and_then_between() -> None:
    clock = FakeClock()
    presenter = PlainPresenter(clock=clock)
    text = [
        presenter.apply(event)
        for event in (
            batch_started(1, SEQUENTIAL),
            call_started(0, 1, "Task", "explore: look"),
            call_runs(0),
        )
    ]
    for number in range(25):
        clock.now += 1
        inner = call_started(0, 1, "Read", f"{number}.txt")
        text.append(presenter.apply(SubagentEvent(SUB, "use-0", inner)))
    text.append(presenter.apply(call_ready(0, summary="2 steps")))
    assert "".join(text).split("\n") == [
        "[Task: explore: look] runs",
        "[Task: explore: look] at Read: 9.txt",
        "[Task: explore: look] at Read: 19.txt",
        "[Task: explore: look] ✓ (45ms) · 2 steps",
        "",
    ]


def test_a_tool_that_a_subagent_makes_up_does_not_act_on_the_terminal() -> None:
    clock = FakeClock()
    presenter = PlainPresenter(clock=clock)
    for event in (
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Task", "explore"),
        call_runs(0),
    ):
        presenter.apply(event)
    clock.now += 60
    inner = call_started(0, 1, "Read\x1b[2J\nforged: line", "a.txt")
    text = presenter.apply(SubagentEvent(SUB, "use-0", inner))
    assert text == "[Task: explore] at Read ⏎ forged: line: a.txt\n"


def test_the_output_of_a_failed_command_stands_below_its_error_without_a_mark() -> None:
    detail = OutputDetail(("not found",), 1)
    failed = call_ready(0, Outcome.FAILED, content="Exit code 3.\nnot found", detail=detail)
    text = plain(batch_started(1, SEQUENTIAL), call_started(0, 1), failed)
    assert text.endswith("    Exit code 3.\n    not found\n")
