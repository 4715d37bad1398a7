"""/remind: text that is queued at a time to come."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from midturn_cli.commands.arguments import due_in
from midturn_cli.commands.command import CommandError
from midturn_cli.commands.remind_command import split_time
from midturn_cli.launch import SessionStart
from midturn_cli.ui_events import CommandOutput, CommandTable, QueueChanged
from midturn_core.events import Notice, TurnStarted
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.rewake import After, At, Wakeup
from midturn_core.queue.types import DUE_KEY, QueuedInput
from tests.support.agent_kit import until
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import make_launch, open_session

SEOUL = ZoneInfo("Asia/Seoul")
NOON = datetime(2026, 3, 5, 12, 0, 30, tzinfo=SEOUL)


@pytest.mark.parametrize(
    ("word", "span"),
    [
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("90s", timedelta(seconds=90)),
        ("2d1s", timedelta(days=2, seconds=1)),
    ],
)
def test_a_span_is_read_with_its_units(word: str, span: timedelta) -> None:
    assert split_time(f"{word} look  at it", NOON) == (After(span), "look  at it")


@pytest.mark.parametrize("word", ["", "10", "m", "0s", "-5m", "1m1h", "400d", "10m5", "soon", "٣m"])
def test_what_is_no_span_is_refused_with_examples(word: str) -> None:
    with pytest.raises(CommandError, match=r"/remind 10m"):
        split_time(f"{word} text", NOON)


def test_a_time_of_day_is_the_next_one() -> None:
    now = datetime.now().astimezone().replace(hour=12, minute=0, second=30)
    for word, hours in (("14:30", timedelta(hours=2, minutes=30)), ("12:00", timedelta(days=1))):
        due, rest = split_time(f"at {word} tea", now)
        assert isinstance(due, At)
        wanted = now.replace(tzinfo=None, second=0, microsecond=0) + hours
        assert due.instant.replace(tzinfo=None) == wanted
        assert rest == "tea"


@pytest.mark.parametrize("word", ["24:00", "12:60", "noon", "1430", ""])
def test_what_is_no_time_of_day_is_refused(word: str) -> None:
    with pytest.raises(CommandError, match="00:00 to 23:59"):
        split_time(f"at {word} tea", NOON)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=-5), "in 0 s"),
        (timedelta(seconds=29.5), "in 30 s"),
        (timedelta(minutes=8, seconds=30), "in 9 min"),
        (timedelta(hours=1, minutes=29, seconds=30), "in 1 h 30 min"),
        (timedelta(days=2, hours=3, minutes=4), "in 2 d 3 h"),
    ],
)
def test_how_long_it_still_takes_is_said_in_words(span: timedelta, words: str) -> None:
    due = datetime.now().astimezone() + span
    item = QueuedInput("x", AgentRuntimeId("s"), metadata={DUE_KEY: due.isoformat()})
    assert due_in(item).startswith(f"{words} (")


async def test_reminders_are_listed_and_removed_by_their_number(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: ScriptedModel()) as kit:
        kit.submit("/remind")
        assert "No reminder is set" in kit.said
        kit.submit("/remind 2h later one")
        kit.submit("/remind 1h sooner one")
        kit.submit("/remind")
        rows = kit.of(CommandTable)[-1].rows
        assert [row[2] for row in rows] == ["sooner one", "later one"]
        kit.submit("/queue")
        assert "in 1 h (" in kit.said
        kit.submit("/remind rm 1")
        assert "Removed, never sent: sooner one" in kit.said
        kit.submit("/remind rm 1")
        assert "is not set any more" in kit.errors[-1]
        kit.submit("/remind rm 3")
        assert "the list ends at 2" in kit.errors[-1]
        assert [item.input_text for item in kit.waiting()] == ["later one"]


async def test_a_huge_reminder_is_shortened_wherever_it_is_named(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: ScriptedModel()) as kit:
        kit.submit(f"/remind 1h {'word ' * 40_000}")
        kit.submit("/remind")
        kit.submit("/remind rm 1")
        queued, removed = [output.text for output in kit.of(CommandOutput)[-2:]]
        [row] = kit.of(CommandTable)[-1].rows
        assert max(map(len, (queued, removed, row[2]))) < 400


async def test_a_line_that_cannot_be_meant_stays_in_the_input(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: ScriptedModel()) as kit:
        assert "/remind 10m" in kit.submit("/remind tomorrow call")
        assert "needs the text" in kit.submit("/remind 10m")
        assert "looks like a command" in kit.submit("/remind 10m /clear")
        assert kit.waiting() == []


async def test_an_idle_session_starts_a_turn_with_a_reminder_at_its_time(tmp_path: Path) -> None:
    model = ScriptedModel(text("done"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        kit.submit("/remind 1s  look at   the tests")
        started = await kit.wait_for(TurnStarted)
        await kit.wait_idle()
        assert [item.input_text for item in started.inputs] == ["look at   the tests"]
        assert kit.waiting() == []


async def test_a_busy_session_queues_a_reminder_at_its_time(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("reminded")) as busy:
        busy.kit.submit("/remind 1s look")
        assert all(not event.items for event in busy.kit.of(QueueChanged))
        await until(lambda: any(not item.held for item in busy.kit.waiting()))
        assert len(busy.kit.of(TurnStarted)) == 1
        await busy.finish()
        assert [[i.input_text for i in e.inputs] for e in busy.kit.of(TurnStarted)] == [
            ["start"],
            ["look"],
        ]


async def test_a_reminder_that_is_set_is_nothing_that_enter_releases(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: ScriptedModel()) as kit:
        kit.submit("/remind 1h look")
        assert not kit.session.has_held
        assert not kit.session.release_held()
        assert kit.waiting()[0].scheduled


async def test_a_session_that_goes_on_keeps_its_reminders_and_offers_what_was_missed(
    tmp_path: Path,
) -> None:
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: ScriptedModel(text("hello"))) as kit:
        await kit.run("hi")
        kit.submit("/remind 1h to come")
        missed = At(datetime.now().astimezone() + timedelta(seconds=1))
        kit.engine.session_queue.rewake.schedule(Wakeup("missed", kit.engine.context_id), missed)
        kit.engine.session_queue.rewake.close()
        assert await kit.close() == ["to come", "missed"]
    await until(lambda: datetime.now().astimezone() > missed.instant)
    resumed = replace(launch, session=SessionStart.LATEST)
    async with open_session(resumed, lambda _: ScriptedModel()) as kit:
        table = await kit.wait_for(CommandTable)
        assert [row[3] for row in table.rows] == ["missed"]
        assert any("1 reminder is still set" in notice.text for notice in kit.of(Notice))
        assert kit.session.has_held
        kit.submit("/remind")
        assert [row[2] for row in kit.of(CommandTable)[-1].rows] == ["to come"]
        assert kit.of(TurnStarted) == []
