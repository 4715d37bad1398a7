"""What the screen makes of the events of a subagent: nothing of it looks like the main agent's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midturn_cli.render.blocks import NoticeBlock
from midturn_cli.render.event_blocks import expanded_block
from midturn_cli.render.presenter import ScreenPresenter
from midturn_cli.stream_json import event_to_json
from midturn_cli.ui_events import ResultExpanded
from midturn_cli.ui_state import UiState
from midturn_core.events import (
    AskRequested,
    CallPhase,
    Event,
    MessageEnded,
    Notice,
    NoticeLevel,
    StepStarted,
    SubagentEvent,
    TextDelta,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStarted,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
    UsageChanged,
)
from midturn_core.model.messages import (
    Outcome,
    StopReason,
    ToolUse,
    ToolUseResult,
    TranscriptDetail,
    Usage,
)
from tests.support.screen_events import SUB, ask, batch_started, call_ready, call_started

USAGE = Usage(1, 1)


def wrapped(event: Event) -> SubagentEvent:
    return SubagentEvent(SUB, "task-1", event)


@pytest.mark.parametrize(
    "event",
    [
        TurnStarted(SUB, "turn-2", ()),
        StepStarted(1),
        TextDelta("I look around"),
        MessageEnded(StopReason.MAX_TOKENS, USAGE),
        batch_started(2),
        call_started(0, 2),
        call_ready(0),
        UsageChanged(USAGE, USAGE, 2),
        TurnEnded(SUB, "turn-2", TurnEndReason.FAILED, 1, USAGE, 1.0, "No connection."),
    ],
    ids=lambda event: type(event).__name__,
)
def test_its_turn_leaves_no_trace_in_the_transcript_or_the_live_region(event: Event) -> None:
    state = UiState()
    assert state.apply(wrapped(event), 0.0) == []
    assert (state.calls, state.activity, state.busy, state.answer_open) == ((), None, False, False)


def test_what_it_must_tell_is_shown_with_its_name() -> None:
    state = UiState()
    notice = Notice(NoticeLevel.WARNING, "The model's answer was empty.\x1b[2J")
    [block] = state.apply(wrapped(notice), 0.0)
    assert isinstance(block, NoticeBlock)
    assert block.text.startswith(f"{SUB.agent}: The model's answer was empty.")
    assert "\x1b" not in block.text


def test_its_calls_that_wait_for_a_person_are_counted_behind_the_question_on_screen() -> None:
    state = UiState()
    first = replace(ask("git push"), context_id=SUB, tool_use_id="sub-1-first")
    for index, tool_use_id in enumerate((first.tool_use_id, "sub-1-other")):
        state.apply(wrapped(started(tool_use_id, index)), 0.0)
        state.apply(wrapped(ToolPhaseChanged(tool_use_id, CallPhase.ASKING)), 0.0)
    state.apply(AskRequested(first), 0.0)
    assert state.asks_waiting == 1
    result = ToolUseResult("sub-1-other", "Bash", Outcome.SKIPPED, "skipped")
    state.apply(wrapped(ToolResultReady("batch-2", 1, result)), 0.0)
    assert state.asks_waiting == 0


def started(tool_use_id: str, index: int = 0, name: str = "Read") -> ToolUseStarted:
    return ToolUseStarted("batch-2", index, 3, ToolUse(tool_use_id, name, {}), f"{tool_use_id}.txt")


def test_calls_of_it_that_run_at_the_same_time_are_nested_under_its_row() -> None:
    presenter = ScreenPresenter(color_system=None, clock=lambda: 0.0)

    def live() -> list[str]:
        return presenter.live(80, 20, 0.0).tools.splitlines()

    begin: list[Event] = [
        batch_started(1),
        ToolUseStarted("batch-1", 0, 1, ToolUse("task-1", "Task", {}), "explore: look"),
        ToolPhaseChanged("task-1", CallPhase.RUNNING),
        *(wrapped(started(name, index)) for index, name in enumerate("abc")),
        wrapped(ToolPhaseChanged("a", CallPhase.RUNNING)),
    ]
    for event in begin:
        presenter.apply(event)
    assert len(live()) == 1
    presenter.apply(wrapped(ToolPhaseChanged("c", CallPhase.RUNNING)))
    assert [row.strip() for row in live()] == [
        "⠋ [Task: explore: look] 0.0s",
        "└ ⠋ [Read: a.txt] 0.0s",
        "└ ⠋ [Read: c.txt] 0.0s",
    ]
    result = ToolUseResult("a", "Read", Outcome.SUCCEEDED, "plum")
    presenter.apply(wrapped(ToolResultReady("batch-2", 0, result)))
    assert len(live()) == 1


@pytest.mark.parametrize(
    ("outcome", "content", "shown"),
    [
        (Outcome.SUCCEEDED, "It is a.txt.", "[Read: a.txt]\nIt is a.txt."),
        (Outcome.FAILED, "Error: it failed", "[Read: a.txt]\nIt is a.txt.\n\nError: it failed"),
    ],
)
def test_expanding_its_call_shows_what_it_said_and_did(
    outcome: Outcome, content: str, shown: str
) -> None:
    detail = TranscriptDetail(("[Read: a.txt]", "It is a.txt."))
    result = ToolUseResult("task-1", "Task", outcome, content, detail=detail)
    assert expanded_block(ResultExpanded("explore: look", result, 1)).text == shown


def test_in_json_its_events_stand_inside_an_object_that_says_whose_they_are() -> None:
    assert event_to_json(wrapped(StepStarted(2))) == {
        "type": "subagent",
        "context": str(SUB),
        "task": "task-1",
        "event": {"type": "step_started", "step": 2},
    }
    assert event_to_json(wrapped(UsageChanged(USAGE, USAGE, 2))) is None
