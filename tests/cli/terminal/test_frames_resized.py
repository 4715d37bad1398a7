"""Frames at the very moment at which the terminal changes its size."""

from __future__ import annotations

import pytest

from midturn_cli.terminal.frame_output import FrameOutput
from midturn_cli.terminal.resize import NARROWEST, Rewrap, way_up
from midturn_cli.ui_events import CommandOutput
from midturn_core.events import TextDelta
from tests.support.live_terminal import TerminalSetup, live_terminal, within_deadline


async def test_lines_that_come_while_the_size_changes_are_shown_once_after_the_repair() -> None:
    async with live_terminal() as terminal:
        terminal.setup.columns = 60
        terminal.front.emit(CommandOutput("first of all"))
        terminal.front.emit(CommandOutput("second of all"))
        await terminal.shows("second of all")
        shown = terminal.screen_text()
    assert shown.count("first of all") == shown.count("status row") == 1
    assert shown.index("first of all") < shown.index("second of all")


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
