"""Hearing that others changed something in a shared store, at no cost while nobody does."""

from __future__ import annotations

import dataclasses
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue import sqlite_watch
from midturn_core.queue.redis import open_redis_repository
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.sqlite import open_sqlite_repository
from midturn_core.queue.types import QueuedInput, QueueFilter
from tests.support.queue_stores import QueueStore
from tests.support.redis_server import RedisServer, running_redis

DEADLINE = 30.0
MAIN = AgentRuntimeId("s1", "main")
OTHER = AgentRuntimeId("s2", "main")
ALL = QueueFilter(MAIN, exclude_held=False)


class Latch:
    """Counts the calls of a watch."""

    def __init__(self) -> None:
        self.calls = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.calls += 1
            self._changed.notify_all()

    def wait_for_another(self, seen: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.calls > seen, DEADLINE)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_watch, "SECONDS", 0.02)


CHANGES: dict[str, Callable[[MessageQueueRepository, QueuedInput, QueuedInput], object]] = {
    "enqueue": lambda other, _one, _two: other.enqueue(QueuedInput("new", MAIN)),
    "remove": lambda other, one, _two: other.remove(one.uuid),
    "edit": lambda other, one, _two: other.replace(dataclasses.replace(one, input_text="other")),
    "hold": lambda other, one, _two: other.replace(one.as_held()),
    "move": lambda other, one, two: other.move(two.uuid, one.uuid),
    "move to the end": lambda other, one, _two: other.move(one.uuid, None),
    "drain": lambda other, _one, _two: other.drain(ALL),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_that_others_make_is_heard(shared_store: QueueStore, change: str) -> None:
    mine, other = shared_store.open(), shared_store.open()
    one, two = QueuedInput("one", MAIN), QueuedInput("two", MAIN)
    assert mine.enqueue(one) and mine.enqueue(two)
    heard = Latch()
    stop = mine.watch(MAIN, heard)
    if shared_store.kind == "sqlite":
        heard.wait_for_another(0)  # the first look at the file
    before = heard.calls
    assert CHANGES[change](other, one, two)
    heard.wait_for_another(before)
    stop()


def test_claims_that_wait_again_are_heard(shared_store: QueueStore) -> None:
    mine, other, dead = (shared_store.open() for _ in range(3))
    mine.enqueue(QueuedInput("one", MAIN))
    dead.claim(ALL)
    shared_store.crash(dead)
    heard = Latch()
    stop = mine.watch(MAIN, heard)
    if shared_store.kind == "sqlite":
        heard.wait_for_another(0)
    before = heard.calls
    assert other.recover(MAIN)
    heard.wait_for_another(before)
    stop()


def test_nothing_is_heard_after_the_end(shared_store: QueueStore) -> None:
    mine, other = shared_store.open(), shared_store.open()
    ended, heard = Latch(), Latch()
    mine.watch(MAIN, ended)()
    seen = ended.calls
    stop = mine.watch(MAIN, heard)
    other.enqueue(QueuedInput("one", MAIN))
    heard.wait_for_another(0)
    stop()
    stop()
    assert ended.calls == seen


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "queue.sqlite3"


def test_a_file_that_nobody_writes_to_is_not_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, looks = Latch(), Latch()
    read, mark = sqlite_watch._data_version, sqlite_watch._mark  # pyright: ignore[reportPrivateUsage]

    def counted_read(connection: sqlite3.Connection) -> int:
        reads()
        return read(connection)

    def counted_mark(path: Path) -> object:
        looks()
        return mark(path)

    monkeypatch.setattr(sqlite_watch, "_data_version", counted_read)
    monkeypatch.setattr(sqlite_watch, "_mark", counted_mark)
    repository = open_sqlite_repository(file)
    repository.enqueue(QueuedInput("one", MAIN))
    repository.watch(MAIN, Latch())
    looks.wait_for_another(4 * sqlite_watch.SETTLING_LOOKS)
    settled = reads.calls
    looks.wait_for_another(looks.calls + 20)
    assert settled == reads.calls == sqlite_watch.SETTLING_LOOKS
    repository.close()


def test_a_change_that_is_taken_long_after_it_was_written_is_heard(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a slow disk: what ``stat`` tells changes once, and the content only later."""
    mine, other = open_sqlite_repository(file), open_sqlite_repository(file)
    monkeypatch.setattr(sqlite_watch, "SETTLING_LOOKS", 1_000_000)
    still = sqlite_watch._Mark(1, 1, 1)  # pyright: ignore[reportPrivateUsage]

    def unchanged(_: Path) -> object:
        return still

    monkeypatch.setattr(sqlite_watch, "_mark", unchanged)
    heard = Latch()
    mine.watch(MAIN, heard)
    heard.wait_for_another(0)
    other.enqueue(QueuedInput("one", MAIN))
    heard.wait_for_another(1)
    mine.close()
    other.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_taken_away_is_heard(file: Path, replaced: bool) -> None:
    repository = open_sqlite_repository(file)
    heard = Latch()
    stop = repository.watch(MAIN, heard)
    heard.wait_for_another(0)
    for each in file.parent.glob("queue.sqlite3*"):
        if each.is_file():
            each.unlink()
    if replaced:
        open_sqlite_repository(file).close()
    heard.wait_for_another(1)
    stop()


def test_a_file_that_cannot_be_read_is_logged_once_and_looked_at_until_it_can(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read, tries = sqlite_watch._data_version, Latch()  # pyright: ignore[reportPrivateUsage]

    def fail_five_times(connection: sqlite3.Connection) -> int:
        tries()
        if tries.calls <= 5:
            raise sqlite3.DatabaseError("disk I/O error")
        return read(connection)

    monkeypatch.setattr(sqlite_watch, "_data_version", fail_five_times)
    repository = open_sqlite_repository(file)
    heard = Latch()
    repository.watch(MAIN, heard)
    heard.wait_for_another(0)
    assert tries.calls > 5
    assert [record.getMessage().partition(" of ")[0] for record in caplog.records] == [
        "cannot look for changes"
    ]
    repository.close()


def test_a_server_that_dies_and_one_that_comes_back_are_heard() -> None:
    with running_redis() as server:
        mine = open_redis_repository(server.url)
        heard = Latch()
        mine.watch(MAIN, heard)
        server.kill()
        heard.wait_for_another(0)
        seen = heard.calls
        server.start()
        heard.wait_for_another(seen)
        mine.close()


def test_a_server_that_hangs_keeps_no_watch_from_ending() -> None:
    with running_redis() as server:
        others = set(threading.enumerate())
        mine = open_redis_repository(server.url)
        stop = mine.watch(MAIN, Latch())
        (watching,) = set(threading.enumerate()) - others
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            stop()
            assert not watching.is_alive()
        finally:
            server.process.send_signal(signal.SIGCONT)
        mine.close()


def test_a_watch_outlives_a_mistake_of_whoever_hears_of_a_change(
    shared_store: QueueStore,
) -> None:
    mine, other = shared_store.open(), shared_store.open()
    heard = Latch()

    def fail_once() -> None:
        heard()
        if heard.calls == 1:
            raise ValueError("a mistake")

    stop = mine.watch(MAIN, fail_once)
    other.enqueue(QueuedInput("one", MAIN))
    heard.wait_for_another(1)  # it looks anew, and says so
    seen = heard.calls
    other.enqueue(QueuedInput("two", MAIN))
    heard.wait_for_another(seen)
    stop()


def test_redis_tells_a_session_neither_its_own_changes_nor_those_of_other_contexts(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    name = f"test:{tmp_path.name}"
    mine = open_redis_repository(redis_server.url, namespace=name)
    other = open_redis_repository(redis_server.url, namespace=name)
    heard = Latch()
    mine.watch(MAIN, heard)
    for item in (QueuedInput("own", MAIN), QueuedInput("changed", MAIN)):
        mine.enqueue(item)
        mine.replace(item.as_held())
        mine.move(item.uuid, None)
    mine.drain(ALL)
    other.enqueue(QueuedInput("elsewhere", OTHER))
    # One connection carries all of them in order, so the first call is this one's.
    other.enqueue(QueuedInput("here", MAIN))
    heard.wait_for_another(0)
    assert heard.calls == 1
    mine.close()
    other.close()
