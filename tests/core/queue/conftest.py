"""Every kind of queue store; Redis is a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from midturn_core.queue.repository import MessageQueueRepository
from tests.support.queue_stores import KINDS, SHARED_KINDS, QueueStore, store_maker
from tests.support.redis_server import RedisServer, redis_server

__all__ = ["make_store", "redis_server", "repository", "shared_store", "store"]


def _maker(kind: str, folder: Path, request: pytest.FixtureRequest) -> Callable[[], QueueStore]:
    def redis_url() -> str:
        server: RedisServer = request.getfixturevalue("redis_server")
        return server.url

    if kind == "redis":
        redis_url()
    return store_maker(kind, folder, redis_url)


@pytest.fixture(params=KINDS)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], QueueStore]:
    return _maker(str(request.param), tmp_path, request)


@pytest.fixture
def store(make_store: Callable[[], QueueStore]) -> Iterator[QueueStore]:
    made = make_store()
    yield made
    made.close()


@pytest.fixture
def repository(store: QueueStore) -> MessageQueueRepository:
    return store.open()


@pytest.fixture(params=SHARED_KINDS)
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QueueStore]:
    made = _maker(str(request.param), tmp_path, request)()
    yield made
    made.close()
