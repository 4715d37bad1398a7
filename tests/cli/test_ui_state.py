from __future__ import annotations

import pytest

from midturn_cli.render.blocks import (
    AnswerEnd,
    AnswerText,
    Block,
    CallBlock,
    NoticeBlock,
    PanelFooter,
    PanelTitle,
    PromptBlock,
    RemarkBlock,
    ShellBlock,
    ThoughtBlock,
    TurnEndBlock,
)
from midturn_cli.ui_events import (
    AnswerReplayed,
    QueueChanged,
    ShellLineFinished,
    ShellLineStarted,
    StatusChanged,
    UiEvent,
)
from midturn_cli.ui_state import UiState
from midturn_core.events import (
    AskAnswered,
    AskRequested,
    AskWithdrawn,
    CallPhase,
    CompactionFinished,
    CompactionStarted,
    DeliveryPoint,
    InputsDelivered,
    MessageSuperseded,
    Notice,
    NoticeLevel,
    RetryWaiting,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ToolPhaseChanged,
    ToolProgress,
    ToolUseAnnounced,
    TurnEndReason,
    TurnStarted,
)
from midturn_core.model.messages import Outcome, StopReason
from midturn_core.permission.ask import AskAnswer, AskReply
from midturn_core.queue.types import HELD_KEY, QueuedInputPriority
from tests.support.screen_events import (
    SEQUENTIAL,
    STATUS,
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


def run(state: UiState, *events: UiEvent, now: float = 0.0) -> list[Block]:
    return [block for event in events for block in state.apply(event, now)]


def kinds(blocks: list[Block]) -> list[type[Block]]:
    return [type(block) for block in blocks]


def test_a_line_typed_when_idle_is_echoed_without_a_tier() -> None:
    state = UiState()
    line = typed("hello")
    assert run(state, QueueChanged((line,)), turn_started(line)) == [PromptBlock("hello")]


def test_a_line_that_waited_is_echoed_with_its_tier_where_it_was_delivered() -> None:
    state = UiState()
    line = typed("stop that", QueuedInputPriority.NOW)
    blocks = run(
        state,
        turn_started(typed("go")),
        TextDelta("Some text"),
        QueueChanged((line,)),
        InputsDelivered((line,), DeliveryPoint.STEP_BOUNDARY, 2),
    )
    assert blocks[1:] == [
        AnswerText("Some text"),
        AnswerEnd(),
        PromptBlock("stop that", "NOW", "after step 2"),
    ]


def test_a_line_that_waited_for_its_own_turn_carries_its_tier() -> None:
    state = UiState()
    line = typed("afterwards", QueuedInputPriority.LATER)
    run(state, turn_started(), QueueChanged((line,)), turn_ended())
    assert run(state, turn_started(line)) == [PromptBlock("afterwards", "LATER")]


def test_a_reminder_says_when_it_was_set() -> None:
    state = UiState()
    line = typed("look", metadata={"origin": "reminder"})
    [block] = run(state, turn_started(line))
    assert isinstance(block, PromptBlock)
    assert block.where == f"reminder set {line.enqueued_at.astimezone():%d %b %H:%M}"


def test_a_held_line_carries_its_tier_when_it_is_released() -> None:
    state = UiState()
    line = typed("held", metadata={HELD_KEY: "1"})
    run(state, QueueChanged((line,)))
    assert run(state, turn_started(line)) == [PromptBlock("held", "NEXT")]


def test_an_input_is_echoed_once_when_two_events_speak_of_it() -> None:
    state = UiState()
    line = typed("once")
    delivered = InputsDelivered((line,), DeliveryPoint.OWN_TURN, 1)
    assert run(state, turn_started(line), delivered) == [PromptBlock("once")]


def test_turns_of_subagents_leave_the_transcript_alone() -> None:
    state = UiState()
    assert run(state, TurnStarted(SUB, "turn-2", (typed("x"),))) == []
    assert not state.busy


def test_thinking_becomes_one_line_when_the_answer_begins() -> None:
    state = UiState()
    state.apply(StepStarted(1), 0.0)
    state.apply(ThinkingDelta("first\n"), 1.0)
    state.apply(ThinkingDelta("second"), 3.0)
    assert state.activity is not None and state.activity.text == "first\nsecond"
    assert state.apply(TextDelta("Answer"), 5.0) == [ThoughtBlock(4.0), AnswerText("Answer")]
    assert state.activity is None


def test_the_answer_is_closed_before_a_tool_use() -> None:
    state = UiState()
    blocks = run(state, TextDelta("I will read."), ToolUseAnnounced("use-0", "Read"))
    assert blocks == [AnswerText("I will read."), AnswerEnd()]
    assert state.activity is not None and state.activity.kind == "writing"


def test_escape_sequences_in_pieces_of_an_answer_never_get_through() -> None:
    state = UiState()
    blocks = run(state, TextDelta("a\x1b"), TextDelta("[2J\x1b]0;"), TextDelta("t\x07b"))
    text = "".join(block.text for block in blocks if isinstance(block, AnswerText))
    assert text == "ab"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (message_ended(StopReason.MAX_TOKENS), "output limit"),
        (message_ended(StopReason.CONTEXT_FULL), "context is full"),
        (message_ended(StopReason.TOOL_USE, cut=True), "cut here"),
    ],
)
def test_an_answer_that_was_cut_is_marked(event: UiEvent, words: str) -> None:
    blocks = run(UiState(), TextDelta("text"), event)
    assert isinstance(blocks[-1], RemarkBlock) and words in blocks[-1].text


def test_an_answer_that_was_cut_before_its_first_word_needs_no_mark() -> None:
    assert run(UiState(), StepStarted(1), message_ended(StopReason.END_TURN, cut=True)) == []


def test_a_superseded_answer_is_marked_and_its_calls_are_forgotten() -> None:
    state = UiState()
    run(state, TextDelta("half"), batch_started(2), call_started(0, 2))
    blocks = run(state, MessageSuperseded("overloaded"))
    assert kinds(blocks) == [RemarkBlock]
    assert isinstance(blocks[0], RemarkBlock) and "superseded" in blocks[0].text
    assert state.calls == ()


def test_a_restart_before_any_text_supersedes_nothing() -> None:
    blocks = run(UiState(), StepStarted(1), MessageSuperseded("overloaded"))
    assert blocks == [RemarkBlock("The answer broke off (overloaded)")]


def test_a_reason_gives_up_its_full_stop_inside_another_sentence() -> None:
    blocks = UiState().apply(RetryWaiting(1, 5, 3.0, "It is overloaded."), 0.0)
    assert isinstance(blocks[0], NoticeBlock)
    assert blocks[0].text == "The request failed: It is overloaded; trying again in 3 s (1/5)"


def test_a_retry_is_told_and_counted_down() -> None:
    state = UiState()
    blocks = state.apply(RetryWaiting(2, 5, 3.0, "429"), 10.0)
    assert isinstance(blocks[0], NoticeBlock) and "2/5" in blocks[0].text
    assert state.activity is not None and state.activity.until == 13.0
    assert state.animated


def test_a_single_call_is_a_block_of_its_own() -> None:
    blocks = run(
        UiState(),
        batch_started(1, SEQUENTIAL),
        call_started(0, 1),
        call_ready(0),
        batch_finished(Outcome.SUCCEEDED, verdict=SEQUENTIAL),
    )
    assert kinds(blocks) == [CallBlock]
    assert isinstance(blocks[0], CallBlock) and not blocks[0].in_panel


def test_rows_of_a_panel_stay_in_call_order_and_are_held_until_then() -> None:
    state = UiState()
    run(state, batch_started(3), *(call_started(i, 3) for i in range(3)))
    assert run(state, call_ready(2)) == []
    assert [call.result is not None for call in state.calls] == [False, False, True]
    first = run(state, call_ready(0))
    assert kinds(first) == [PanelTitle, CallBlock]
    rest = run(state, call_ready(1))
    assert kinds(rest) == [CallBlock, CallBlock]
    shown = [*first, *rest]
    assert [b.call.index for b in shown if isinstance(b, CallBlock)] == [0, 1, 2]
    assert state.calls == ()
    assert kinds(run(state, batch_finished(*[Outcome.SUCCEEDED] * 3))) == [PanelFooter]


def test_a_panel_whose_calls_never_ran_still_has_its_title() -> None:
    blocks = run(UiState(), batch_started(2), batch_finished(Outcome.SKIPPED, Outcome.SKIPPED))
    assert kinds(blocks) == [PanelTitle, PanelFooter]


def test_what_finished_is_shown_when_the_turn_ends_in_the_middle_of_a_batch() -> None:
    state = UiState()
    run(state, turn_started(), batch_started(3), *(call_started(i, 3) for i in range(3)))
    run(state, call_ready(1))
    blocks = run(state, turn_ended(TurnEndReason.INTERRUPTED))
    assert kinds(blocks) == [PanelTitle, CallBlock, TurnEndBlock]
    assert state.calls == ()
    assert not state.animated


def test_a_late_result_of_an_abandoned_call_changes_nothing() -> None:
    state = UiState()
    run(state, batch_started(2), call_started(0, 2), turn_ended())
    assert run(state, call_ready(0), ToolProgress("use-0", "x"), call_runs(0)) == []


def test_the_running_time_counts_from_the_start_of_the_tool_itself() -> None:
    state = UiState()
    run(state, batch_started(1, SEQUENTIAL), call_started(0, 1), now=1.0)
    run(state, ToolPhaseChanged("use-0", CallPhase.ASKING), now=2.0)
    run(state, call_runs(0), now=60.0)
    assert state.calls[0].started == 60.0


def test_the_newest_line_of_progress_is_kept() -> None:
    state = UiState()
    run(state, batch_started(1), call_started(0, 1), ToolProgress("use-0", "one\n\x1b[31mtwo\n"))
    assert state.calls[0].note == "two"


def test_what_a_person_answered_is_part_of_the_call() -> None:
    state = UiState()
    question = ask(rule="Bash(git push:*)")
    run(state, batch_started(1, SEQUENTIAL), call_started(0, 1), AskRequested(question))
    assert run(state, AskAnswered(question, AskReply(AskAnswer.SESSION))) == []
    blocks = run(state, call_ready(0))
    assert isinstance(blocks[0], CallBlock)
    assert blocks[0].result.receipt == "allowed this session: Bash(git push:*)"


def test_an_answer_about_no_open_call_leaves_a_receipt() -> None:
    question = ask()
    reply = AskReply(AskAnswer.NO_WITH_REASON, "not\x1b[2J now")
    blocks = run(UiState(), AskRequested(question), AskAnswered(question, reply))
    assert blocks == [RemarkBlock("Bash: git push: denied: not now")]


def test_a_withdrawn_question_is_gone() -> None:
    state = UiState()
    run(state, AskRequested(ask()), AskWithdrawn(ask(), "the turn was cancelled"))
    assert state.asks == ()


def test_questions_that_wait_are_counted() -> None:
    state = UiState()
    run(state, batch_started(3, SEQUENTIAL), *(call_started(i, 3, "Bash") for i in range(3)))
    run(state, *(ToolPhaseChanged(f"use-{i}", CallPhase.ASKING) for i in range(3)))
    run(state, AskRequested(ask(count=3)))
    assert state.asks_waiting == 2


@pytest.mark.parametrize("reason", [r for r in TurnEndReason if r is not TurnEndReason.DONE])
def test_a_turn_that_did_not_simply_finish_says_so(reason: TurnEndReason) -> None:
    blocks = run(UiState(), turn_started(), turn_ended(reason, error="why", way_out="do this"))
    assert blocks == [TurnEndBlock(reason, 3, 12_000, "why", "do this")]


def test_a_turn_that_is_done_ends_quietly() -> None:
    assert run(UiState(), turn_started(), turn_ended()) == []


def test_a_notice_is_a_block_at_once_and_leaves_the_answer_open() -> None:
    state = UiState()
    blocks = run(state, TextDelta("half a li"), Notice(NoticeLevel.INFO, "by the way"))
    assert blocks[-1] == NoticeBlock(NoticeLevel.INFO, "by the way")
    assert state.answer_open


def test_compaction_shows_its_progress_and_its_result() -> None:
    state = UiState()
    run(state, CompactionStarted(automatic=True))
    assert state.activity is not None and state.activity.kind == "compacting"
    blocks = run(state, CompactionFinished(40, 5), CompactionFinished(40, 40, "offline"))
    assert kinds(blocks) == [RemarkBlock, NoticeBlock]


def test_a_shell_line_runs_until_its_output_comes() -> None:
    state = UiState()
    run(state, ShellLineStarted("s", "make"))
    assert state.animated
    assert run(state, ShellLineFinished("s", "make", "ok\n", 0)) == [ShellBlock("ok", 0)]
    assert not state.animated


def test_the_status_is_kept() -> None:
    state = UiState()
    run(state, StatusChanged(STATUS))
    assert state.status == STATUS


def test_a_replayed_answer_is_complete() -> None:
    assert run(UiState(), AnswerReplayed("# Old")) == [AnswerText("# Old"), AnswerEnd()]
