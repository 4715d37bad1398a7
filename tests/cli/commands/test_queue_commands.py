"""/queue, /now, /next, /later: nothing typed is lost, and a number is what the user saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midturn_cli.commands.arguments import age
from midturn_cli.commands.queue_commands import delivery
from midturn_cli.render.choose import screen_presenter
from midturn_cli.render.plain import PlainPresenter
from midturn_cli.ui_events import CommandTable, UserEcho
from midturn_core.config import QueueConfig
from midturn_core.events import TurnStarted
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.types import HELD_KEY, KIND_KEY, QueuedInput, QueuedInputPriority
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import make_launch, open_session, texts

NOW, NEXT, LATER = QueuedInputPriority
MANUAL = '[queue]\nlater = "manual"\n'
CALM = "[queue]\nnow_hastens = false\n"


async def test_the_list_shows_number_tier_delivery_age_and_text(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b"), toml=CALM) as busy:
        busy.kit.submit("sooner", NOW)
        busy.kit.submit("steer")
        busy.kit.submit("afterwards", LATER)
        busy.kit.submit("/queue")
        rows = busy.kit.of(CommandTable)[-1].rows
        assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
            ("1", "NOW", "first after this step", "sooner"),
            ("2", "NEXT", "after this step", "steer"),
            ("3", "LATER", "after this turn", "afterwards"),
        ]
        assert all(row[3].endswith("s") for row in rows)
        await busy.finish()


def item(priority: QueuedInputPriority, **metadata: str) -> QueuedInput:
    return QueuedInput("x", AgentRuntimeId("s"), priority, metadata=metadata)


@pytest.mark.parametrize(
    ("waiting", "settings", "busy", "words"),
    [
        (item(NOW), QueueConfig(), True, "at once"),
        (item(NEXT), QueueConfig(next_delivery="turn_end"), True, "when the turn ends"),
        (item(LATER), QueueConfig(later="manual"), True, "on /later run"),
        (item(LATER), QueueConfig(later="manual"), False, "on /later run"),
        (item(NEXT), QueueConfig(), False, "goes next"),
        (item(NEXT, **{KIND_KEY: "command"}), QueueConfig(), True, "after this turn"),
        (item(NOW, **{HELD_KEY: "1"}), QueueConfig(), True, "held (/queue release)"),
    ],
)
def test_the_delivery_point_is_said_in_words(
    waiting: QueuedInput, settings: QueueConfig, busy: bool, words: str
) -> None:
    assert delivery(waiting, settings, busy=busy) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0s"), (12, "12s"), (61, "1m"), (7_300, "2h"), (200_000, "2d")],
)
def test_ages_are_coarse_and_never_negative(seconds: int, words: str) -> None:
    assert age(datetime.now(UTC) - timedelta(seconds=seconds)) == words


async def test_a_number_removes_what_the_list_showed_under_it(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        for words in ("one", "two", "three"):
            busy.kit.submit(words)
        busy.kit.submit("/queue")
        busy.kit.submit("/queue rm 1")
        busy.kit.submit("/queue rm 2")
        assert texts(busy.kit.waiting()) == ["three"]
        assert "Removed, never sent: two" in busy.kit.said
        await busy.finish()


async def test_a_stale_number_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        busy.kit.submit("one")
        busy.kit.submit("two")
        busy.kit.submit("/queue")
        busy.kit.submit("/queue rm 1")
        busy.kit.submit("/queue rm 1")
        assert "Number 1 of the list waits no more" in busy.kit.errors[0]
        assert texts(busy.kit.waiting()) == ["two"]
        await busy.finish()
        busy.kit.submit("/queue rm 2")
        assert "Number 2 of the list waits no more" in busy.kit.errors[1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/queue rm 3", "There is no number 3: the list ends at 2"),
        ("/queue rm 0", "must be a whole number from 1 up"),
        ("/queue rm -1", "must be a whole number from 1 up"),
        ("/queue rm x", "must be a whole number from 1 up"),
        ("/queue rm", "/queue rm needs one number"),
        ("/queue rm 1 2", "/queue rm needs one number"),
        ("/queue drop 1", "/queue does not know 'drop'"),
        ("/queue release", "Nothing is held"),
    ],
)
async def test_a_wrong_use_is_an_error_that_changes_nothing(
    line: str, says: str, tmp_path: Path
) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("one")
        busy.kit.submit("two")
        busy.kit.submit(line)
        assert says in busy.kit.errors[0]
        assert texts(busy.kit.waiting()) == ["one", "two"]
        await busy.finish()


@pytest.mark.parametrize("line", ["/queue clear", "/queue rm all"])
async def test_clearing_shows_what_it_removed(line: str, tmp_path: Path) -> None:
    async with busy_session(tmp_path) as busy:
        busy.kit.submit("one")
        busy.kit.submit("two", LATER)
        busy.kit.submit(line)
        assert busy.kit.waiting() == []
        assert busy.kit.of(CommandTable)[-1].rows == (("NEXT", "one"), ("LATER", "two"))
        await busy.finish()
        assert len(busy.kit.of(TurnStarted)) == 1


async def test_release_lets_go_what_an_interrupt_held(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("one")
        busy.kit.session.interrupt()
        await busy.finish()
        assert texts(busy.kit.waiting()) == ["one"]
        await busy.kit.run("/queue")
        assert "held (/queue release)" in busy.kit.said
        await busy.kit.run("/queue release")
        assert texts(busy.kit.of(TurnStarted)[-1].inputs) == ["one"]
        assert busy.kit.waiting() == []


async def test_each_tier_command_sends_its_text_with_that_tier(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b"), toml=CALM) as busy:
        busy.kit.submit("/later  keep  blanks\nand lines ")
        busy.kit.submit("/next steer")
        busy.kit.submit("/now hurry")
        waiting = [(queued.priority, queued.input_text) for queued in busy.kit.waiting()]
        assert waiting == [(NOW, "hurry"), (NEXT, "steer"), (LATER, "keep  blanks\nand lines")]
        assert not busy.kit.of(UserEcho)
        await busy.finish()


async def test_a_tier_command_starts_a_turn_when_idle(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/later hello")
        assert texts(kit.of(TurnStarted)[0].inputs) == ["hello"]


@pytest.mark.parametrize(
    "line", ["/now", "/next ", "/later\n", "/now /compact", "/next /nonsense", "/later !ls"]
)
async def test_a_tier_command_takes_text_only_and_keeps_a_refused_line(
    line: str, tmp_path: Path
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        assert f"{line.split()[0]} " in await kit.run(line)
        assert not kit.of(TurnStarted)
        assert kit.waiting() == []


async def test_a_path_after_a_tier_command_is_text(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        assert await kit.run("/now /etc/hosts is odd") == ""
        assert texts(kit.of(TurnStarted)[0].inputs) == ["/etc/hosts is odd"]


async def test_by_hand_later_inputs_wait_even_when_idle(tmp_path: Path) -> None:
    model = ScriptedModel(text("a"), text("b"))
    launch = make_launch(tmp_path, MANUAL, demo=False)
    async with open_session(launch, lambda _: model) as kit:
        await kit.run("/later one")
        await kit.run("/later two")
        await kit.run("/later three")
        assert not kit.of(TurnStarted)
        await kit.run("/later run 2")
        started = [texts(turn.inputs) for turn in kit.of(TurnStarted)]
        assert started == [["one"], ["two"]]
        assert texts(kit.waiting()) == ["three"]


async def test_later_run_while_busy_begins_after_the_turn(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b"), toml=MANUAL) as busy:
        busy.kit.submit("/later one")
        busy.kit.submit("/later two")
        busy.kit.submit("/later run")
        assert len(busy.kit.waiting()) == 2
        await busy.finish()
        assert [texts(turn.inputs) for turn in busy.kit.of(TurnStarted)] == [
            ["start"],
            ["one"],
            ["two"],
        ]


async def test_later_run_lets_no_reminder_go_before_its_time(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), toml=MANUAL) as busy:
        busy.kit.submit("/remind 10m tea")
        busy.kit.submit("/later run")
        assert "No LATER input waits" in busy.kit.errors[0]
        busy.kit.submit("/later one")
        busy.kit.submit("/later run")
        await busy.finish()
        assert [texts(turn.inputs) for turn in busy.kit.of(TurnStarted)] == [["start"], ["one"]]
        assert texts(busy.kit.waiting()) == ["tea"]


async def test_an_interrupt_ends_a_later_run(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), toml=MANUAL) as busy:
        busy.kit.submit("/later one")
        busy.kit.submit("/later run")
        busy.kit.session.interrupt()
        await busy.finish()
        await busy.kit.run("/queue release")
        assert texts(busy.kit.waiting()) == ["one"]


async def test_later_run_without_later_inputs_says_so(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/later run")
        assert "No LATER input waits" in kit.errors[0]
        await kit.run("/later run the tests")
        assert texts(kit.of(TurnStarted)[0].inputs) == ["run the tests"]


async def test_a_full_queue_refuses_visibly_and_keeps_what_waits(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), toml="[queue]\ncap = 1\n") as busy:
        busy.kit.submit("one")
        busy.kit.submit("/next two")
        assert "1 inputs are already waiting" in busy.kit.errors[0]
        assert texts(busy.kit.waiting()) == ["one"]
        await busy.finish()


async def test_hostile_text_in_the_queue_reaches_no_terminal(tmp_path: Path) -> None:
    hostile = "a\x1b]0;owned\x07\x1b[2Jb\r\nc\u202ed\x9b31m[bold]e"
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit(hostile)
        busy.kit.submit("/queue")
        busy.kit.submit("/queue rm 1")
        busy.kit.submit(hostile)
        busy.kit.submit("/queue clear")
        await busy.finish()
    plain, screen = PlainPresenter(), screen_presenter("dark", {"TERM": "xterm"})
    shown = "".join(plain.apply(event) for event in busy.kit.events)
    for event in busy.kit.events:
        screen.apply(event)
    painted = screen.take_committed(80)
    for bad in ("\x1b]", "\x1b[2J", "\x07", "\u202e", "\x9b", "\r"):
        assert bad not in shown
        assert bad not in painted
    assert "[bold]e" in shown and "[bold]e" in painted
