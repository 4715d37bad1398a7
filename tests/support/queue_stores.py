"""A place for a queue repository, of each kind, that several repositories can be opened on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from midturn_core.ids import new_id
from midturn_core.queue.claim_owner import ClaimOwner
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.redis import open_redis_repository
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.sqlite import open_sqlite_repository

KINDS = ("memory", "redis", "sqlite")
SHARED_KINDS = ("redis", "sqlite")


def open_repository(kind: str, address: str, owner: ClaimOwner) -> MessageQueueRepository:
    """``address`` is the file of SQLite, or URL and namespace of Redis."""
    if kind == "sqlite":
        return open_sqlite_repository(Path(address), owner=owner, durable=False)
    url, namespace = address.split("#")
    return open_redis_repository(url, namespace=namespace, owner=owner)


@dataclass
class QueueStore:
    """Repositories on one store are like processes that share it."""

    kind: str
    address: str
    owners: Path
    _opened: list[tuple[MessageQueueRepository, ClaimOwner]] = field(
        default_factory=list[tuple[MessageQueueRepository, ClaimOwner]]
    )

    @property
    def shared(self) -> bool:
        return self.kind in SHARED_KINDS

    def open(self) -> MessageQueueRepository:
        """A further repository, with an owner of its own; memory has only one."""
        if not self.shared and self._opened:
            return self._opened[0][0]
        owner = ClaimOwner(self.owners)
        repository = (
            open_repository(self.kind, self.address, owner)
            if self.shared
            else InMemoryMessageQueueRepository()
        )
        self._opened.append((repository, owner))
        return repository

    def crash(self, repository: MessageQueueRepository) -> None:
        """Leave what a killed process leaves: the trace of an owner without its lock."""
        owner = next(owner for known, owner in self._opened if known is repository)
        owner.close()
        self.owners.mkdir(exist_ok=True)
        (self.owners / owner.token).touch()

    def close(self) -> None:
        for repository, _ in self._opened:
            repository.close()


def store_maker(kind: str, folder: Path, redis_url: Callable[[], str]) -> Callable[[], QueueStore]:
    """Makes stores that are new and empty."""

    def make() -> QueueStore:
        name = new_id("store")
        if kind == "redis":
            return QueueStore(kind, f"{redis_url()}#test:{name}", folder / f"{name}-owners")
        return QueueStore(
            kind, str(folder / name / "queue.sqlite3"), folder / name / "queue.sqlite3-owners"
        )

    return make
