"""Redis: nothing is lost or doubled when answers are, and every failure is told."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.queue.events import QueueEvent
from midturn_core.queue.redis import RedisMessageQueueRepository, open_redis_repository
from midturn_core.queue.types import HELD_KEY, Predicate, QueuedInput, QueueFilter
from tests.support.lossy_proxy import LossyProxy
from tests.support.redis_server import RedisServer, free_port, running_redis

DEADLINE = 30.0
MAIN = AgentRuntimeId("s1", "main")
ALL = QueueFilter(MAIN)


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server.port) as running:
        yield running


@pytest.fixture
def repository(proxy: LossyProxy) -> Iterator[RedisMessageQueueRepository]:
    opened = open_redis_repository(
        f"redis://127.0.0.1:{proxy.port}", namespace=new_id("test"), reply_seconds=2.0
    )
    yield opened
    opened.close()


def put(repository: RedisMessageQueueRepository, *names: str) -> list[QueuedInput]:
    items = [QueuedInput(name, MAIN) for name in names]
    for item in items:
        assert repository.enqueue(item)
    return items


def refusal(url: str) -> QueueStoreError:
    with pytest.raises(QueueStoreError) as caught:
        open_redis_repository(url, reply_seconds=0.5).size()
    return caught.value


def test_an_enqueue_whose_answer_is_lost_stores_once(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    item = QueuedInput("the text", MAIN)
    proxy.lose_answers_to(b"the text")
    assert repository.enqueue(item)
    assert proxy.still_to_lose == 0
    assert repository.drain(ALL) == [item]
    assert repository.size() == 0


def test_an_input_that_was_delivered_before_the_second_try_is_not_stored_again(
    repository: RedisMessageQueueRepository, proxy: LossyProxy, redis_server: RedisServer
) -> None:
    item = QueuedInput("the text", MAIN)
    consumer = open_redis_repository(redis_server.url, namespace=repository.namespace)
    delivered: list[QueuedInput] = []
    proxy.lose_answers_to(b"the text", then=lambda: delivered.extend(consumer.drain(ALL)))
    assert repository.enqueue(item)
    assert delivered == [item]
    assert repository.size() == 0
    consumer.close()


def test_an_enqueue_with_an_unknown_outcome_can_be_repeated(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    item = QueuedInput("the text", MAIN)
    proxy.lose_answers_to(b"the text", 2)
    with pytest.raises(QueueStoreError):
        repository.enqueue(item)
    assert not repository.enqueue(item)
    assert repository.drain(ALL) == [item]


@pytest.mark.parametrize("predicate", [ALL, ALL.__call__])
def test_a_drain_whose_answer_is_lost_returns_everything_once(
    repository: RedisMessageQueueRepository, proxy: LossyProxy, predicate: Predicate
) -> None:
    items = put(repository, "a", "b")
    proxy.lose_answers_to(b"claim-")
    assert repository.drain(predicate) == items
    assert proxy.still_to_lose == 0
    assert repository.size() == 0
    assert repository.drain(predicate) == []


def test_a_request_that_arrives_once_more_much_later_changes_nothing(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    first, _ = put(repository, "the text", "another")
    assert repository.dequeue(ALL) == first
    for word in (b"the text", b"claim-", first.uuid.encode()):
        proxy.repeat(word)
    assert [item.input_text for item in repository.drain(ALL)] == ["another"]


def test_a_callable_takes_nothing_that_changed_after_it_was_asked(
    repository: RedisMessageQueueRepository, redis_server: RedisServer
) -> None:
    other = open_redis_repository(redis_server.url, namespace=repository.namespace)
    held, free = put(repository, "held meanwhile", "free")

    def hold_first(item: QueuedInput) -> bool:
        if item == held:
            assert other.replace(dataclasses.replace(item, metadata={HELD_KEY: "1"}))
        return True

    assert repository.drain(hold_first) == [free]
    assert repository.size() == 1
    assert repository.dequeue(hold_first) is None
    other.close()


def test_a_remove_whose_answer_is_lost_knows_that_it_removed(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    (item,) = put(repository, "a")
    proxy.lose_answers_to(b"claim-")
    assert repository.remove(item.uuid)
    assert not repository.remove(item.uuid)


def test_what_a_drain_took_that_never_got_an_answer_waits_again(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    items = put(repository, "a", "b")
    proxy.lose_answers_to(b"claim-", 2)
    with pytest.raises(QueueStoreError, match="cannot be reached"):
        repository.drain(ALL)
    assert repository.size() == 2
    assert repository.drain(ALL) == items


def test_a_drain_that_cannot_be_confirmed_still_delivers_once(
    repository: RedisMessageQueueRepository, proxy: LossyProxy
) -> None:
    (item,) = put(repository, "a")
    proxy.lose_answers_to(item.uuid.encode(), 2)
    assert repository.drain(ALL) == [item]
    assert proxy.still_to_lose == 0
    assert repository.size() == 0
    assert repository.drain(ALL) == []


def test_a_server_that_forgot_the_scripts_is_told_them_again(
    repository: RedisMessageQueueRepository, redis_server: RedisServer
) -> None:
    put(repository, "a")
    redis_server.say("SCRIPT FLUSH")
    put(repository, "b")
    assert [item.input_text for item in repository.drain(ALL)] == ["a", "b"]


def test_a_claim_from_another_machine_comes_back_after_its_lease(
    redis_server: RedisServer,
) -> None:
    def opened(lease_seconds: float) -> RedisMessageQueueRepository:
        return open_redis_repository(
            redis_server.url, namespace=namespace, lease_seconds=lease_seconds
        )

    namespace = new_id("test")
    patient, hasty, third = opened(600.0), opened(0.1), opened(600.0)
    kept, lost = put(patient, "kept", "lost")
    patient.claim(lambda item: item == kept)
    hasty.claim(ALL)
    back: list[QueuedInput] = []
    until = time.monotonic() + DEADLINE
    while not back and time.monotonic() < until:
        back = third.recover(MAIN)
    assert back == [lost]
    assert third.recover(MAIN) == []
    for repository in (patient, hasty, third):
        repository.close()


def test_a_restarted_server_is_used_again() -> None:
    with running_redis() as server:
        repository = open_redis_repository(server.url)
        put(repository, "a")
        server.kill()
        with pytest.raises(QueueStoreError) as caught:
            repository.size()
        assert f"127.0.0.1:{server.port}" in caught.value.where
        assert "start the server" in caught.value.way_out
        server.start()
        put(repository, "b")
        assert [item.input_text for item in repository.drain(ALL)] == ["b"]
        repository.close()


def test_hints_come_again_after_a_restart() -> None:
    with running_redis() as server:
        mine, other = open_redis_repository(server.url), open_redis_repository(server.url)
        heard: list[str] = []
        unsubscribe = mine.subscribe(Hearing(heard.append))
        server.kill()
        server.start()
        until = time.monotonic() + DEADLINE
        while not heard and time.monotonic() < until:
            put(other, "again")
        assert heard
        unsubscribe()
        mine.close()
        other.close()


class Hearing:
    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear

    def on_event(self, event: QueueEvent) -> None:
        self._hear(event.input.input_text)


def test_a_password_is_needed_and_never_shown() -> None:
    with running_redis("--requirepass", "right") as server:
        assert "password" in refusal(server.url).problem
        wrong = refusal(f"redis://:wrong-secret@127.0.0.1:{server.port}")
        assert "password" in wrong.problem
        assert "wrong-secret" not in str(wrong)
        repository = open_redis_repository(f"redis://:right@127.0.0.1:{server.port}")
        put(repository, "a")
        repository.close()


def test_a_full_server_is_told() -> None:
    with running_redis("--maxmemory", "1") as server:
        repository = open_redis_repository(server.url)
        with pytest.raises(QueueStoreError, match="memory is full"):
            put(repository, "a")
        repository.close()


def test_a_server_that_speaks_no_tls_is_told(redis_server: RedisServer) -> None:
    error = refusal(f"rediss://user:secret@127.0.0.1:{redis_server.port}")
    assert "secret" not in str(error)
    assert str(redis_server.port) in error.where


@pytest.mark.parametrize("url", ["", "localhost:6379", "http://localhost", "redis://host:port"])
def test_an_address_that_cannot_be_understood_is_told(url: str) -> None:
    assert "redis://host" in refusal(url).way_out


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    error = refusal(f"redis://user:secret@127.0.0.1:{free_port()}/3")
    assert "secret" not in str(error)
    assert "/3" in error.where


def test_without_the_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "midturn_core.queue.redis_client", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    assert "midturn[redis]" in refusal("redis://localhost").way_out
