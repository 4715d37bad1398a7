"""The rows of calls that run while the model still writes (D24)."""

from __future__ import annotations

import pytest

from midturn_cli.render.presenter import ScreenPresenter
from midturn_core.events import (
    Event,
    MessageSuperseded,
    StepStarted,
    ToolUseEndedEarly,
    ToolUseStartedEarly,
)
from tests.support.screen_events import (
    batch_started,
    call_runs,
    call_started,
    turn_ended,
    turn_started,
)

READ = ToolUseStartedEarly("use-0", "Read", "README.md")


class Show:
    """A screen whose clock the test moves."""

    def __init__(self, *events: Event) -> None:
        self.now = 100.0
        self.presenter = ScreenPresenter(color_system=None, clock=lambda: self.now)
        self.apply(turn_started(), StepStarted(1), *events)

    def apply(self, *events: Event) -> None:
        for event in events:
            self.presenter.apply(event)

    def rows(self, width: int = 80) -> list[str]:
        return self.presenter.live(width, 24, self.now).tools.split("\n")


def test_a_call_that_runs_early_has_one_row_with_its_time() -> None:
    show = Show(READ)
    show.now += 2
    (row,) = [row for row in show.rows() if "early" in row]
    assert row.endswith("Read: README.md · started early 2.0s")
    assert show.presenter.animated


def test_one_that_has_ended_says_how_long_it_took() -> None:
    show = Show(READ, ToolUseEndedEarly("use-0", 45.0), ToolUseEndedEarly("denied", 0.0))
    show.now += 2
    (row,) = [row for row in show.rows() if "early" in row]
    assert row == "• Read: README.md · ran early (45ms)"


def test_its_batch_shows_it_instead_and_goes_on_with_its_time() -> None:
    show = Show(READ)
    show.now += 3
    show.apply(batch_started(2), call_started(0, 2), call_started(1, 2), call_runs(0), call_runs(1))
    show.now += 1
    rows = show.rows()
    assert not any("early" in row for row in rows)
    assert any("[1/2]" in row and "4.0s" in row for row in rows)
    assert any("[2/2]" in row and "1.0s" in row for row in rows)


@pytest.mark.parametrize(
    "event", [MessageSuperseded("the stream broke"), StepStarted(2), turn_ended()]
)
def test_it_goes_with_the_message_that_asked_for_it(event: Event) -> None:
    show = Show(READ, event)
    assert not any("early" in row for row in show.rows())


def test_a_long_or_hostile_title_stays_on_its_row() -> None:
    show = Show(ToolUseStartedEarly("use-0", "Re\nad", "a\x1b[2Jb/" + "x" * 200))
    (row,) = [row for row in show.rows(60) if "started early" in row]
    assert len(row) <= 60
    assert "\x1b" not in row
