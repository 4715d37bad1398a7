"""Which store the configuration asks for, and opening it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit, urlunsplit

from midturn_core.config import QueueConfig
from midturn_core.queue.repository import MessageQueueRepository


def store_opener(
    config: QueueConfig, default_file: Path
) -> Callable[[], MessageQueueRepository] | None:
    """Opens the store, and raises ``QueueStoreError`` while it cannot; None: inputs wait in memory
    only.
    """
    match config.backend:
        case "memory":
            return None
        case "sqlite":
            return partial(_open_sqlite, Path(config.path) if config.path else default_file)
        case "redis":
            return partial(_open_redis, config.url, default_file)
        case _:
            assert_never(config.backend)


def store_name(config: QueueConfig, default_file: Path) -> str:
    """Which store it is, without credentials: whoever wants to reach an input must use the same."""
    match config.backend:
        case "memory":
            return "memory"
        case "sqlite":
            return str(Path(config.path).absolute() if config.path else default_file)
        case "redis":
            address = urlsplit(config.url)
            host = address.netloc.rpartition("@")[2]
            return urlunsplit((address.scheme, host, address.path, "", ""))
        case _:
            assert_never(config.backend)


def _open_sqlite(path: Path) -> MessageQueueRepository:
    # Imported here: sqlite3 costs start-up time, and this runs on a thread of the store's.
    from midturn_core.queue.sqlite import open_sqlite_repository

    return open_sqlite_repository(path)


def _open_redis(url: str, default_file: Path) -> MessageQueueRepository:
    from midturn_core.queue.claim_owner import ClaimOwner
    from midturn_core.queue.redis import open_redis_repository

    # The lock files let another run on this machine see at once that this one died.
    owner = ClaimOwner(default_file.with_name("queue-redis-owners"))
    return open_redis_repository(url, owner=owner)
