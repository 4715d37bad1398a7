from __future__ import annotations

import time

import pytest
from prompt_toolkit import renderer
from prompt_toolkit.application import Application
from prompt_toolkit.renderer import Renderer

from midturn_cli.terminal.frame_budget import COMPUTING_SECONDS, LARGEST, SMALLEST, FrameBudget
from midturn_cli.terminal.frame_output import SYNC_BEGIN, SYNC_END
from midturn_cli.terminal.layout import input_rows_limit, region_rows
from midturn_cli.terminal.region_rows import fit, row_fragments
from midturn_cli.terminal.resize import Rewrap, rows_above_cursor, terminal_rewrap
from midturn_cli.ui_events import CommandOutput
from midturn_core.events import (
    Notice,
    NoticeLevel,
    TextDelta,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import Usage
from tests.support.fake_presenter import FakePresenter
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import TerminalSetup, live_terminal, until, within_deadline

CONTEXT = AgentRuntimeId("test")


def test_the_private_names_of_prompt_toolkit_exist() -> None:
    assert callable(getattr(Application, "_redraw", None))
    assert callable(getattr(Application, "_on_resize", None))
    names = {*Renderer.reset.__code__.co_names, *Renderer.__init__.__code__.co_names}
    assert {"_cursor_pos", "_last_size", "_last_screen", "_last_style"} <= names
    assert {"_attrs_for_style", "_style_string_has_style"} <= names
    assert callable(getattr(renderer, "_output_screen_diff", None))


async def test_a_commit_is_one_synchronized_write() -> None:
    async with live_terminal() as terminal:
        before = len(terminal.stdout.writes)
        terminal.front.emit(CommandOutput("first line"))
        terminal.front.emit(CommandOutput("second line"))
        await terminal.shows("second line")
        (frame,) = [one for one in terminal.stdout.writes[before:] if "first line" in one]
        assert frame.startswith(SYNC_BEGIN) and frame.endswith(SYNC_END)
        assert frame.count(SYNC_BEGIN) == 1
        assert "second line" in frame and "›" in frame


async def test_a_session_asks_the_terminal_nothing_and_clears_no_screen() -> None:
    async with live_terminal() as terminal:
        terminal.send("hello\r")
        await terminal.submitted("hello")
        for number in range(60):
            terminal.front.emit(CommandOutput(f"line {number}"))
        terminal.send("\x0c")
        await terminal.shows("line 59")
    written = "".join(terminal.stdout.writes)
    for forbidden in ("\x1b[6n", "\x1b[2J", "\x1b[3J", "\x1b[?1049h", "\x1b[c"):
        assert forbidden not in written


async def test_bracketed_paste_is_switched_on_once_and_off_at_the_end() -> None:
    async with live_terminal() as terminal:
        for number in range(5):
            terminal.front.emit(CommandOutput(f"line {number}"))
            await terminal.shows(f"line {number}")
    written = "".join(terminal.stdout.writes)
    assert written.count("\x1b[?2004h") == 1
    assert written.count("\x1b[?2004l") == 1
    assert written.rindex("\x1b[?2004l") > written.rindex("\x1b[?2004h")


async def test_the_region_is_gone_after_the_exit_and_the_transcript_stays() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(CommandOutput("an answer"))
        terminal.send("a draft")
        await terminal.shows("a draft")
    text = terminal.screen_text()
    assert "an answer" in text
    assert "a draft" not in text and "status row" not in text
    screen = terminal.screen()
    assert screen.cursor.x == 0 and not screen.cursor.hidden


async def test_events_emitted_right_before_the_exit_are_shown() -> None:
    async with live_terminal() as terminal:
        terminal.front.request_exit(3)
        terminal.front.emit(CommandOutput("last words"))
        assert await within_deadline(terminal.task) == 3
    assert "last words" in terminal.screen_text()


async def test_nothing_is_written_while_idle() -> None:
    async with live_terminal() as terminal:
        terminal.send("x")
        await terminal.shows("› x")
        before = len(terminal.stdout.writes)
        terminal.clock.now += 100
        await terminal.press("\x00")
        quiet = len(terminal.stdout.writes)
        # Several ticks of the animation pace: a ticker that ran on would have written.
        await until(Elapsed(0.35))
        assert len(terminal.stdout.writes) == quiet
        assert quiet - before <= 1


class Elapsed:
    """True once so much time has passed."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def __call__(self) -> bool:
        return time.monotonic() >= self._end


async def test_the_spinner_moves_only_while_something_works() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(TurnStarted(CONTEXT, "turn", ()))
        await terminal.shows("working")
        seen: set[str] = set()

        def moved() -> bool:
            terminal.clock.now += 0.1
            seen.update(line for line in terminal.screen_text().split("\n") if "working" in line)
            return len(seen) >= 3

        await until(moved)
        terminal.front.emit(TurnEnded(CONTEXT, "turn", TurnEndReason.DONE, 1, Usage(), 1.0))
        await until(lambda: "working" not in terminal.screen_text())


async def test_a_streamed_half_line_is_shown_and_committed_once_it_is_whole() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(TextDelta("half a "))
        await terminal.shows("half a")
        terminal.front.emit(TextDelta("line\nnext"))
        await terminal.shows("half a line")
        await terminal.shows("next")
        assert terminal.screen_text().count("half a") == 1


async def test_ctrl_l_paints_the_screen_anew_from_the_transcript() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(CommandOutput("an answer"))
        await terminal.shows("an answer")
        terminal.stdout.writes.append("\x1b[5;1Hgarbage from elsewhere")
        assert "garbage" in terminal.screen_text()
        terminal.send("\x0c")
        await until(lambda: "garbage" not in terminal.screen_text())
        assert "an answer" in terminal.screen_text()


async def test_an_event_that_cannot_be_shown_becomes_a_notice() -> None:
    presenter = FakePresenter(fail_on="poison")
    async with live_terminal(setup=TerminalSetup(presenter=presenter)) as terminal:
        terminal.front.emit(CommandOutput("poison"))
        terminal.front.emit(CommandOutput("healthy"))
        await terminal.shows("could not be shown")
        await terminal.shows("healthy")


async def test_a_notice_that_cannot_be_rendered_is_written_plainly() -> None:
    presenter = FakePresenter(fail_on="Notice")
    async with live_terminal(setup=TerminalSetup(presenter=presenter)) as terminal:
        terminal.front.emit(Notice(NoticeLevel.ERROR, "important \x1b[2J words"))
        await terminal.shows("important  [2J words")


async def test_the_end_of_the_writer_ends_the_session_with_an_error() -> None:
    def fail() -> FakePresenter:
        raise RuntimeError("no renderer")

    async with live_terminal(setup=TerminalSetup(factory=fail)) as terminal:
        assert await within_deadline(terminal.task) == 1
        assert isinstance(terminal.front.failure, RuntimeError)


@pytest.mark.parametrize(("columns", "rows"), [(40, 10), (20, 6), (200, 60)])
async def test_input_and_status_fit_in_any_terminal(columns: int, rows: int) -> None:
    async with live_terminal(setup=TerminalSetup(columns=columns, rows=rows)) as terminal:
        terminal.send("\n".join(f"row {number}" for number in range(30)))
        await terminal.shows("row 29")
        await terminal.shows("status row")
        terminal.front.emit(TextDelta("tail"))
        await terminal.shows("row 29")


def test_parts_give_way_in_order_when_there_is_no_room() -> None:
    parts = {"tail": "1\n2\n3", "tools": "t", "queue": "q\nr", "ask": "a\nb"}
    assert fit(parts, 8) == parts
    assert fit(parts, 6) == {**parts, "tail": "3"}
    assert fit(parts, 3) == {"tail": "", "tools": "t", "queue": "", "ask": "a\nb"}
    assert fit(parts, 1) == {"tail": "", "tools": "", "queue": "", "ask": "b"}


def test_a_question_leaves_the_draft_less_room_and_the_region_is_half_the_screen() -> None:
    assert region_rows(40) == 20
    assert input_rows_limit(40, False) == 8
    assert input_rows_limit(10, False) == 4
    assert input_rows_limit(10, True) == 1


@pytest.mark.parametrize("rows", [1, 2, 3])
async def test_the_lowest_window_still_shows_the_input_line(rows: int) -> None:
    async with live_terminal(setup=TerminalSetup(rows=rows)) as terminal:
        terminal.front.emit(TextDelta("an answer that is open"))
        terminal.send("a draft")
        await terminal.draft_is("a draft")
        await until(lambda: "› a draft" in "\n".join(terminal.screen().screen_text()))


async def test_a_search_makes_the_live_region_no_higher_than_half_the_screen() -> None:
    async with live_terminal(setup=TerminalSetup(rows=6)) as terminal:
        terminal.front.emit(TextDelta("an answer that is open"))
        await terminal.shows("an answer that is open")
        terminal.send("\x12")
        await terminal.shows("search earlier lines:")
        rows = [row for row in terminal.screen().screen_text() if row.strip()]
        assert len(rows) == region_rows(6) == 3
        terminal.send("\x03")
        await until(lambda: "an answer that is open" in "\n".join(terminal.screen().screen_text()))


async def test_what_a_menu_took_from_the_rows_above_is_theirs_again_once_it_is_closed() -> None:
    async with live_terminal(setup=TerminalSetup(rows=12)) as terminal:
        terminal.send("/")
        await terminal.shows("/help")
        terminal.front.emit(TextDelta("an answer that is open"))
        await until(lambda: terminal.presenter.max_rows < 5)
        terminal.send("\x7f")
        await until(lambda: terminal.presenter.max_rows == 5)


def test_a_row_has_one_fragment_for_each_of_its_styles() -> None:
    row = "plain \x1b[1;31mred\x1b[0m\x1b[2m dim\x1b[3m and italic\x1b[0m end"
    assert row_fragments(row) == [
        ("", "plain "),
        ("ansired bold", "red"),
        ("dim", " dim"),
        ("dim italic", " and italic"),
        ("", " end"),
    ]


def test_a_row_of_the_live_region_has_the_same_width_in_every_terminal() -> None:
    assert row_fragments("🇩🇪 flag, 👍🏽 thumb") == [("", "DE flag, 👍 thumb")]


async def test_flags_and_skin_tones_of_a_draft_take_the_cells_they_are_counted_with() -> None:
    async with live_terminal() as terminal:
        terminal.send("🇩🇪👍🏽 x")
        await terminal.shows("› DE👍· x")
        terminal.send("\r")
        await terminal.submitted("🇩🇪👍🏽 x")


def test_a_rewrapping_terminal_has_more_rows_after_it_gets_narrower() -> None:
    assert rows_above_cursor([10, 80, 0, 20], 5, 40) == 4
    assert rows_above_cursor([81, 100], 85, 40) == 5


def test_a_cursor_at_the_end_of_a_full_row_stays_in_it() -> None:
    assert rows_above_cursor([10, 83], 83, 83) == 1
    assert rows_above_cursor([10, 0], 0, 83) == 1
    assert rows_above_cursor([10, 20], 60, 40) == 1


@pytest.mark.parametrize(
    ("environ", "rewrap"),
    [
        ({"TERM": "xterm-256color"}, Rewrap.NEVER),
        ({"TERM": "xterm-256color", "TMUX": "x"}, Rewrap.FINDABLE),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7000"}, Rewrap.BREAKS),
        ({"TERM": "tmux-256color"}, Rewrap.BREAKS),
        ({}, Rewrap.BREAKS),
    ],
)
def test_terminals_that_rewrap_are_known(environ: dict[str, str], rewrap: Rewrap) -> None:
    assert terminal_rewrap(environ) is rewrap


def test_the_frame_budget_follows_the_speed_of_the_terminal() -> None:
    budget = FrameBudget()
    budget.record(10_000, computing=0.0, writing=1.0)
    assert budget.chars == 400
    budget.record(10, computing=0.0, writing=1.0)
    assert budget.chars == SMALLEST
    for _ in range(40):
        budget.record(10, computing=0.001, writing=0.001)
    assert budget.chars == LARGEST


def test_the_frame_budget_follows_the_time_that_rendering_takes() -> None:
    budget = FrameBudget()
    budget.record(10_000, computing=10 * COMPUTING_SECONDS, writing=0.0)
    assert budget.chars == 1000


async def test_a_draft_that_is_too_high_keeps_its_tag_and_says_how_much_is_shown() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("\n".join(f"row {number}" for number in range(7)))
        await terminal.shows("row 6")
        assert "of them shown" not in terminal.screen_text()
        terminal.send("\n" + "\n".join(f"row {number}" for number in range(7, 12)))
        await terminal.shows("row 11")
        shown = terminal.screen_text()
        assert "12 rows, 7 of them shown" in shown
        (row,) = [row for row in shown.split("\n") if "of them shown" in row]
        assert row.startswith("NEXT ")
        assert "row 5" in shown and "row 4\n" not in shown
