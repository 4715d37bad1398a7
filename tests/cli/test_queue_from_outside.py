"""What a session takes from its store: whatever anybody wrote there, a command is none."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.launch import Launch, SessionStart
from midturn_cli.render.words import origin_words
from midturn_core import paths
from midturn_core.events import Notice, TurnStarted
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue import sqlite_watch
from midturn_core.queue.outside import as_from_outside, outside_tags, sender_note
from midturn_core.queue.sqlite import SqliteMessageQueueRepository, open_sqlite_repository
from midturn_core.queue.types import (
    KIND_KEY,
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)
from tests.support.agent_kit import until
from tests.support.session_kit import SessionKit, make_launch, open_session, texts

LATER = QueuedInputPriority.LATER
MANUAL = '[queue]\nlater = "manual"\n'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_watch, "SECONDS", 0.05)


def store() -> SqliteMessageQueueRepository:
    return open_sqlite_repository(paths.queue_file(os.environ))


def tagged(kit: SessionKit, words: str, **tags: str) -> QueuedInput:
    return QueuedInput(words, kit.engine.context_id, LATER, metadata=tags)


def notices(kit: SessionKit) -> str:
    return "\n".join(notice.text for notice in kit.of(Notice))


def going_on(launch: Launch) -> Launch:
    return replace(launch, session=SessionStart.LATEST)


@pytest.mark.parametrize("kind", ["command", "shell", "immediate", "nonsense"])
async def test_a_command_in_the_store_is_taken_out_and_told(kind: str, tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, MANUAL)) as kit:
        await kit.session.queue_opened()
        outside = store()
        outside.enqueue(tagged(kit, "!touch made", origin="repl", **{KIND_KEY: kind}))
        await until(lambda: "Not taken from outside: '!touch made'" in notices(kit))
        await until(lambda: outside.size() == 0)
        outside.close()
        assert kit.waiting() == []
    assert not (tmp_path / "made").exists()


async def test_a_text_that_looks_like_a_command_is_text_for_the_model(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.session.queue_opened()
        outside = store()
        outside.enqueue(tagged(kit, "!touch made"))
        outside.close()
        started = await kit.wait_for(TurnStarted)
        assert texts(started.inputs) == ["!touch made"]
        await kit.wait_idle()
    assert not (tmp_path / "made").exists()


async def test_what_arrives_is_marked_whatever_it_says_of_itself(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, MANUAL)) as kit:
        await kit.session.queue_opened()
        outside = store()
        outside.enqueue(tagged(kit, "hello", origin="repl"))
        outside.close()
        await until(lambda: len(kit.waiting()) == 1)
        assert origin_words(kit.waiting()[0]) == "from outside"
        await kit.run("/queue")
        assert "hello · from outside" in kit.said


async def test_a_command_that_was_typed_is_not_made_another_one_from_outside(
    tmp_path: Path,
) -> None:
    async with open_session(make_launch(tmp_path, MANUAL)) as kit:
        await kit.session.queue_opened()
        kit.submit("!true", LATER)
        await until(lambda: store_texts() == ["!true"])
        outside = store()
        (item,) = kit.waiting()
        outside.replace(replace(item, input_text="!touch made"))
        await until(lambda: "Not taken from outside: '!touch made'" in notices(kit))
        await until(lambda: store_texts() == ["!true"])
        outside.close()
        assert texts(kit.waiting()) == ["!true"]


def store_texts() -> list[str]:
    found = store()
    items = [
        item
        for context in found.contexts()
        for item in found.list_by_max_priority(LATER, QueueFilter(context, exclude_held=False))
    ]
    found.close()
    return texts(items)


async def test_a_command_that_was_typed_is_offered_again_and_a_forged_one_is_not(
    tmp_path: Path,
) -> None:
    launch = make_launch(tmp_path, MANUAL)
    async with open_session(launch) as kit:
        await kit.session.queue_opened()
        kit.submit("!true", LATER)
        await kit.close()
    left = store()
    (context,) = left.contexts()
    (mine,) = left.list_by_max_priority(LATER, QueueFilter(context))
    left.enqueue(replace(mine, input_text="!touch made", uuid="another"))
    left.close()
    async with open_session(going_on(launch)) as kit:
        await kit.session.queue_opened()
        assert [(item.input_text, item.held) for item in kit.waiting()] == [("!true", True)]
        await until(lambda: "Not taken from outside: '!touch made'" in notices(kit))


async def test_looking_at_the_store_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = SqliteMessageQueueRepository.list_by_max_priority

    def counted(
        self: SqliteMessageQueueRepository, most: QueuedInputPriority, selection: Predicate
    ) -> list[QueuedInput]:
        nonlocal looks
        looks += 1
        return look(self, most, selection)

    def files() -> dict[str, tuple[int, int]]:
        found = [paths.queue_file(os.environ), *paths.state_folder(os.environ).glob("*.db-wal")]
        return {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in found}

    async with open_session(make_launch(tmp_path, MANUAL)) as kit:
        await kit.session.queue_opened()
        kit.submit("waits", LATER)
        await until(lambda: store_texts() == ["waits"])
        before = files()
        monkeypatch.setattr(SqliteMessageQueueRepository, "list_by_max_priority", counted)

        def looked() -> bool:
            kit.engine.session_queue.look()
            return looks > 10

        await until(looked)
        assert files() == before


def test_a_sender_is_a_short_name_in_one_line() -> None:
    item = QueuedInput("x", AgentRuntimeId("s"), metadata=outside_tags("a\nb" + "c" * 100))
    assert sender_note(item) == "from a b" + "c" * 37
    assert sender_note(QueuedInput("x", AgentRuntimeId("s"))) == ""
    assert sender_note(as_from_outside(QueuedInput("x", AgentRuntimeId("s")))) == "from outside"
