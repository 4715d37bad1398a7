from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.text import Text

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.ports import LiveRegion, Presenter
from midturn_cli.render import live_rows
from midturn_cli.render.block_rows import ShownKeys
from midturn_cli.render.canvas import Canvas, ColorSystem
from midturn_cli.render.cells import cut
from midturn_cli.render.choose import shown_keys
from midturn_cli.render.clean import clean
from midturn_cli.render.plain import PlainPresenter
from midturn_cli.render.presenter import ScreenPresenter
from midturn_cli.render.theme import ThemeName
from midturn_cli.ui_events import (
    AnswerReplayed,
    CommandOutput,
    CommandTable,
    Greeting,
    PromptReplayed,
    QueueChanged,
    ResultExpanded,
    ShellLineFinished,
    ShellLineStarted,
    StatusChanged,
    StatusInfo,
    ThemeChanged,
    UiEvent,
    UserEcho,
)
from midturn_core.config import KeysConfig, QueueConfig
from midturn_core.dispatch.types import GateVerdict, SequentialCause
from midturn_core.events import (
    AskAnswered,
    AskRequested,
    BatchFinished,
    CallPhase,
    CompactionFinished,
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
)
from midturn_core.model.messages import (
    DiffDetail,
    Outcome,
    OutputDetail,
    TodoDetail,
    TodoItem,
)
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.queue.types import HELD_KEY, KIND_KEY, QueuedInputPriority
from tests.support.screen_events import (
    MAIN,
    PARALLEL,
    SEQUENTIAL,
    STATUS,
    SWITCHED_OFF,
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
from tests.support.terminal_text import (
    TerminalTextCase,
    acts_on_terminal,
    cases,
    shows,
    without_sgr,
)

DIFF = "--- a\n+++ b\n@@ -10,3 +10,3 @@\n same\n-old\n+new\n same\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def presenter(color_system: ColorSystem | None = None) -> tuple[ScreenPresenter, Clock]:
    clock = Clock()
    return ScreenPresenter(color_system=color_system, clock=clock), clock


def screen(*events: UiEvent, width: int = 80) -> str:
    """The transcript of these events, without colours."""
    subject, _ = presenter()
    for event in events:
        subject.apply(event)
    return subject.take_committed(width)


def live(
    *events: UiEvent, width: int = 80, rows: int = 24, keyboard: AskKeyboard = AskKeyboard.NOT_YET
) -> LiveRegion:
    subject, clock = presenter()
    subject.apply(turn_started())
    for event in events:
        subject.apply(event)
    subject.take_committed(width)
    return subject.live(width, rows, clock.now, keyboard=keyboard)


def height(region: LiveRegion) -> int:
    return sum(len(part.split("\n")) for part in parts(region) if part)


def parts(region: LiveRegion) -> list[str]:
    return [region.tail, region.tools, region.queue, region.ask, region.status]


def test_it_is_the_presenter_of_the_terminal() -> None:
    subject: Presenter = presenter()[0]
    assert not subject.has_committed
    assert subject.take_committed(80) == ""
    assert not subject.animated


def test_a_parallel_batch_is_a_panel_with_totals_and_the_saving() -> None:
    text = screen(
        batch_started(3, PARALLEL),
        *(call_started(i, 3) for i in range(3)),
        call_ready(2),
        call_ready(1, Outcome.FAILED, content="Error: File not found"),
        call_ready(0),
        batch_finished(Outcome.SUCCEEDED, Outcome.FAILED, Outcome.SUCCEEDED),
    )
    assert text == (
        "│ Parallel Tool Execution (3 calls)\n"
        "│ [1/3] Read: src/0.py  ✓ (45ms)\n"
        "│ [2/3] Read: src/1.py  ✗ (46ms)\n"
        "│       Error: File not found\n"
        "│ [3/3] Read: src/2.py  ✓ (47ms)\n"
        "│ Total: 2/3 succeeded, 1 failed in 156ms (parallel)\n"
        "│ Sequential would have taken: 311ms (saved 155ms)\n"
    )


def finished_in(wall_ms: float, verdict: GateVerdict) -> BatchFinished:
    """Two calls that would have taken 120 ms together."""
    finished = batch_finished(Outcome.SUCCEEDED, Outcome.SUCCEEDED, verdict=verdict)
    return replace(finished, report=replace(finished.report, wall_ms=wall_ms))


@pytest.mark.parametrize(("wall_ms", "advice"), [(156, ""), (219, ""), (311, ": /parallel on")])
def test_a_batch_that_could_have_been_parallel_says_what_that_would_have_taken(
    wall_ms: float, advice: str
) -> None:
    """It advises only where somebody would notice the gain (D20)."""
    text = screen(
        batch_started(2, SWITCHED_OFF),
        *(call_started(i, 2) for i in range(2)),
        call_ready(0),
        call_ready(1),
        finished_in(wall_ms, SWITCHED_OFF),
    )
    assert text.endswith(
        f"│ Total: 2/2 succeeded in {wall_ms}ms\n"
        f"│ Parallel would have taken 120ms, not {wall_ms}ms{advice}\n"
    )


CAUSES = [
    (SequentialCause.SEQUENTIAL_TOOL, "Edit (call 2) runs alone"),
    (SequentialCause.INTERRUPT_BEHAVIOR, "Edit (call 2) can only be stopped from outside"),
    (SequentialCause.UNKNOWN_TOOL, "there is no tool Edit (call 2)"),
    (SequentialCause.CLOSED, "the dispatcher is closed"),
]


@pytest.mark.parametrize(("cause", "words"), CAUSES, ids=[cause.value for cause, _ in CAUSES])
@pytest.mark.parametrize("off", [False, True], ids=["on", "off"])
@pytest.mark.parametrize(("wall_ms", "advice"), [(156, ""), (311, " · /why")])
def test_a_batch_that_may_not_run_together_names_what_decided_in_one_line(
    cause: SequentialCause, words: str, wall_ms: float, advice: str, *, off: bool
) -> None:
    verdict = GateVerdict(False, cause, 1, "Edit")
    if off:
        verdict = replace(verdict, cause=SequentialCause.DISABLED, next_cause=cause)
        words = f"parallel execution is off, and {words}"
    text = screen(
        batch_started(2, verdict),
        *(call_started(i, 2) for i in range(2)),
        *(call_ready(i) for i in range(2)),
        finished_in(wall_ms, verdict),
        width=120,
    )
    assert text.startswith("│ Tool Execution (2 calls, one after another)\n")
    assert text.endswith(f"│ Total: 2/2 succeeded in {wall_ms}ms\n│ One by one: {words}{advice}\n")


def test_a_parallel_panel_estimates_the_spared_requests_apart_from_what_was_measured() -> None:
    batch: list[UiEvent] = [
        batch_started(4, PARALLEL),
        *(call_started(i, 4) for i in range(4)),
        *(call_ready(i) for i in range(4)),
        batch_finished(*[Outcome.SUCCEEDED] * 4),
    ]
    text = screen(message_ended(took_ms=800), message_ended(took_ms=1000), *batch)
    assert text.endswith(
        "│ Total: 4/4 succeeded in 156ms (parallel)\n"
        "│ Sequential would have taken: 311ms (saved 155ms)\n"
        "3 model requests spared: about 2.7s more (estimate)\n"
    )
    assert "estimate" not in screen(*batch)


def test_the_signs_of_a_panel_stand_below_each_other() -> None:
    titles = ("a.py", "a/much/longer/path.py", "b.py")
    text = screen(
        batch_started(3, PARALLEL),
        *(call_started(i, 3, title=title) for i, title in enumerate(titles)),
        *(call_ready(i) for i in (2, 0, 1)),
    )
    rows = text.splitlines()[1:]
    assert {row.index("✓") for row in rows} == {rows[1].index("path.py") + len("path.py  ")}


def test_a_bracket_shows_which_calls_of_a_mixed_batch_ran_together() -> None:
    parts = (range(3), range(3, 4), range(4, 6))
    verdict = GateVerdict(True, SequentialCause.SEQUENTIAL_TOOL, 3, "Edit", segments=parts)
    text = screen(
        batch_started(6, verdict),
        *(call_started(i, 6) for i in range(6)),
        *(call_ready(i, Outcome.FAILED if i == 1 else Outcome.SUCCEEDED) for i in range(6)),
    )
    rows = text.splitlines()
    assert rows[0] == "│ Parallel Tool Execution (6 calls, in 3 parts)"
    assert [row[0] for row in rows[1:] if "Read" in row] == list("┌├└│┌└")
    whole = screen(
        batch_started(2, GateVerdict(True, segments=(range(2),))),
        *(call_started(i, 2) for i in range(2)),
        *(call_ready(i) for i in range(2)),
    )
    assert {row[0] for row in whole.splitlines()} == {"│"}


def test_what_an_early_start_gained_stands_apart_from_the_totals() -> None:
    finished = batch_finished(Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    early = BatchFinished(replace(finished.report, overlap_ms=1200.0))
    text = screen(batch_started(2), *(call_started(i, 2) for i in range(2)), early)
    assert text.endswith("\n1.2s of it ran while the answer was still coming\n")


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_panel_loses_no_word_of_its_footer(width: int) -> None:
    verdict = GateVerdict(False, SequentialCause.DISABLED, 1, "TodoWrite")
    verdict = replace(verdict, next_cause=SequentialCause.SEQUENTIAL_TOOL)
    finished = batch_finished(*list(Outcome)[:5], verdict=verdict)
    text = screen(
        batch_started(5, verdict),
        *(call_started(i, 5, title="a/long/path/" * 9) for i in range(5)),
        *(call_ready(i, outcome) for i, outcome in enumerate(Outcome) if i < 5),
        replace(finished, report=replace(finished.report, wall_ms=311)),
        width=width,
    )
    rows = text.splitlines()
    assert all(row.startswith("│ ") and cell_len(row) <= width for row in rows)
    flowing = " ".join(row.removeprefix("│ ") for row in rows)
    assert "1/5 succeeded, " in flowing and "in 311ms" in flowing
    assert "off, and TodoWrite (call 2) runs alone · /why" in flowing


def test_a_panel_has_its_title_above_the_running_calls_until_its_first_row_is_final() -> None:
    begun: list[UiEvent] = [batch_started(2), *(call_started(i, 2) for i in range(2))]
    title = "│ Parallel Tool Execution (2 calls)"
    assert live(*begun).tools.split("\n")[0] == title
    assert title not in live(*begun, call_ready(0)).tools
    assert "Tool Execution" not in live(batch_started(1), call_started(0, 1)).tools


def test_a_single_call_shows_its_argument_and_its_finding() -> None:
    text = screen(
        batch_started(1, SEQUENTIAL), call_started(0, 1), call_ready(0, summary="34 lines")
    )
    assert text == "[Read: src/0.py] ✓ (45ms)\n  → 34 lines\n"


def test_a_call_that_never_ran_has_no_duration_and_says_once_that_it_was_skipped() -> None:
    text = screen(
        batch_started(2),
        *(call_started(i, 2) for i in range(2)),
        call_ready(0, Outcome.SKIPPED, content="skipped: the user sent a message", ran=False),
        call_ready(1, Outcome.STOPPED, content="stopped after 0.1 s: the user sent a message"),
    )
    assert text.splitlines()[1:] == [
        "│ [1/2] Read: src/0.py  –",
        "│       skipped: the user sent a message",
        "│ [2/2] Read: src/1.py  – (46ms)",
        "│       stopped after 0.1 s: the user sent a message",
    ]


def test_a_failed_call_shows_its_error_in_one_line() -> None:
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1),
        call_ready(0, Outcome.FAILED, content="Error: no such file\ntrace\ntrace"),
    )
    assert text == "[Read: src/0.py] ✗ (45ms)\n  → Error: no such file …\n"


def test_a_change_is_a_numbered_diff() -> None:
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Edit"),
        call_ready(0, summary="+1 -1", detail=DiffDetail("a.py", DIFF, 1, 1)),
    )
    assert text.split("\n")[2:] == [
        "       10   same",
        "       11 - old",
        "       11 + new",
        "       12   same",
        "",
    ]


def test_a_long_diff_is_cut_with_a_count() -> None:
    unified = "@@ -1,0 +1,100 @@\n" + "".join(f"+line {i}\n" for i in range(100))
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Write"),
        call_ready(0, detail=DiffDetail("a.py", unified, 100, 0)),
    )
    assert "line 38" in text and "line 40" not in text
    assert "… 61 more rows · /expand shows all" in text


@pytest.mark.parametrize("count", [1, 2], ids=["by itself", "in a panel"])
def test_what_is_cut_names_the_key_that_shows_it_whole(count: int) -> None:
    subject = ScreenPresenter(color_system=None, keys=ShownKeys(expand="F5"))
    events: list[UiEvent] = [
        batch_started(count, SEQUENTIAL),
        call_started(0, count, "Bash", "make"),
        call_ready(0, detail=OutputDetail(("one", "two"), 30)),
    ]
    for event in (*events, ThemeChanged("light")):
        subject.apply(event)
    assert "… 28 lines above · F5 or /expand shows all\n" in subject.take_committed(80)


def test_the_key_that_interrupts_stands_beside_what_is_waited_for_where_there_is_room() -> None:
    subject = ScreenPresenter(color_system=None, keys=ShownKeys(cancel="Esc"), clock=lambda: 0.0)
    for event in (turn_started(), StepStarted(1)):
        subject.apply(event)
    wide, narrow = (subject.live(width, 24, 0.0).tools for width in (80, 40))
    assert wide == "⠋ waiting for the model 0.0s · Esc interrupts"
    assert narrow == "⠋ waiting for the model 0.0s"
    subject.apply(ThinkingDelta("a thought"))
    assert subject.live(80, 24, 0.0).tools == "⠋ thinking 0.0s · a thought"


def test_the_keys_that_are_named_are_those_of_the_configuration() -> None:
    keys = shown_keys(KeysConfig(expand=("f5", "c-o"), cancel=()))
    assert keys == ShownKeys(expand="F5", cancel="")


def test_a_command_shows_its_last_lines_and_how_many_went_before() -> None:
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Bash", "make"),
        call_ready(0, detail=OutputDetail(("one", "two"), 30)),
    )
    assert text.endswith("    … 28 lines above · /expand shows all\n    one\n    two\n")


def expanded(content: str, detail: DiffDetail | None = None, number: int = 1) -> ResultExpanded:
    result = call_ready(0, content=content, detail=detail).result
    return ResultExpanded("a.py", result, number)


def test_an_expanded_result_is_shown_to_its_last_line() -> None:
    lines = "".join(f"line {number}\n" for number in range(1_000))
    shown = screen(expanded(lines, number=3)).split("\n")
    assert shown[0] == "[Read: a.py] ✓ (45ms) · number 3, counted from the newest"
    assert shown[1:] == [*(f"│ line {number}" for number in range(1_000)), ""]


def test_an_expanded_change_is_its_whole_diff() -> None:
    unified = "@@ -1,0 +1,100 @@\n" + "".join(f"+line {i}\n" for i in range(100))
    text = screen(expanded("Changed a.py.", DiffDetail("a.py", unified, 100, 0)))
    assert "│ Changed a.py.\n│     1 + line 0\n" in text
    assert "  100 + line 99\n" in text


def test_an_expanded_result_is_bounded_and_both_its_ends_are_shown() -> None:
    text = screen(expanded("\n".join(f"line {number}" for number in range(10_000))))
    assert "line 0\n" in text and "line 9999\n" in text
    assert "… 6000 rows left out …" in text


def test_an_expanded_result_cannot_act_on_the_terminal() -> None:
    hostile = "a\x1b[2Jb\x1b]52;c;eA==\x07c\x9b31md"
    subject, _ = presenter("truecolor")
    subject.apply(ResultExpanded(hostile, call_ready(0, content=hostile).result, 1))
    assert not acts_on_terminal(without_sgr(subject.take_committed(80)))
    plain = PlainPresenter().apply(expanded(hostile))
    assert plain == "[Read: a.py] ✓ (45ms)\n    abcd\n"


def test_an_empty_result_is_shown_as_empty() -> None:
    assert screen(expanded("")) == "[Read: a.py] ✓ (45ms)\n│ (empty)\n"


def test_another_theme_holds_at_once_for_the_live_region_and_what_follows() -> None:
    subject, _ = presenter("256")
    subject.apply(ask_requested := AskRequested(ask()))
    before = subject.live(80, 20, 0.0).ask
    subject.apply(ThemeChanged("light"))
    after = subject.live(80, 20, 0.0).ask
    assert before != after and without_sgr(before) == without_sgr(after)
    light = ScreenPresenter(theme="light", color_system="256")
    light.apply(ask_requested)
    assert light.live(80, 20, 0.0).ask == after


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_without_colours_every_theme_says_the_same_in_words_and_signs(theme: ThemeName) -> None:
    subject = ScreenPresenter(theme=theme, color_system=None)
    for event in (
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Edit"),
        call_ready(0, Outcome.FAILED, content="Error: no", detail=DiffDetail("a.py", DIFF, 1, 1)),
        Notice(NoticeLevel.WARNING, "careful"),
    ):
        subject.apply(event)
    text = subject.take_committed(80)
    assert "✗" in text and "- old" in text and "+ new" in text and "! careful" in text
    assert "\x1b" not in text


def test_a_todo_list_is_shown_with_its_states() -> None:
    items = (TodoItem("a", "completed"), TodoItem("b", "in_progress"), TodoItem("c", "pending"))
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "TodoWrite"),
        call_ready(0, detail=TodoDetail(items)),
    )
    assert text.endswith("    [x] a\n    [>] b\n    [ ] c\n")


def test_a_rule_that_was_allowed_is_shown_whole() -> None:
    question = ask(rule="Bash(git push origin a-long-branch-name:*)")
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Bash", "git push"),
        AskRequested(question),
        AskAnswered(question, AskReply(AskAnswer.SESSION)),
        call_ready(0),
    )
    assert "allowed this session: Bash(git push origin a-long-branch-name:*)" in text


def test_a_refusal_is_said_once() -> None:
    question = ask()
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Bash", "git push"),
        AskRequested(question),
        AskAnswered(question, AskReply(AskAnswer.NO_WITH_REASON, "not now")),
        call_ready(0, Outcome.DENIED),
    )
    assert "denied: not now" in text
    assert text.count("denied") == 1


def test_a_notice_stands_before_the_open_tail_and_never_inside_a_line() -> None:
    text = screen(
        TextDelta("First.\n\nSecond.\n\nThird para"),
        Notice(NoticeLevel.WARNING, "a notice"),
        TextDelta("graph."),
        message_ended(),
    )
    assert text == "First.\n\n! a notice\n\nSecond.\n\nThird paragraph.\n"


def test_a_streamed_answer_is_the_same_transcript_whatever_the_pieces() -> None:
    answer = "# Title\n\n- one\n- two\n\n```python\nx = 1\n```\n\n> quote\n\nEnd."
    whole = screen(TextDelta(answer), message_ended())
    rng = random.Random(1)
    for _ in range(5):
        subject, _ = presenter()
        text = ""
        position = 0
        while position < len(answer):
            size = rng.randint(1, 9)
            subject.apply(TextDelta(answer[position : position + size]))
            position += size
            text += subject.take_committed(80)
        subject.apply(message_ended())
        assert text + subject.take_committed(80) == whole


def test_rows_of_the_transcript_are_not_filled_with_blanks() -> None:
    text = screen(TextDelta("para\n\n- item\n\n> quote\n"), message_ended())
    assert all(row == row.rstrip() for row in text.split("\n"))


def test_a_slow_terminal_gets_one_block_at_a_time() -> None:
    subject, _ = presenter()
    for i in range(5):
        subject.apply(Notice(NoticeLevel.INFO, f"notice {i}"))
    first = subject.take_committed(80, max_chars=5)
    assert first == "· notice 0\n"
    assert subject.has_committed
    assert subject.take_committed(80, max_chars=25) == "· notice 1\n· notice 2\n"
    assert subject.take_committed(80) == "· notice 3\n· notice 4\n"


def test_the_open_end_of_an_answer_is_not_shown_before_what_comes_above_it() -> None:
    subject, clock = presenter()
    for text in ("first\n\n", "second\n\n", "open"):
        subject.apply(TextDelta(text))
        subject.take_committed(80, max_chars=0)
    subject.apply(Notice(NoticeLevel.INFO, "a notice\nof two rows"))
    subject.apply(Notice(NoticeLevel.INFO, "another one"))
    subject.take_committed(80, max_chars=5)
    assert subject.has_committed and subject.live(80, 24, clock.now).tail == ""
    subject.take_committed(80)
    assert subject.live(80, 24, clock.now).tail.endswith("open")


def test_a_dropped_backlog_says_how_much_is_missing() -> None:
    subject, _ = presenter()
    for i in range(100):
        subject.apply(Notice(NoticeLevel.INFO, f"notice {i}"))
    subject.drop_backlog(80, keep_rows=3)
    assert subject.take_committed(80) == (
        "[97 lines not shown]\n· notice 97\n· notice 98\n· notice 99\n"
    )


def test_a_short_backlog_is_kept_whole() -> None:
    subject, _ = presenter()
    subject.apply(Notice(NoticeLevel.INFO, "only"))
    subject.drop_backlog(80, keep_rows=3)
    assert subject.take_committed(80) == "· only\n"


def test_the_transcript_can_be_repainted_at_another_width() -> None:
    subject, _ = presenter()
    events: list[UiEvent] = [UserEcho("/help"), TextDelta("word " * 30), message_ended()]
    for event in events:
        subject.apply(event)
    subject.take_committed(80)
    narrow = subject.recent(30, 100)
    assert narrow.count("word") == 30
    assert max(len(row) for row in narrow.split("\n")) <= 30
    assert subject.recent(30, 2) == "".join(narrow.splitlines(keepends=True)[-2:])
    assert subject.recent(30, 0) == ""


def test_a_superseded_answer_is_marked_below() -> None:
    text = screen(TextDelta("half an ans"), MessageSuperseded("overloaded"))
    assert text.startswith("half an ans\n↑ superseded")


def test_a_prompt_that_waited_shows_where_it_went_in() -> None:
    line = typed("do it\nin TypeScript", QueuedInputPriority.NOW)
    text = screen(
        turn_started(typed("hello")),
        InputsDelivered((line,), DeliveryPoint.STREAM_CUT, 2),
    )
    assert text == "❯ hello\n\n❯ do it\n  in TypeScript\n  NOW · cut the answer\n"


def test_a_huge_prompt_is_cut_with_a_count() -> None:
    text = screen(turn_started(typed("\n".join(f"line {i}" for i in range(1_000)))))
    assert "line 999" in text and "… 961 more rows …" in text
    assert text.count("\n") <= 41


def test_a_huge_command_line_is_cut_with_a_count() -> None:
    text = screen(UserEcho(f"/compact {'x' * 10_000} end"))
    assert text.startswith("❯ /compact") and "end" in text
    assert "more rows …" in text
    assert text.count("\n") <= 41


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (TurnEndReason.INTERRUPTED, "Interrupted after 12.0s, 3 steps"),
        (TurnEndReason.FAILED, "Failed after 12.0s, 3 steps: offline → /retry"),
        (TurnEndReason.STEP_LIMIT, "limit of 3 steps"),
        (TurnEndReason.STALLED, "every call of the last six steps failed"),
        (TurnEndReason.REFUSED, "declined"),
    ],
)
def test_the_end_of_a_turn_says_why_and_what_to_do(reason: TurnEndReason, words: str) -> None:
    text = screen(turn_started(), turn_ended(reason, error="offline", way_out="/retry"))
    assert words in text
    assert "→ /retry" in text


def test_command_output_is_plain_or_markdown() -> None:
    assert screen(CommandOutput("**raw** [red]")) == "**raw** [red]\n"
    assert screen(CommandOutput("- **bold**", markdown=True)) == " • bold\n"


def test_what_a_command_says_is_broken_between_words() -> None:
    assert screen(CommandOutput("several words that are too long"), width=16) == (
        "several words\nthat are too\nlong\n"
    )


def test_a_table_is_aligned_and_text_in_it_is_no_markup() -> None:
    text = screen(CommandTable("Title", ("key", "value"), (("[red]a", "1"), ("long", "2")), "end"))
    assert text == "Title\nkey     value\n[red]a  1\nlong    2\nend\n"


def test_a_table_without_rows_has_a_title() -> None:
    assert screen(CommandTable("Nothing waits", (), ())) == "Nothing waits\n"


def test_a_shell_line_shows_output_and_exit_code() -> None:
    text = screen(
        UserEcho("!ls"), ShellLineStarted("s", "ls"), ShellLineFinished("s", "ls", "a\nb\n", 2)
    )
    assert text == "❯ !ls\n  a\n  b\n  exit code 2\n"
    assert "interrupted" in screen(ShellLineFinished("s", "ls", "", None))


def test_the_greeting_names_the_demo() -> None:
    demo = StatusInfo("script", True, "default", True, 4, 2)
    text = screen(Greeting("1.2.3", "/home/me", demo, ("/help",)))
    assert text == "Midturn 1.2.3  DEMO  /home/me\n/help\n"


def test_a_prompt_is_broken_between_words_and_keeps_its_blanks() -> None:
    text = "please look at this:\n    def indented(argument):\n" + "가나다라 " * 6
    assert screen(PromptReplayed(text), width=26) == (
        "❯ please look at this:\n"
        "      def\n"
        "  indented(argument):\n"
        "  가나다라 가나다라\n"
        "  가나다라 가나다라\n"
        "  가나다라 가나다라\n"
    )


def test_who_denied_a_call_is_not_told_what_the_model_is_told() -> None:
    events: list[UiEvent] = [
        batch_started(2, SEQUENTIAL),
        *(call_started(i, 2) for i in range(2)),
        AskAnswered(ask(index=0), AskReply(AskAnswer.NO_WITH_REASON, "use a loop")),
        call_ready(0, Outcome.DENIED, content="Error: declined and said: use a loop", ran=False),
        AskAnswered(ask(index=1), AskReply(AskAnswer.NO)),
        call_ready(1, Outcome.DENIED, content="Error: declined, do not repeat", ran=False),
    ]
    assert screen(*events) == (
        "│ Tool Execution (2 calls, one after another)\n"
        "│ [1/2] Read: src/0.py  ✗ · denied: use a loop\n"
        "│ [2/2] Read: src/1.py  ✗ · denied\n"
    )
    plain = PlainPresenter()
    assert "".join(map(plain.apply, events)).split("\n")[1:3] == [
        "[1/2] Read: src/0.py ✗ · denied: use a loop",
        "[2/2] Read: src/1.py ✗ · denied",
    ]


def test_a_call_that_a_rule_denied_says_why() -> None:
    text = screen(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1),
        call_ready(0, Outcome.DENIED, content="Error: the rule Read(x) denies it", ran=False),
    )
    assert text == "[Read: src/0.py] ✗ · denied\n  → Error: the rule Read(x) denies it\n"


def test_running_calls_spin_and_show_time_and_progress() -> None:
    subject, clock = presenter()
    events: list[UiEvent] = [
        batch_started(3),
        *(call_started(i, 3) for i in range(3)),
        call_runs(0),
        ToolPhaseChanged("use-1", CallPhase.ASKING),
        ToolProgress("use-0", "half done"),
        call_ready(2),
    ]
    for event in events:
        subject.apply(event)
    assert subject.animated
    clock.now = 1.25
    rows = subject.live(80, 20, clock.now).tools.split("\n")
    assert rows == [
        "│ Parallel Tool Execution (3 calls)",
        "⠹ [1/3] Read: src/0.py 1.2s · half done",
        "? [2/3] Read: src/1.py asks you",
        "✓ [3/3] Read: src/2.py (47ms)",
    ]


def test_the_call_that_a_question_is_about_has_no_row_of_its_own() -> None:
    subject, clock = presenter()
    question = ask()
    events: list[UiEvent] = [
        batch_started(2),
        *(call_started(i, 2) for i in range(2)),
        AskRequested(question),
    ]
    for event in events:
        subject.apply(event)
    rows = subject.live(80, 20, clock.now).tools.split("\n")
    assert question.tool_use_id in ("use-0", "use-1")
    assert [row for row in rows if "[1/2]" in row] == []
    assert [row for row in rows if "[2/2]" in row] == ["· [2/2] Read: src/1.py waiting"]


def test_a_spinner_changes_at_least_four_times_a_second_in_one_cell() -> None:
    subject, _ = presenter()
    subject.apply(StepStarted(1))
    glyphs = [subject.live(80, 20, tick / 4).tools[0] for tick in range(8)]
    assert all(a != b for a, b in zip(glyphs, glyphs[1:], strict=False))
    assert {cell_len(glyph) for glyph in glyphs} == {1}


def test_more_calls_than_rows_are_counted() -> None:
    region = live(batch_started(12), *(call_started(i, 12) for i in range(12)))
    rows = region.tools.split("\n")
    assert len(rows) == 9
    assert rows[-1] == "+5 more"


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (2, ["? make the window higher to read it: Bash: rm -rf /"]),
        (
            3,
            [
                "? Bash: rm -rf /",
                "y once · n no · r no, with a reason",
            ],
        ),
    ],
)
def test_a_question_says_in_the_lowest_window_what_it_is_about(rows: int, shown: list[str]) -> None:
    question = AskRequested(ask("rm -rf /", rule="Bash(rm:*)"))
    assert live(question, rows=rows, keyboard=AskKeyboard.ARMED).ask.split("\n") == shown


@pytest.mark.parametrize("max_rows", [2, 5, 8])
def test_calls_for_which_a_low_window_has_no_room_are_counted_too(max_rows: int) -> None:
    calls = (call_started(number, 48) for number in range(48))
    rows = live(batch_started(48), *calls, rows=max_rows).tools.split("\n")
    assert len(rows) == max_rows
    assert rows[-1] == f"+{48 + 1 - (len(rows) - 1)} more"


@pytest.mark.parametrize("color_system", ["truecolor", "256", "standard", None])
def test_a_row_of_the_live_region_is_what_the_console_prints(
    color_system: ColorSystem | None,
) -> None:
    canvas = Canvas(color_system)
    rows = [
        Text("plain"),
        Text("styled as a whole", "bold red"),
        Text.assemble(("│ ", "cyan"), "名前 ", ("bold", "bold on blue"), ("", "dim")),
        Text.assemble(("over", "italic"), style="underline"),
        Text("a\ttab"),
        Text("two\nrows", "dim"),
        Text("much too long " * 9, "green"),
        Text(""),
    ]
    printed = canvas.render(rows[:6] + rows[7:], 40)
    assert canvas.rows(rows[:6] + rows[7:], 40) == printed.split("\n")[:-1]
    (cut_row,) = canvas.rows(rows[6:7], 40)
    assert cell_len(Text.from_ansi(cut_row).plain) == 40 and "…" in cut_row


@pytest.mark.parametrize(
    ("priority", "words"),
    [
        (QueuedInputPriority.NOW, "at once"),
        (QueuedInputPriority.NEXT, "after this step"),
        (QueuedInputPriority.LATER, "after this turn"),
    ],
)
def test_a_waiting_line_shows_its_tier_and_when_it_goes(
    priority: QueuedInputPriority, words: str
) -> None:
    region = live(QueueChanged((typed("do\nthis", priority),)))
    assert region.queue == f"{priority.name:<5} do ⏎ this · {words}"


def test_a_now_line_behind_a_command_says_what_it_waits_for() -> None:
    region = live(
        batch_started(1, SEQUENTIAL),
        call_started(0, 1, "Bash", "make"),
        call_runs(0),
        QueueChanged((typed("stop", QueuedInputPriority.NOW),)),
    )
    assert "waits for Bash — Esc stops it" in region.queue


def test_a_line_behind_a_command_says_that_it_comes_after_it() -> None:
    before, after = (typed(text, QueuedInputPriority.NEXT) for text in ("one", "two"))
    command = typed("/clear", QueuedInputPriority.NEXT, metadata={KIND_KEY: "command"})
    rows = live(QueueChanged((before, command, after))).queue.split("\n")
    assert [row.rpartition("· ")[2] for row in rows] == [
        "after this step",
        "after this turn",
        "after the command before it",
    ]


def test_held_lines_say_how_they_are_released() -> None:
    region = live(QueueChanged((typed("held", metadata={HELD_KEY: "1"}),)))
    assert "held — Enter on an empty line sends it" in region.queue


def test_only_the_last_three_waiting_lines_are_shown() -> None:
    region = live(QueueChanged(tuple(typed(f"line {i}") for i in range(10))))
    rows = region.queue.split("\n")
    assert rows[0] == "+7 more"
    assert [row.split(" · ")[0] for row in rows[1:]] == [f"NEXT  line {i}" for i in (7, 8, 9)]


def edited_among(count: int, place: int) -> QueueChanged:
    items = [typed(f"line {i}") for i in range(count)]
    items[place] = items[place].as_edited()
    return QueueChanged(tuple(items))


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (9, ["+7 more", "  NEXT  line 7", "  NEXT  line 8", "▸ NEXT  line 9"]),
        (8, ["+7 more", "  NEXT  line 7", "▸ NEXT  line 8", "  NEXT  line 9"]),
        (4, ["+4 more", "▸ NEXT  line 4", "  NEXT  line 5", "  NEXT  line 6", "+3 more"]),
        (0, ["▸ NEXT  line 0", "  NEXT  line 1", "  NEXT  line 2", "+7 more"]),
    ],
)
def test_the_line_that_is_edited_is_always_shown_and_marked(place: int, shown: list[str]) -> None:
    rows = live(edited_among(10, place)).queue.split("\n")
    assert [row.split(" · ")[0] for row in rows] == shown


def test_a_line_that_is_edited_and_those_behind_it_say_so() -> None:
    region = live(edited_among(3, 1))
    assert [row.rpartition("· ")[2] for row in region.queue.split("\n")] == [
        "after this step",
        "being edited",
        "after the line being edited",
    ]


def test_a_line_that_is_edited_counts_as_what_it_is_again_afterwards() -> None:
    held = typed("line", metadata={HELD_KEY: "1"}).as_edited()
    (free,) = edited_among(1, 0).items
    idle = StatusInfo("model", False, "default", True, 4, 2)
    assert "queue 1 NEXT 1 held" in live(StatusChanged(idle), QueueChanged((free, held))).status


def test_a_question_shows_everything_and_how_to_answer_when_armed() -> None:
    question = ask("git push origin main", index=1, count=3, rule="Bash(git push:*)")
    region = live(AskRequested(question), keyboard=AskKeyboard.ARMED)
    assert region.ask.split("\n") == [
        "? Bash: git push origin main  (2 of 3)",
        "│ git push origin main",
        "why: no rule allows it",
        "t, s allow Bash(git push:*)",
        "y once · t this turn · s this session · n no · r no, with a reason",
    ]


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (80, "y once · t this turn · s this session · a always · n no · r no, with a reason"),
        (60, "y once · t turn · s session · a always · n no · r no + why"),
    ],
)
def test_always_is_offered_with_the_rule_that_it_stores_at_every_width(
    width: int, keys: str
) -> None:
    question = replace(ask("git log -3", rule="Bash(git log:*)"), may_store=True)
    region = live(AskRequested(question), keyboard=AskKeyboard.ARMED, width=width)
    assert region.ask.split("\n")[-2:] == ["t, s, a allow Bash(git log:*)", keys]


def test_why_it_is_asked_is_shown_whole_at_60_columns() -> None:
    reason = "no rule allows this command; " + "a reason of many words " * 4
    region = live(AskRequested(replace(ask(), reason=reason.strip())), width=60, rows=40)
    assert f"why: {reason.strip()}" in " ".join(region.ask.split())


def test_where_there_is_no_room_for_all_of_why_it_is_asked_its_last_row_says_so() -> None:
    reason = "no rule allows this command; " + "a reason of many words " * 12
    region = live(AskRequested(replace(ask(), reason=reason.strip())), width=60, rows=12)
    why = region.ask[region.ask.index("why: ") :].split("\n")
    shown = [row for row in why if row.endswith(" …")]
    assert len(shown) == 1
    assert len(shown[0]) < 60


def test_a_long_rule_is_shown_whole_at_60_columns() -> None:
    rule = f"Read(//{'x' * 180})"
    region = live(AskRequested(ask(rule=rule)), keyboard=AskKeyboard.ARMED, width=60)
    assert rule in region.ask.replace("\n", "")
    assert region.rule_shown


@pytest.mark.parametrize(("width", "rows"), [(60, 6), (40, 30), (60, 5), (20, 40)])
def test_what_lasts_is_not_offered_where_its_rule_cannot_be_read_whole(
    width: int, rows: int
) -> None:
    rule = f"Bash(exactly: cd x && make {'x' * 170})"
    question = AskRequested(replace(ask(rule=rule), may_store=True))
    region = live(question, keyboard=AskKeyboard.ARMED, width=width, rows=rows)
    assert not region.rule_shown
    assert "y once" in region.ask
    assert "session" not in region.ask and "always" not in region.ask
    assert "t, s: make the" in region.ask


@pytest.mark.parametrize(
    ("keyboard", "words"),
    [
        (AskKeyboard.NOT_YET, "wait…"),
        (AskKeyboard.NEEDS_TAB, "Tab to answer"),
        (AskKeyboard.REASONING, "Enter says no with this reason · Esc goes back"),
    ],
)
def test_an_unarmed_question_says_what_to_do(keyboard: AskKeyboard, words: str) -> None:
    region = live(AskRequested(ask()), keyboard=keyboard)
    assert region.ask.split("\n")[-1] == words
    assert "y once" not in region.ask


def test_a_session_answer_is_only_offered_with_a_rule() -> None:
    region = live(AskRequested(ask()), keyboard=AskKeyboard.ARMED)
    assert region.ask.split("\n")[-1] == "y once · n no · r no, with a reason"


def test_a_long_command_is_cut_visibly_and_keeps_its_end() -> None:
    body = "\n".join(f"echo {i}" for i in range(500)) + "\nrm -rf ~"
    region = live(AskRequested(ask(body)), keyboard=AskKeyboard.ARMED, rows=12)
    assert "rows not shown" in region.ask
    assert "rm -rf ~" in region.ask
    assert height(region) <= 12


def test_a_question_shows_the_change_it_is_about() -> None:
    question = Ask(
        "k", MAIN, "use-0", "Edit", "Edit: a.py", "a.py", "", detail=DiffDetail("a.py", DIFF, 1, 1)
    )
    region = live(AskRequested(question))
    assert "11 - old" in region.ask and "11 + new" in region.ask


def test_short_of_room_a_question_leaves_out_what_stays_and_shows_what_changes() -> None:
    context = "".join(f" line {n}\n" for n in range(3))
    unified = (
        f"@@ -1,7 +1,7 @@\n{context}-old one\n+new one\n{context}"
        f"@@ -20,7 +20,7 @@\n{context}-old two\n+new two\n{context}"
    )
    question = Ask(
        "k", MAIN, "u", "Edit", "Edit: a.py", "a.py", "", detail=DiffDetail("a.py", unified, 2, 2)
    )
    shown = ""
    for rows in range(12, 40):
        shown = live(AskRequested(question), rows=rows).ask
        assert "rows not shown" not in shown
        for changed in ("4 - old one", "4 + new one", "23 - old two", "23 + new two"):
            assert changed in shown
    assert "⋮" in shown and "21   line 1" in shown


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (QueueConfig(), ["at once", "after this step", "after this turn"]),
        (QueueConfig(now_hastens=False), ["first after this step", "after this step"]),
        (QueueConfig(next_delivery="turn_end"), ["at once", "when the turn ends"]),
        (QueueConfig(later="manual"), ["at once", "after this step", "on /later run"]),
    ],
)
def test_queue_rows_say_what_the_configuration_makes_of_a_tier(
    settings: QueueConfig, words: list[str]
) -> None:
    items = tuple(typed("x", priority) for priority in QueuedInputPriority)
    rows = live(turn_started(), QueueChanged(items, settings)).queue.split("\n")
    for row, when in zip(rows, words, strict=False):
        assert row.endswith(f" · {when}")


def test_a_paint_looks_at_the_beginning_of_a_waiting_text_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def counted(text: str, width: int) -> str:
        looked_at.append(len(text))
        return cut(text, width)

    monkeypatch.setattr(live_rows, "cut", counted)
    row = live(QueueChanged((typed("line of a log\n" * 10_000),), QueueConfig())).queue
    assert "line of a log ⏎ line" in row
    assert "…" in row
    assert max(looked_at) < 10_000


def test_an_answer_begins_as_far_below_what_is_before_it_as_it_stays() -> None:
    region = live(CommandOutput("before"), TextDelta("the answer begins"))
    assert region.tail == "\nthe answer begins"
    assert live(TextDelta("the answer begins")).tail == "the answer begins"


def test_code_in_a_sentence_has_no_dark_box() -> None:
    subject, _ = presenter("truecolor")
    subject.apply(TextDelta("run `ls` now"))
    subject.apply(message_ended())
    assert "\x1b[1;36mls\x1b[0m" in subject.take_committed(80)


def test_the_status_row_drops_the_least_important_first_and_never_the_demo() -> None:
    demo = StatusInfo("a-long-model-name", True, "yolo", False, 4, 4, 34, 5_000)
    wide = live(StatusChanged(demo), QueueChanged((typed("x"),)), width=100).status
    assert wide == (
        "DEMO · a-long-model-name · yolo · ∥ off · queue 1 NEXT · context 34% · 5.0k tok"
    )
    narrow = live(StatusChanged(demo), QueueChanged((typed("x"),)), width=40).status
    assert narrow == "DEMO · yolo · ∥ off · queue 1 NEXT"
    for width in range(1, 100):
        row = live(StatusChanged(demo), width=width).status
        assert cell_len(row) < max(width, 2)
        assert width < 6 or row.startswith("DEMO")


def test_the_status_row_shows_how_many_slots_are_taken_while_calls_run_together() -> None:
    idle = StatusInfo("model", False, "default", True, 4, 2)
    busy = replace(idle, slots_in_use=3, slots_by_agent=(("main", 3),))
    assert live(StatusChanged(idle)).status == "model · default · ∥ on 4/2"
    assert live(StatusChanged(busy)).status == "model · default · ∥ 3/4"
    assert live(StatusChanged(replace(busy, parallel=False))).status == "model · default · ∥ off"


def test_the_status_row_says_whose_slots_they_are_when_there_is_room() -> None:
    agents = (("sub-1", 2), ("main", 1))
    shared = StatusInfo(
        "model", False, "default", True, 4, 4, slots_in_use=3, slots_by_agent=agents
    )
    assert live(StatusChanged(shared)).status == "model · default · ∥ 3/4 · sub-1 2, main 1"
    assert live(StatusChanged(shared), width=30).status == "model · default · ∥ 3/4"
    assert live(StatusChanged(shared), width=10).status == "∥ 3/4"


def busy_events() -> list[UiEvent]:
    return [
        StatusChanged(STATUS),
        TextDelta("- long list\n" * 40),
        batch_started(12),
        *(call_started(i, 12, title="x" * 300) for i in range(12)),
        *(call_runs(i) for i in range(12)),
        QueueChanged(tuple(typed("y" * 300) for _ in range(10))),
        AskRequested(ask("z" * 3_000, rule="Bash(" + "z" * 300 + ")")),
        TextDelta("- long list\n" * 40),
        StepStarted(2),
        ThinkingDelta("thought " * 100),
    ]


@pytest.mark.parametrize("width", [1, 2, 5, 10, 20, 40, 80, 200])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 8, 12, 30])
def test_the_live_region_fits_into_every_window(width: int, rows: int) -> None:
    for keyboard in AskKeyboard:
        region = live(*busy_events(), width=width, rows=rows, keyboard=keyboard)
        assert height(region) <= rows
        if width >= 20:
            assert all(cell_len(r) < width for part in parts(region) for r in part.split("\n"))
        if rows >= 3:
            assert region.ask and region.status


ROWS = "".join(f"row {i}  \n" for i in range(40))
"""An open list that is shown before it is final, since its numbers may get wider."""


def test_a_streaming_answer_shows_its_last_rows() -> None:
    region = live(TextDelta(ROWS), TextDelta("row 40"))
    rows = region.tail.split("\n")
    assert len(rows) == 10
    assert rows[-1] == "row 40"


def test_a_streaming_answer_is_no_taller_than_what_stands_above_it() -> None:
    """Its rows double in a window of half the width, and must not leave it at the top."""
    subject, clock = presenter()
    subject.apply(TextDelta(ROWS))
    heights = [
        len(subject.live(80, 24, clock.now, rows_above=above).tail.split("\n"))
        for above in (0, 8, 30)
    ]
    assert heights == [3, 5, 10]


def test_items_of_a_list_are_in_the_transcript_before_it_ends() -> None:
    subject, clock = presenter()
    subject.apply(TextDelta("- one\n- two\n- three\n"))
    assert subject.take_committed(80) == " • one\n • two\n"
    assert subject.live(80, 24, clock.now).tail == " • three"


def test_a_block_that_cannot_be_rendered_does_not_end_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("renderer bug")

    subject, _ = presenter()
    subject.apply(Notice(NoticeLevel.INFO, "one"))
    with monkeypatch.context() as patch:
        patch.setattr("midturn_cli.render.transcript_entries.render_block", broken)
        assert "could not be shown" in subject.take_committed(80)
    subject.apply(Notice(NoticeLevel.INFO, "two"))
    assert subject.take_committed(80) == "· two\n"


def test_the_tail_is_asked_for_again_until_it_shows_all_text() -> None:
    subject, clock = presenter()
    subject.apply(TextDelta("word"))
    assert subject.animated
    tail = ""
    while subject.animated and tail != "word":
        tail = subject.live(80, 20, clock.now).tail
    assert tail == "word"


def test_what_runs_stands_where_it_will_stand_when_it_is_final() -> None:
    """Nothing jumps by the empty row that a block gets when it is written."""
    subject, clock = presenter()

    def tools(*events: UiEvent, rows: int = 24) -> list[str]:
        for event in events:
            subject.apply(event)
        subject.take_committed(80)
        return subject.live(80, rows, clock.now).tools.split("\n")

    waiting = "⠋ waiting for the model 0.0s"
    assert tools(turn_started(), StepStarted(1)) == [waiting]
    assert tools(TextDelta("Hello.\n"), message_ended(), StepStarted(2)) == ["", waiting]
    assert tools(rows=1) == [waiting]
    panel = tools(batch_started(2), *(call_started(i, 2) for i in range(2)), call_runs(1))
    assert panel[:2] == ["", "│ Parallel Tool Execution (2 calls)"]
    assert tools(call_ready(0)) == ["⠋ [2/2] Read: src/1.py 0.0s"]
    done = batch_finished(Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    assert tools(call_ready(1), done, StepStarted(3)) == ["", waiting]


def test_an_answer_that_stands_still_says_that_more_is_waited_for() -> None:
    subject, clock = presenter()
    subject.apply(TextDelta("I begin"))
    clock.now = 2.9
    assert subject.live(80, 20, clock.now).tools == ""
    assert subject.animated
    clock.now = 7.0
    assert subject.live(80, 20, clock.now).tools == "⠋ waiting for more of the answer 7.0s"
    subject.apply(TextDelta(" again"))
    assert subject.live(80, 20, clock.now).tools == ""
    subject.apply(message_ended())
    clock.now = 20.0
    assert subject.live(80, 20, clock.now).tools == ""
    assert not subject.animated


CASES = cases()


def hostile_events(text: str) -> list[UiEvent]:
    """Events that carry this text in every place where foreign text can be."""
    diff = DiffDetail(
        text, "@@ -1,1 +1,1 @@\n" + "".join(f"+{x}\n" for x in text.split("\n")), 1, 0
    )
    question = Ask("k", MAIN, "use-9", text, text, text, text, session_rule=text, detail=diff)
    status = StatusInfo(text, False, text, False, 4, 4, cost=text)
    line = typed(f"x{text}", QueuedInputPriority.NOW)
    return [
        Greeting(text, text, status, (text,)),
        turn_started(line),
        RetryWaiting(1, 2, 1.0, text),
        ThinkingDelta(text),
        TextDelta(text),
        ToolUseAnnounced("use-0", text),
        batch_started(4, PARALLEL),
        *(call_started(i, 4, text or "x", text) for i in range(4)),
        ToolProgress("use-0", text),
        QueueChanged((line,)),
        AskRequested(question),
        AskAnswered(question, AskReply(AskAnswer.NO_WITH_REASON, text)),
        call_ready(0, Outcome.FAILED, content=text, detail=diff),
        call_ready(1, summary=text, detail=OutputDetail(tuple(text.split("\n")), 9)),
        call_ready(2, summary=text, detail=TodoDetail((TodoItem(text, text),))),
        call_ready(3, Outcome.DENIED, content=text),
        batch_finished(*[Outcome.SUCCEEDED] * 4),
        InputsDelivered((typed(f"y{text}"),), DeliveryPoint.STEP_BOUNDARY, 1),
        TextDelta(text),
        MessageSuperseded(text),
        CompactionFinished(1, 2, text),
        Notice(NoticeLevel.ERROR, text),
        turn_ended(TurnEndReason.FAILED, error=text, way_out=text),
        UserEcho(text),
        CommandOutput(text),
        CommandOutput(text, markdown=True),
        CommandTable(text, (text,), ((text,),), text),
        ShellLineStarted("s", text),
        ShellLineFinished("s", text, text, 1),
        PromptReplayed(text),
        AnswerReplayed(text),
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("color_system", [None, "truecolor"])
def test_no_foreign_text_acts_on_the_terminal(
    case: TerminalTextCase, color_system: ColorSystem | None
) -> None:
    subject, clock = presenter(color_system)
    for index, event in enumerate(hostile_events(case.text)):
        subject.apply(event)
        region = subject.live(
            60, 20, clock.now, keyboard=[AskKeyboard.NOT_YET, AskKeyboard.ARMED][index % 2]
        )
        assert acts_on_terminal("\n".join(parts(region))) == []
        text = subject.take_committed(60)
        assert acts_on_terminal(text) == []
        assert color_system is not None or "\x1b" not in text


@pytest.mark.parametrize("width", [1, 3, 10, 24, 40, 100])
def test_no_row_of_the_transcript_is_wider_than_the_window(width: int) -> None:
    subject, _ = presenter()
    for text in ("word " * 60, "x" * 400, "안녕하세요" * 40, "👍" * 90, "a\n" * 50):
        for event in hostile_events(text):
            subject.apply(event)
    rows = subject.take_committed(width).split("\n")
    assert all(cell_len(row) <= max(width, 2) for row in rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_plain_output_holds_no_escape_byte(case: TerminalTextCase) -> None:
    subject = PlainPresenter()
    for event in hostile_events(case.text):
        text = subject.apply(event)
        assert acts_on_terminal(text) == []
        assert "\x1b" not in text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_foreign_text_stays_readable(case: TerminalTextCase) -> None:
    for event in (
        Notice(NoticeLevel.INFO, case.text),
        CommandOutput(case.text),
        ShellLineFinished("s", "x", case.text, 0),
        UserEcho(case.text),
        CommandTable("", ("h",), ((case.text,),)),
    ):
        assert shows(screen(event, width=60), case.must_show)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_question_always_shows_the_end_of_what_is_asked(case: TerminalTextCase) -> None:
    region = live(AskRequested(Ask("k", MAIN, "u", "Bash", "Bash", case.text, "")), rows=20)
    body = "\n".join(row.removeprefix("│ ") for row in region.ask.split("\n"))
    if len(case.text) < 5_000 or case.id in ("tt-70", "tt-71"):
        assert shows(body, case.must_show)


def test_cleaning_leaves_the_text_of_the_answer_alone() -> None:
    text = "Ünïcödé 안녕 — “quotes”\nline\n"
    assert clean(text) == text


def test_without_colours_everything_can_still_be_read() -> None:
    colored, _ = presenter("truecolor")
    plain, _ = presenter(None)
    events = [*busy_events(), turn_ended(TurnEndReason.FAILED, error="x")]
    for event in events:
        colored.apply(event)
        plain.apply(event)
    assert without_sgr(colored.take_committed(80)) == plain.take_committed(80)


def test_text_that_streams_beside_a_question_goes_on_above_it() -> None:
    subject, clock = presenter()
    subject.apply(turn_started())
    subject.apply(AskRequested(ask("git push")))
    subject.apply(TextDelta("one line\n\nthe next\n"))
    assert subject.take_committed(80).strip() == "one line"
    region = subject.live(80, 20, clock.now)
    assert region.tail.strip() == "the next"
    assert "git push" in region.ask
