"""The store as a running session uses it: nothing waits for one that is slow or broken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from midturn_core.errors import QueueStoreError, QueueStoreGoneError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue import store_client
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.store_client import StoreClient
from midturn_core.queue.store_link import StoreLink

DEADLINE = 30.0
MAIN = AgentRuntimeId("s1", "main")


class Opener:
    """Opens a new store each time, while it is not broken."""

    def __init__(self) -> None:
        self.opened: list[MessageQueueRepository] = []
        self.broken = False

    def __call__(self) -> MessageQueueRepository:
        if self.broken:
            raise QueueStoreError("it is broken", where="the test", way_out="mend it")
        self.opened.append(InMemoryMessageQueueRepository())
        return self.opened[-1]


def nothing() -> None:
    pass


@asynccontextmanager
async def client_of(
    opener: Callable[[], MessageQueueRepository], reopened: Callable[[], None] = nothing
) -> AsyncGenerator[StoreClient]:
    client = StoreClient(StoreLink(opener, MAIN, nothing), reopened, lambda _: None, (0.01,))
    yield client
    await client.close(DEADLINE)


async def test_a_question_to_a_slow_store_has_an_answer_in_time_and_is_carried_out_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_client, "ANSWER_SECONDS", 0.01)
    slow, asked = threading.Event(), threading.Event()

    def find() -> str:
        assert slow.wait(DEADLINE)
        asked.set()
        return "found"

    async with client_of(Opener()) as client:
        assert await client.ask(find, "otherwise") == "otherwise"
        slow.set()
        assert await asyncio.to_thread(asked.wait, DEADLINE)


async def test_a_store_that_begins_to_fail_answers_whoever_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_client, "ANSWER_SECONDS", DEADLINE)
    opener = Opener()
    opener.broken = True
    async with client_of(opener) as client:
        assert await client.ask(lambda: client.store.size(), -1) == -1
        assert client.trouble is not None
        assert await client.ask(lambda: client.store.size(), -1) == -1
        opener.broken = False


async def test_a_call_has_its_answer_however_late() -> None:
    opener = Opener()
    opener.broken = True
    async with client_of(opener) as client:
        answer = client.call(lambda: client.store.size())
        assert await client.ask(lambda: True, False) is False
        assert not answer.done()
        opener.broken = False
        assert await asyncio.wait_for(answer, DEADLINE) == 0


async def test_a_store_that_was_taken_away_is_opened_anew_and_the_job_is_done_there() -> None:
    opener, reopened = Opener(), threading.Event()
    async with client_of(opener, reopened.set) as client:

        def find() -> MessageQueueRepository:
            store = client.store
            if store is opener.opened[0]:
                raise QueueStoreGoneError("it was removed", where="the test", way_out="put it back")
            return store

        found = await asyncio.wait_for(client.call(find), DEADLINE)
        assert found is opener.opened[1]
        assert reopened.is_set()


async def test_jobs_are_done_in_order_and_before_the_close() -> None:
    done: list[int] = []
    async with client_of(Opener()) as client:
        for number in range(100):
            client.submit(partial(done.append, number))
    assert done == list(range(100))


async def test_a_store_that_hangs_at_the_end_holds_nobody_up() -> None:
    ended = threading.Event()

    class Hanging(InMemoryMessageQueueRepository):
        def close(self) -> None:
            assert ended.wait(DEADLINE)

    client = StoreClient(StoreLink(Hanging, MAIN, nothing), nothing, lambda _: None, (0.01,))
    assert await client.ask(lambda: client.store.size(), -1) == 0
    assert not await asyncio.wait_for(client.close(0.01), DEADLINE / 2)
    ended.set()
