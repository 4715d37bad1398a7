"""/queue edit, mv, now, next, later, hold, release, log, restore and discard."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from midturn_cli.commands.queue_log import outcome
from midturn_cli.ui_events import CommandOutput, CommandTable
from midturn_core.events import TurnStarted
from midturn_core.queue.receipts import Receipt, ReceiptState
from midturn_core.queue.types import QueuedInputPriority
from tests.support.agent_kit import until
from tests.support.busy_session import BusySession, busy_session
from tests.support.scripted_model import text
from tests.support.session_kit import texts

NOW, NEXT, LATER = QueuedInputPriority
CALM = "[queue]\nnow_hastens = false\n"
SHORT = "[queue]\nttl = 1\n"


def lines(busy: BusySession) -> list[tuple[str, str]]:
    return [(item.priority.name, item.input_text) for item in busy.kit.waiting()]


def fill(busy: BusySession) -> None:
    for words in ("one", "two", "three"):
        busy.kit.submit(words)
    busy.kit.submit("afterwards", LATER)


async def test_edit_with_a_text_changes_it_in_place(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        fill(busy)
        before = [item.uuid for item in busy.kit.waiting()]
        busy.kit.submit("/queue edit 2 TWO  with\ntwo lines")
        assert lines(busy)[1] == ("NEXT", "TWO  with\ntwo lines")
        assert [item.uuid for item in busy.kit.waiting()] == before
        await busy.finish()
        assert "TWO  with\ntwo lines" in busy.sent_texts()


async def test_a_huge_line_is_shortened_where_it_is_edited_and_removed(tmp_path: Path) -> None:
    huge = "word " * 40_000
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("one")
        busy.kit.submit(f"/queue edit 1 {huge}")
        assert busy.kit.waiting()[0].input_text == huge.strip()
        busy.kit.submit("/queue rm 1")
        edited, removed = [output.text for output in busy.kit.of(CommandOutput)[-2:]]
        assert edited.startswith("Number 1 is now: word word")
        assert removed.startswith("Removed, never sent: word word")
        assert max(len(edited), len(removed)) < 400
        assert edited.endswith("…") and removed.endswith("…")


async def test_edit_without_a_text_asks_the_input_line(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        fill(busy)
        busy.kit.submit("/queue edit 2")
        assert busy.kit.host.edited == [busy.kit.waiting()[1].uuid]
        busy.kit.host.has_input_line = False
        busy.kit.submit("/queue edit 2")
        assert "/queue edit 2 TEXT" in busy.kit.errors[-1]
        await busy.finish()


async def test_a_line_edited_into_a_command_runs_as_one(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        busy.kit.submit("one")
        busy.kit.submit("/queue edit 1 /nonsense")
        assert "There is no command /nonsense" in busy.kit.errors[-1]
        busy.kit.submit("/queue edit 1 !echo from the shell")
        (item,) = busy.kit.waiting()
        assert not item.is_prompt
        await busy.finish()
        assert all("from the shell" not in sent for sent in busy.sent_texts())


async def test_mv_goes_to_the_place_of_the_other_in_both_directions(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        fill(busy)
        busy.kit.submit("/queue mv 3 1")
        assert texts(busy.kit.waiting())[:3] == ["three", "one", "two"]
        busy.kit.submit("/queue")
        busy.kit.submit("/queue mv 1 3")
        assert texts(busy.kit.waiting())[:3] == ["one", "two", "three"]
        busy.kit.submit("/queue mv 1 4")
        assert "/queue later 1 changes the tier" in busy.kit.errors[-1]
        await busy.finish()


async def test_the_tier_words_move_a_line_to_the_end_of_that_tier(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b"), toml=CALM) as busy:
        fill(busy)
        busy.kit.submit("/queue")
        for line in ("/queue now 2", "/queue later 1", "/queue next 4"):
            busy.kit.submit(line)
        assert lines(busy) == [
            ("NOW", "two"),
            ("NEXT", "three"),
            ("NEXT", "afterwards"),
            ("LATER", "one"),
        ]
        await busy.finish()


async def test_one_line_can_be_held_and_released(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        busy.kit.submit("one")
        busy.kit.submit("two")
        busy.kit.submit("/queue hold 1")
        await busy.finish()
        assert texts(busy.kit.waiting()) == ["one"]
        busy.kit.submit("/queue release 1")
        await busy.kit.wait_idle()
        assert busy.kit.waiting() == []
        assert "one" in busy.sent_texts()


async def test_everything_can_be_held(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        fill(busy)
        busy.kit.submit("/queue hold")
        await busy.finish()
        assert [item.held for item in busy.kit.waiting()] == [True] * 4
        assert len(busy.kit.of(TurnStarted)) == 1
        busy.kit.submit("/queue hold")
        assert "Nothing was on its way" in busy.kit.errors[-1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/queue edit", "/queue edit needs one number"),
        ("/queue edit x TEXT", "must be a whole number from 1 up"),
        ("/queue mv 1", "/queue mv needs two numbers"),
        ("/queue mv 1 2 3", "/queue mv needs two numbers"),
        ("/queue mv 1 9", "There is no number 9: the list ends at 1"),
        ("/queue now", "/queue now needs one number"),
        ("/queue hold 2", "There is no number 2"),
        ("/queue release 1", "Number 1 is not held"),
        ("/queue restore", "Nothing has expired"),
        ("/queue discard 1", "Nothing has expired"),
    ],
)
async def test_a_wrong_use_is_an_error_that_changes_nothing(
    line: str, says: str, tmp_path: Path
) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("one")
        busy.kit.submit(line)
        assert says in busy.kit.errors[0]
        assert lines(busy) == [("NEXT", "one")]
        await busy.finish()


async def test_the_log_has_one_row_for_each_line_that_waited(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b")) as busy:
        busy.kit.submit("/queue log")
        assert "Nothing has waited" in busy.kit.said
        fill(busy)
        busy.kit.submit("/queue rm 2")
        await busy.finish()
        busy.kit.submit("/queue log")
        rows = busy.kit.of(CommandTable)[-1].rows
        assert [(row[1], row[2], row[4]) for row in rows] == [
            ("NEXT", "absorbed at the turn's end", "one"),
            ("NEXT", "cancelled", "two"),
            ("NEXT", "absorbed at the turn's end", "three"),
            ("LATER", "its own turn", "afterwards"),
        ]
        assert all(row[3].endswith("s") for row in rows)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ReceiptState.WAITING, "waiting"),
        (ReceiptState.DELIVERED, "delivered after step 3 (Read, Grep)"),
        (ReceiptState.EXPIRED, "expired"),
        (ReceiptState.RESTORED, "expired, restored"),
    ],
)
def test_states_in_words(state: ReceiptState, words: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    receipt = Receipt("u", "x", NEXT, start, state, None, 3, ("Read", "Grep"))
    assert outcome(receipt) == words


async def test_an_expired_line_is_told_listed_and_can_be_restored(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a"), text("b"), toml=SHORT) as busy:
        busy.kit.submit("one")
        busy.kit.submit("two")
        await until(lambda: "Expired after 1 s (queue.ttl), not sent: two" in notices(busy))
        busy.kit.submit("/queue")
        table = busy.kit.of(CommandTable)[-1]
        assert table.title == "Expired, not sent"
        assert [(row[0], row[3]) for row in table.rows] == [("1", "one"), ("2", "two")]
        busy.kit.submit("/queue restore 2")
        assert texts(busy.kit.waiting()) == ["two"]
        busy.kit.submit("/queue discard")
        assert "Discarded, never sent" in busy.kit.said
        await busy.finish()
        assert "two" in busy.sent_texts()
        assert "one" not in busy.sent_texts()
        busy.kit.submit("/queue log")
        rows = busy.kit.of(CommandTable)[-1].rows
        assert [(row[2], row[4]) for row in rows] == [
            ("expired", "one"),
            ("expired, restored", "two"),
            ("absorbed at the turn's end", "two"),
        ]


def notices(busy: BusySession) -> str:
    return "\n".join(map(repr, busy.kit.events))
