"""What an earlier run left is offered when the store tells of it, and nothing waits for that."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli import session_queue
from midturn_cli.launch import Launch, SessionStart
from midturn_cli.outside_queue import running_sessions
from midturn_core import paths
from midturn_core.config import QueueConfig
from midturn_core.errors import QueueStoreError
from midturn_core.events import Notice
from midturn_core.queue import store_client
from midturn_core.queue.open_store import store_opener
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import QueuedInputPriority
from tests.support.agent_kit import DEADLINE, until
from tests.support.session_kit import SessionKit, make_launch, open_session, texts

MANUAL = '[queue]\nlater = "manual"\n'
TABLE = "Left from last time, held"


class SlowOpener:
    """Opens the configured store once the latch is open; until then it waits, or fails."""

    def __init__(self, *, fails: bool) -> None:
        self.latch = threading.Event()
        self._fails = fails

    def opener(
        self, config: QueueConfig, default_file: Path
    ) -> Callable[[], MessageQueueRepository]:
        opened = store_opener(config, default_file)
        assert opened is not None

        def open_store() -> MessageQueueRepository:
            if self._fails and not self.latch.is_set():
                raise QueueStoreError("it is broken", where="the test", way_out="mend it")
            assert self.latch.wait(DEADLINE)
            return opened()

        return open_store


async def launch_with_leftovers(workspace: Path, *left: str) -> Launch:
    launch = make_launch(workspace, MANUAL)
    async with open_session(launch) as kit:
        await kit.session.queue_opened()
        for words in left:
            kit.submit(words, QueuedInputPriority.LATER)
        await kit.close()
    return replace(launch, session=SessionStart.LATEST)


def offered(kit: SessionKit) -> bool:
    return TABLE in kit.said


def is_seen(kit: SessionKit) -> bool:
    return kit.engine.session.id in {session.id for session in running_sessions().list()}


@pytest.mark.parametrize("fails", [False, True])
async def test_what_was_left_is_offered_however_late_the_store_answers(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = await launch_with_leftovers(tmp_path, "one", "two")
    slow = SlowOpener(fails=fails)
    monkeypatch.setattr(session_queue, "store_opener", slow.opener)
    monkeypatch.setattr(store_client, "ANSWER_SECONDS", 0.05)
    async with open_session(launch) as kit:
        await kit.session.queue_opened()
        await until(lambda: is_seen(kit))
        kit.submit("typed meanwhile", QueuedInputPriority.LATER)
        assert not offered(kit)
        slow.latch.set()
        await until(lambda: offered(kit))
        assert [(item.input_text, item.held) for item in kit.waiting()] == [
            ("one", True),
            ("two", True),
            ("typed meanwhile", False),
        ]
        assert "1 | LATER" in kit.said and "2 | LATER" in kit.said and "3 |" not in kit.said


async def test_a_store_that_answers_at_once_offers_before_others_can_send(tmp_path: Path) -> None:
    launch = await launch_with_leftovers(tmp_path, "one")
    async with open_session(launch) as kit:
        await until(lambda: is_seen(kit))
        assert texts(kit.waiting()) == ["one"]


async def test_leaving_while_a_store_fails_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowOpener(fails=True)
    monkeypatch.setattr(session_queue, "store_opener", slow.opener)
    async with open_session(make_launch(tmp_path, MANUAL)) as kit:
        await until(lambda: any("in memory only" in notice.text for notice in kit.of(Notice)))
        kit.submit("typed", QueuedInputPriority.LATER)
        assert await kit.close() == ["typed"]
        assert kit.session.lost == ("typed",)
    assert not paths.queue_file(os.environ).exists()
