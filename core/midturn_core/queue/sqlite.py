"""The repository of all processes of one user on one machine: one SQLite file, no server."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from midturn_core.errors import QueueFullError, QueueStoreError, QueueStoreGoneError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.claim_owner import ClaimOwner, OwnerState
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.record import (
    context_from_key,
    context_key,
    from_record,
    name_key,
    to_json,
    to_record,
)
from midturn_core.queue.sqlite_file import file_errors, open_queue_file, store_errors, transaction
from midturn_core.queue.sqlite_query import GAP, Taken, place_before, selected
from midturn_core.queue.sqlite_watch import Arrivals, ChangeWatch
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority

BUSY_SECONDS = 5.0


def open_sqlite_repository(
    path: Path,
    *,
    owner: ClaimOwner | None = None,
    busy_seconds: float = BUSY_SECONDS,
    durable: bool = True,
) -> SqliteMessageQueueRepository:
    """Open the file, or make it, with its folder.

    Args:
        path: the file; it and its folder must be private to the user.
        owner: this run of the program; None makes one whose lock files are beside the file.
        busy_seconds: how long to wait for another process's change.
        durable: whether an input survives a power failure as soon as ``enqueue`` returns.

    Raises:
        QueueStoreError: it cannot be used; says why and how to fix it.
    """
    connection = open_queue_file(path, busy_seconds=busy_seconds, durable=durable)
    try:
        with file_errors(path):
            inode = os.stat(path).st_ino
    except QueueStoreError:
        connection.close()  # somebody removed it in this moment
        raise
    run = ClaimOwner(path.with_name(f"{path.name}-owners")) if owner is None else owner
    return SqliteMessageQueueRepository(connection, path, inode, run)


class SqliteMessageQueueRepository:
    """One connection behind one lock; each change is one ``BEGIN IMMEDIATE`` step.

    Not usable in a child made by ``fork`` alone: SQLite forbids to carry a connection over, so
    the child gets an error and opens a repository of its own.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, inode: int, owner: ClaimOwner
    ) -> None:
        self._connection = connection
        self._path = path
        self._owner = owner
        self._process = os.getpid()
        self._inode = inode
        self._lock = threading.Lock()
        self._watches: list[ChangeWatch] = []
        self._closed = False

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        context = context_key(item.context_id)
        row = (name_key(item.uuid), context, *_columns(item), self._owner.token)
        with self._step():
            position = self._end_of_tier(context, item.priority)
            added = self._changed(
                "INSERT INTO inputs"
                " (uuid, context, priority, source, held, prompt, metadata, record, origin,"
                " position) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (uuid) DO NOTHING",
                *row,
                position,
            )
            if added and 0 < cap < self._waiting(context):
                raise QueueFullError(cap)  # which undoes the step
            return added

    def dequeue(self, predicate: Predicate) -> QueuedInput | None:
        with self._step():
            found = selected(self._connection, predicate, limit=1)
            self._delete(found)
            return found[0].item if found else None

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        with self._look():
            found = selected(self._connection, predicate, limit=1)
            return found[0].item if found else None

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        with self._look():
            found = selected(self._connection, predicate, max_priority)
            return [taken.item for taken in found]

    def drain(self, predicate: Predicate) -> list[QueuedInput]:
        with self._step():
            found = selected(self._connection, predicate)
            self._delete(found)
            return [taken.item for taken in found]

    def claim(self, predicate: Predicate) -> list[QueuedInput]:
        with self._step():
            found = selected(self._connection, predicate)
            if found:
                with file_errors(self._path):
                    self._owner.announce()
            self._connection.executemany(
                "UPDATE inputs SET owner = ? WHERE number = ?",
                [(self._owner.token, taken.number) for taken in found],
            )
            return [taken.item for taken in found]

    def confirm(self, uuids: Iterable[str]) -> None:
        mine = [(name_key(uuid), self._owner.token) for uuid in uuids]
        with self._step():
            self._connection.executemany(
                "DELETE FROM inputs WHERE uuid = ? AND (owner IS NULL OR owner = ?)", mine
            )

    def unclaim(self, uuids: Iterable[str]) -> None:
        mine = [(name_key(uuid), self._owner.token) for uuid in uuids]
        with self._step():
            self._connection.executemany(
                "UPDATE inputs SET owner = NULL WHERE uuid = ? AND owner = ?", mine
            )

    def recover(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        with self._step():
            rows = self._connection.execute(
                "SELECT number, record, owner FROM inputs"
                " WHERE context = ? AND owner IS NOT NULL ORDER BY priority, position",
                (context_key(context_id),),
            ).fetchall()
            # An owner that left no trace has no lock, so it cannot be alive.
            dead = {
                owner
                for owner in {row[2] for row in rows}
                if self._owner.state_of(owner) is not OwnerState.ALIVE
            }
            back = [row for row in rows if row[2] in dead]
            self._connection.executemany(
                "UPDATE inputs SET owner = NULL WHERE number = ?", [(row[0],) for row in back]
            )
            return [from_record(row[1]) for row in back]

    def get(self, uuid: str) -> QueuedInput | None:
        with self._look():
            found = self._connection.execute(
                "SELECT record FROM inputs WHERE uuid = ? AND owner IS NULL", (name_key(uuid),)
            ).fetchone()
            return None if found is None else from_record(found[0])

    def remove(self, uuid: str) -> bool:
        with self._step():
            return self._changed(
                "DELETE FROM inputs WHERE uuid = ? AND owner IS NULL", name_key(uuid)
            )

    def replace(self, item: QueuedInput) -> bool:
        with self._step():
            return self._replace(item)

    def replace_all(self, items: Sequence[QueuedInput]) -> int:
        with self._step():
            return sum(self._replace(item) for item in items)

    def move(self, uuid: str, before: str | None) -> bool:
        with self._step():
            place = self._place(uuid)
            if place is None:
                return False
            if before is None:
                position = self._end_of_tier(place.context, place.priority)
            else:
                target = self._place(before)
                if target is None or uuid == before or target.tier != place.tier:
                    return False
                position = place_before(self._connection, *place.tier, target.number)
            return self._changed(
                "UPDATE inputs SET position = ? WHERE number = ?", position, place.number
            )

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        with self._look():
            return self._waiting(None if context_id is None else context_key(context_id))

    def generation(self) -> str:
        # What is open stays what it is; whoever opens the path anew may find another file.
        return self._owner.token

    def contexts(self) -> list[AgentRuntimeId]:
        with self._look():
            found = self._connection.execute("SELECT DISTINCT context FROM inputs").fetchall()
            return [context_from_key(row[0]) for row in found]

    def watch(self, context_id: AgentRuntimeId, changed: Callable[[], None]) -> Callable[[], None]:
        """As the protocol says; any change of the file is told, its own and other contexts' too."""
        return self._watched(changed)

    def subscribe(self, listener: MessageQueueListener) -> Callable[[], None]:
        with self._look():
            arrivals = Arrivals(self._path, self._owner.token, listener)
        return self._watched(arrivals.tell)

    def _watched(self, changed: Callable[[], None]) -> Callable[[], None]:
        watch = ChangeWatch(self._path, changed)
        with self._look():
            watch.start()
            self._watches.append(watch)
        return watch.stop

    def close(self) -> None:
        if self._closed:
            return
        for watch in self._watches:
            watch.stop()
        self._closed = True
        try:
            with self._step():
                self._connection.execute(
                    "UPDATE inputs SET owner = NULL WHERE owner = ?", (self._owner.token,)
                )
        finally:
            with self._lock:
                self._connection.close()
            self._owner.close()

    @contextlib.contextmanager
    def _look(self) -> Generator[None]:
        with self._lock, store_errors(self._path):
            if os.getpid() != self._process:
                raise QueueStoreError(
                    "it was opened before this process was forked",
                    where=str(self._path),
                    way_out="open it again in this process",
                )
            self._check_still_there()
            yield

    def _check_still_there(self) -> None:
        """What is written to a file that was removed is written for nobody."""
        try:
            same = os.stat(self._path).st_ino == self._inode
        except OSError:
            same = False
        if not same:
            raise QueueStoreGoneError(
                "it was removed or replaced", where=str(self._path), way_out="put it back"
            )

    @contextlib.contextmanager
    def _step(self) -> Generator[None]:
        with self._look(), transaction(self._connection):
            yield

    def _changed(self, statement: str, *values: object) -> bool:
        return self._connection.execute(statement, values).rowcount > 0

    def _replace(self, item: QueuedInput) -> bool:
        context = context_key(item.context_id)
        place = self._place(item.uuid)
        if place is None or place.context != context:
            return False
        same_tier = place.priority == item.priority
        return self._changed(
            "UPDATE inputs SET priority = ?, source = ?, held = ?, prompt = ?, metadata = ?,"
            " record = ?, position = ? WHERE number = ?",
            *_columns(item),
            place.position if same_tier else self._end_of_tier(context, item.priority),
            place.number,
        )

    def _delete(self, found: list[Taken]) -> None:
        self._connection.executemany(
            "DELETE FROM inputs WHERE number = ?", [(taken.number,) for taken in found]
        )

    def _waiting(self, context: str | None) -> int:
        """How many wait in a context, or altogether."""
        one = "" if context is None else " WHERE context = ?"
        (found,) = self._connection.execute(
            f"SELECT total(amount) FROM waiting{one}", () if context is None else (context,)
        ).fetchone()
        return int(found)

    def _end_of_tier(self, context: str, priority: int) -> int:
        last = self._connection.execute(
            "SELECT max(position) FROM inputs WHERE context = ? AND priority = ?",
            (context, priority),
        ).fetchone()[0]
        return GAP if last is None else int(last) + GAP

    def _place(self, uuid: str) -> _Place | None:
        row = self._connection.execute(
            "SELECT number, context, priority, position FROM inputs"
            " WHERE uuid = ? AND owner IS NULL",
            (name_key(uuid),),
        ).fetchone()
        return None if row is None else _Place(*row)


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    context: str
    priority: int
    position: int

    @property
    def tier(self) -> tuple[str, int]:
        return self.context, self.priority


def _columns(item: QueuedInput) -> tuple[object, ...]:
    source = item.source_agent_id
    return (
        int(item.priority),
        None if source is None else name_key(source),
        item.held,
        item.is_prompt,
        to_json(dict(item.metadata)),
        to_record(item),
    )
