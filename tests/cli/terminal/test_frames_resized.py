"""Frames at the very moment at which the terminal changes its size."""

from __future__ import annotations

from typing import Any

import pytest

from midturn_cli.ports import LiveRegion
from midturn_cli.terminal.frame_output import FrameOutput
from midturn_cli.terminal.resize import NARROWEST, Rewrap, way_up
from midturn_cli.ui_events import CommandOutput
from midturn_core.events import TextDelta
from tests.support.fake_presenter import FakePresenter
from tests.support.live_terminal import (
    LiveTerminal,
    TerminalSetup,
    live_terminal,
    until,
    within_deadline,
)

REGION_ROWS = 3
"""The tail, the input line and the status row."""
CLEARED_ROWS = 12
"""The half of the screen that Ctrl-L fills."""


async def test_lines_that_come_while_the_size_changes_are_shown_once_after_the_repair() -> None:
    async with live_terminal() as terminal:
        terminal.setup.columns = 60
        terminal.front.emit(CommandOutput("first of all"))
        terminal.front.emit(CommandOutput("second of all"))
        await terminal.shows("second of all")
        shown = terminal.screen_text()
    assert shown.count("first of all") == shown.count("status row") == 1
    assert shown.index("first of all") < shown.index("second of all")


async def test_the_region_is_made_anew_for_another_size_although_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that were made for a wider window would be cut: the end of a command in a question."""
    widths: list[int] = []
    live = FakePresenter.live

    def measured(self: FakePresenter, width: int, *rest: Any, **more: Any) -> LiveRegion:
        widths.append(width)
        return live(self, width, *rest, **more)

    monkeypatch.setattr(FakePresenter, "live", measured)
    async with live_terminal() as terminal:
        terminal.setup.columns = 60
        terminal.send("x")
        await until(lambda: 60 in widths)


async def test_a_frame_during_which_the_size_changes_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live_terminal() as terminal:
        write_raw = FrameOutput.write_raw

        def narrowing(self: FrameOutput, data: str) -> None:
            if "of all" in data:
                terminal.setup.columns = 60
            write_raw(self, data)

        monkeypatch.setattr(FrameOutput, "write_raw", narrowing)
        terminal.front.emit(CommandOutput("line of all"))
        await terminal.shows("line of all")
        frames = [frame for frame in terminal.stdout.writes if "line of all" in frame]
        shown = terminal.screen_text()
    assert len(frames) == 1
    assert shown.count("status row") == 1


async def test_lines_that_wait_for_a_repair_are_not_lost_when_the_session_ends() -> None:
    async with live_terminal() as terminal:
        terminal.setup.columns = 60
        terminal.front.emit(CommandOutput("the last words"))
        terminal.front.request_exit(0)
        await within_deadline(terminal.task)
        assert terminal.screen_text().count("the last words") == 1


@pytest.mark.parametrize("rewrap", Rewrap)
async def test_a_row_above_the_cursor_is_reached_at_any_width_where_that_is_possible(
    rewrap: Rewrap,
) -> None:
    async with live_terminal(setup=TerminalSetup(rewrap=rewrap)) as terminal:
        terminal.front.emit(TextDelta("the beginning"))
        await terminal.shows("the beginning")
        before = len(terminal.stdout.writes)
        terminal.front.emit(TextDelta(" and the end"))
        await terminal.shows("the beginning and the end")
        painted = "".join(terminal.stdout.writes[before:])
    assert ("\x1b[A\b\r" in painted) == (rewrap is Rewrap.FINDABLE)


@pytest.mark.parametrize(("rows", "hops"), [(0, 1), (1, 2), (3, 4)])
def test_the_way_up_goes_back_to_the_beginning_of_each_row_that_may_have_broken(
    rows: int, hops: int
) -> None:
    way = way_up(rows, 2 * NARROWEST)
    assert way.count("\x1b[A") == rows
    assert way.count("\b\r") == 2 * hops


async def test_the_presenter_knows_how_many_rows_stand_above_the_live_region() -> None:
    async with live_terminal() as terminal:
        assert await rows_above(terminal, "one") == 1
        assert await rows_above(terminal, "two\nthree") == 3
        terminal.setup.rows = 5
        assert await rows_above(terminal, "four") == 5 - REGION_ROWS


@pytest.mark.parametrize("rewrap", Rewrap)
async def test_rows_that_broke_have_pushed_as_many_off_the_screen(rewrap: Rewrap) -> None:
    setup = TerminalSetup(rewrap=rewrap)
    setup.presenter.status = "a status of 30 cells at least."
    async with live_terminal(setup=setup) as terminal:
        assert await rows_above(terminal, "1\n2\n3\n4\n5\n6") == 6
        setup.columns = 20
        pushed = 0 if rewrap is Rewrap.NEVER else 1
        assert await rows_above(terminal, "seven") == 7 - pushed


async def test_only_what_is_painted_anew_stands_on_a_cleared_screen() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(TextDelta("row\n" * 17))
        assert await rows_above(terminal, "eighteenth") == 18
        await terminal.press("\x0c")
        assert await rows_above(terminal, "last") == CLEARED_ROWS + 1


async def rows_above(terminal: LiveTerminal, text: str) -> int:
    """As the presenter is told at its next look, once the text is in the transcript."""
    terminal.front.emit(CommandOutput(text))
    await terminal.shows(text)
    last = text.split("\n")[-1]
    terminal.front.emit(TextDelta(f"{last}?"))
    await terminal.shows(f"{last}?")
    return terminal.presenter.rows_above
