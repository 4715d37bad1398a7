"""The SQLite file of the queue: who may read it, its schema, and what its failures mean."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Generator, Iterator
from pathlib import Path

from midturn_core.errors import QueueStoreError
from midturn_core.queue.record import RecordError, tags_from_json

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x4D445154  # MDQT
_ASIDE = "move it aside; a new one is made"

# Text is stored as record bytes; uuid, context and source as ASCII keys. A number is never used
# twice, so that a watcher can ask for what is newer than what it has seen.
_SCHEMA = """
CREATE TABLE inputs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    source TEXT,
    held INTEGER NOT NULL,
    prompt INTEGER NOT NULL,
    metadata BLOB NOT NULL,
    record BLOB NOT NULL,
    origin TEXT NOT NULL,
    owner TEXT
);
CREATE INDEX inputs_in_order ON inputs (context, priority, position);
CREATE INDEX inputs_claimed ON inputs (owner) WHERE owner IS NOT NULL;
CREATE TABLE waiting (context TEXT PRIMARY KEY, amount INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER waiting_more AFTER INSERT ON inputs BEGIN
    INSERT INTO waiting VALUES (NEW.context, 1)
    ON CONFLICT (context) DO UPDATE SET amount = amount + 1;
END;
CREATE TRIGGER waiting_less AFTER DELETE ON inputs WHEN OLD.owner IS NULL BEGIN
    UPDATE waiting SET amount = amount - 1 WHERE context = OLD.context;
    DELETE FROM waiting WHERE context = OLD.context AND amount = 0;
END;
CREATE TRIGGER waiting_claimed AFTER UPDATE OF owner ON inputs
WHEN OLD.owner IS NULL AND NEW.owner IS NOT NULL BEGIN
    UPDATE waiting SET amount = amount - 1 WHERE context = OLD.context;
    DELETE FROM waiting WHERE context = OLD.context AND amount = 0;
END;
CREATE TRIGGER waiting_again AFTER UPDATE OF owner ON inputs
WHEN OLD.owner IS NOT NULL AND NEW.owner IS NULL BEGIN
    INSERT INTO waiting VALUES (NEW.context, 1)
    ON CONFLICT (context) DO UPDATE SET amount = amount + 1;
END;
"""


def open_queue_file(path: Path, *, busy_seconds: float, durable: bool) -> sqlite3.Connection:
    """A connection to the file, which is made when it is not there; its folder too.

    Args:
        path: the file; it and its folder are private to the user.
        busy_seconds: how long to wait for another process's change.
        durable: whether a change survives a power failure as soon as it is made; without it a
            crash of the program still loses nothing.

    Raises:
        QueueStoreError: others can read it, it is from a newer version, or it cannot be opened.
    """
    with file_errors(path):
        _make_private(path)
    with store_errors(path):
        connection = sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path, durable=durable)
        except BaseException:
            connection.close()
            raise
        return connection


def connect_reader(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection that changes nothing, and makes no file, for a thread that watches."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    connection.execute("PRAGMA query_only = ON")
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """One atomic step towards every other process: all of it, or, after an exception, nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def store_errors(path: Path) -> Generator[None]:
    """Tell the failures of the file as what they mean for the user."""
    try:
        yield
    except sqlite3.Error as error:
        problem, way_out = _explained(error)
        raise QueueStoreError(problem, where=str(path), way_out=way_out) from error
    except RecordError as error:
        raise QueueStoreError(
            "it holds an input that cannot be read", where=str(path), way_out=_ASIDE
        ) from error


@contextlib.contextmanager
def file_errors(path: Path) -> Generator[None]:
    """The same for what is done to files and folders beside SQLite."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or str(error)
        raise QueueStoreError(
            problem, where=str(error.filename or path), way_out="make it readable and writable"
        ) from error


def _make_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(path.parent, os.stat(path.parent), "chmod 700")
    # A file that is there is never opened here: closing it would drop the locks that SQLite holds
    # on it for another connection of this process, and the next process would take that one's
    # journal away. Nobody else can replace the file in between, since the folder is private.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise QueueStoreError("it is no file", where=str(path), way_out="name another path")
    _refuse_shared(path, found, "chmod 600")


def _refuse_shared(path: Path, found: os.stat_result, command: str) -> None:
    if os.name != "posix":
        return
    if found.st_uid != os.geteuid():
        raise QueueStoreError(
            "it belongs to another user", where=str(path), way_out="name a path of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise QueueStoreError(
            "other users can reach it, and what you type would be theirs to read and to add to",
            where=str(path),
            way_out=f"make it private with: {command} '{path}'",
        )


def _prepare(connection: sqlite3.Connection, path: Path, *, durable: bool) -> None:
    _check_version(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.create_function("has_tags", 2, _has_tags, deterministic=True)
    if _pragma(connection, "user_version") == SCHEMA_VERSION:
        return
    with transaction(connection):
        # Another process may have been faster.
        if _pragma(connection, "user_version") == 0:
            for statement in _statements(_SCHEMA):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version = _pragma(connection, "user_version")
    made_by = _pragma(connection, "application_id")
    if made_by not in (0, _APPLICATION_ID) or (version and made_by != _APPLICATION_ID):
        raise QueueStoreError(
            "it is the database of another program", where=str(path), way_out="name another path"
        )
    if version > SCHEMA_VERSION:
        raise QueueStoreError(
            f"it was written by a newer Midturn (form {version}, this one knows {SCHEMA_VERSION})",
            where=str(path),
            way_out="update Midturn, or name another path",
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: ``executescript`` would commit on its own."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _has_tags(metadata: bytes, wanted: bytes) -> bool:
    return tags_from_json(wanted).items() <= tags_from_json(metadata).items()


def _explained(error: sqlite3.Error) -> tuple[str, str]:
    """What is wrong, and the way out."""
    # The lower byte is the kind, the rest are details; the module's own errors have no code.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another program keeps it locked", "try again, or end that program"
        case sqlite3.SQLITE_FULL:
            return "the disk is full", "free some space and try again"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return "it is read-only", "make the file and its folder writable"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return "it is damaged or no database", _ASIDE
        case sqlite3.SQLITE_CANTOPEN:
            return "it cannot be opened", "make the file and its folder readable and writable"
        case _:
            return str(error), "check the disk, or name another path"
