"""A store that fails: the session goes on in memory, says so, and everything gets there later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from midturn_cli import session_queue
from midturn_cli.render.words import NOT_STORED, STORING, queue_notes
from midturn_cli.ui_events import QueueChanged
from midturn_core import paths
from midturn_core.events import Notice
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue import sqlite_watch
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.open_store import store_opener
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from tests.support.agent_kit import until
from tests.support.redis_server import RedisServer, running_redis
from tests.support.scripted_model import ScriptedModel, Step, text
from tests.support.session_kit import SessionKit, make_launch, open_session


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again soon."""
    monkeypatch.setattr(
        session_queue, "RepositoryMirror", partial(RepositoryMirror, pauses=(0.02,))
    )
    monkeypatch.setattr(sqlite_watch, "SECONDS", 0.05)


class Busy:
    """A session whose turn goes on until the test lets it end."""

    def __init__(self, kit: SessionKit, end: asyncio.Event) -> None:
        self.kit = kit
        self.end = end

    def queue(self, words: str) -> None:
        assert self.kit.submit(words, QueuedInputPriority.LATER) == ""

    @property
    def notices(self) -> list[str]:
        return [notice.text for notice in self.kit.of(Notice)]

    @property
    def marks(self) -> dict[str, list[str]]:
        """The notes in the rows of the queue, as they are now."""
        changes = self.kit.of(QueueChanged)
        if not changes:
            return {}
        shown = changes[-1]
        return {
            item.input_text: queue_notes(item, shown.unstored, shown.store_fails)
            for item in shown.items
        }

    async def told(self, words: str) -> None:
        await until(lambda: any(words in notice for notice in self.notices))

    async def marked(self, **wanted: list[str]) -> None:
        await until(lambda: self.marks == wanted)


@asynccontextmanager
async def busy_session(workspace: Path, toml: str) -> AsyncGenerator[Busy]:
    end = asyncio.Event()
    held: list[Step] = [end, *text("done")]
    model = ScriptedModel(held, *(text("more") for _ in range(5)))
    async with open_session(make_launch(workspace, toml), lambda _: model) as kit:
        await kit.session.queue_opened()
        kit.submit("begin")
        await until(lambda: len(model.requests) == 1)
        yield Busy(kit, end)


def stored(busy: Busy) -> list[str]:
    """What another process would find."""
    opener = store_opener(busy.kit.engine.config.queue, paths.queue_file(os.environ))
    assert opener is not None
    repository = opener()
    everything = QueueFilter(busy.kit.engine.context_id, exclude_held=False)
    found = repository.list_by_max_priority(QueuedInputPriority.LATER, everything)
    repository.close()
    return [item.input_text for item in found]


def redis_at(server: RedisServer) -> str:
    return f'[queue]\nbackend = "redis"\nurl = "{server.url}"\n'


async def test_a_server_that_is_not_there_is_told_and_gets_everything_when_it_is(
    tmp_path: Path,
) -> None:
    with running_redis() as server:
        server.kill()
        async with busy_session(tmp_path, redis_at(server)) as busy:
            busy.queue("one")
            await busy.told("is kept in memory only: the queue in Redis at 127.0.0.1:")
            assert any("start the server, or correct queue.url" in n for n in busy.notices)
            await busy.marked(one=[NOT_STORED])
            busy.kit.submit("/queue")
            await until(lambda: "one · not stored" in busy.kit.said)
            await asyncio.to_thread(server.start)
            await busy.told("stored again; nothing is missing")
            await busy.marked(one=[])
            assert stored(busy) == ["one"]


async def test_a_server_that_is_killed_and_comes_back_empty_loses_nothing(tmp_path: Path) -> None:
    with running_redis() as server:
        async with busy_session(tmp_path, redis_at(server)) as busy:
            busy.queue("before")
            await busy.marked(before=[])
            server.kill()
            busy.queue("meanwhile")
            await busy.marked(before=[], meanwhile=[NOT_STORED])
            await asyncio.to_thread(server.start)
            await busy.marked(before=[], meanwhile=[])
            await until(lambda: sorted(stored(busy)) == ["before", "meanwhile"])
            busy.end.set()
            await busy.kit.wait_idle()
            assert busy.kit.waiting() == []


async def test_a_server_that_dies_before_a_delivery_delays_it_by_nothing_but_a_moment(
    tmp_path: Path,
) -> None:
    with running_redis() as server:
        async with busy_session(tmp_path, redis_at(server)) as busy:
            busy.queue("stored")
            await busy.marked(stored=[])
            server.kill()
            busy.end.set()
            await busy.kit.wait_idle()
            assert busy.kit.waiting() == []
            await asyncio.to_thread(server.start)
            await busy.told("stored again")
            # It is in the log, so what a server might still have of it comes back no more.
            await until(lambda: stored(busy) == [])


def open_folder(file: Path) -> None:
    file.parent.chmod(0o755)


def close_folder(file: Path) -> None:
    file.parent.chmod(0o700)


def open_file(file: Path) -> None:
    file.chmod(0o644)


def close_file(file: Path) -> None:
    file.chmod(0o600)


def put_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def damage(file: Path) -> None:
    file.write_bytes(b"no database " * 99)


@pytest.mark.parametrize(
    ("breaks", "mends", "told"),
    [
        (open_folder, close_folder, "chmod 700"),
        (open_file, close_file, "chmod 600"),
        (put_a_folder, Path.rmdir, "it is no file"),
        (damage, Path.unlink, "move it aside"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_with_the_way_out(
    breaks: Callable[[Path], None], mends: Callable[[Path], None], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "private" / "queue.db"
    file.parent.mkdir(mode=0o700)
    file.touch(0o600)
    breaks(file)
    async with busy_session(tmp_path, f'[queue]\npath = "{file}"\n') as busy:
        busy.queue("one")
        await busy.told(told)
        await busy.marked(one=[NOT_STORED])
        mends(file)
        await busy.marked(one=[])
        assert stored(busy) == ["one"]


async def test_a_file_that_is_taken_away_while_it_is_open_is_made_anew_with_all_that_waits(
    tmp_path: Path,
) -> None:
    file = tmp_path / "private" / "queue.db"
    async with busy_session(tmp_path, f'[queue]\npath = "{file}"\n') as busy:
        busy.queue("before")
        await busy.marked(before=[])
        for name in file.parent.glob("queue.db*"):
            if name.is_file():
                name.unlink()
        busy.queue("after")
        await busy.marked(before=[], after=[])
        await until(lambda: stored(busy) == ["before", "after"])
        busy.end.set()
        await busy.kit.wait_idle()
        assert busy.kit.waiting() == []


async def test_what_no_store_has_at_the_end_is_handed_back_whole(tmp_path: Path) -> None:
    file = tmp_path / "private" / "queue.db"
    file.mkdir(parents=True, mode=0o700)
    async with busy_session(tmp_path, f'[queue]\npath = "{file}"\n') as busy:
        busy.queue("one line\nand another")
        await busy.marked(**{"one line\nand another": [NOT_STORED]})
        assert await busy.kit.close() == ["one line\nand another"]
        assert busy.kit.session.lost == ("one line\nand another",)


def test_a_line_is_on_its_way_before_it_is_stored() -> None:
    item = QueuedInput("one", AgentRuntimeId("s"))
    assert queue_notes(item, frozenset({item.uuid}), False) == [STORING]
    assert queue_notes(item, frozenset(), False) == []
