"""Looking for what other processes change in the SQLite file."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from midturn_core.queue.arrivals import tell_arrival
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.sqlite_file import connect_reader

_log = logging.getLogger(__name__)

SECONDS = 1.0
"""Between two looks. SQLite has no way to wait for another process's change."""
SETTLING_LOOKS = 10
"""How often the file is read after a write to it was seen. A change counts only once the disk has
taken it, which may be long after the write; and writes within one tick of the file system's clock
look like one.
"""


class ChangeWatch:
    """A thread of its own that calls back after each change of the file, whoever made it, and when
    the file was removed or replaced; and once at its first look, for what changed before that.
    While nobody writes, a look is two calls of ``stat``.
    """

    def __init__(self, path: Path, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._seen: tuple[_Mark | None, _Mark | None] = (None, None)
        self._looks_left = 0
        self._connection: sqlite3.Connection | None = None
        self._version: int | None = None
        """Of the file, as this connection numbers them; None before it has looked."""
        self._failing = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="queue-watch", daemon=True)

    def start(self) -> None:
        """
        Raises:
            sqlite3.Error: the file cannot be read.
        """
        self._seen, self._looks_left = self._marks(), SETTLING_LOOKS
        self._connection = connect_reader(self._path, SECONDS)
        self._thread.start()

    def stop(self) -> None:
        """End it. Idempotent, and allowed to the callback itself."""
        self._stopped.set()
        if threading.current_thread() is not self._thread and self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(SECONDS):
            try:
                self._look()
                self._failing = False
            # An isolation wall: nothing that goes wrong with one look may end all others.
            except Exception:
                if not self._failing:
                    # Once, however long it lasts; whoever uses the file next tells the user.
                    _log.warning("cannot look for changes of %s", self._path, exc_info=True)
                self._failing = True
                self._hang_up()
        self._hang_up()

    def _look(self) -> None:
        file, journal = self._marks()
        before, _ = self._seen
        if (file, journal) != self._seen:
            self._seen, self._looks_left = (file, journal), SETTLING_LOOKS
        if file is None:
            self._hang_up()
            if before is not None:
                self._changed()
            return
        if before is None or before.inode != file.inode:
            self._hang_up()
        if self._looks_left:
            self._read()
            self._looks_left -= 1

    def _read(self) -> None:
        if self._connection is None:
            self._connection = connect_reader(self._path, SECONDS)
        version = _data_version(self._connection)
        if version != self._version:
            self._version = version
            self._changed()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._version = None, None

    def _marks(self) -> tuple[_Mark | None, _Mark | None]:
        return _mark(self._path), _mark(self._path.with_name(f"{self._path.name}-wal"))


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a write to a file changes of what ``stat`` tells."""

    inode: int
    size: int
    modified_ns: int


def _mark(path: Path) -> _Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _Mark(found.st_ino, found.st_size, found.st_mtime_ns)


def _data_version(connection: sqlite3.Connection) -> int:
    """Another one after each change by another connection."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


class Arrivals:
    """Tells a listener what others than ``run`` have put into the file since the last time."""

    def __init__(self, path: Path, run: str, listener: MessageQueueListener) -> None:
        self._path = path
        self._run = run
        self._listener = listener
        self._seen = self._newest()

    def tell(self) -> None:
        """
        Raises:
            sqlite3.Error: the file cannot be read.
        """
        with contextlib.closing(connect_reader(self._path, SECONDS)) as connection:
            rows = connection.execute(
                "SELECT number, record FROM inputs WHERE number > ? AND origin <> ?"
                " ORDER BY number",
                (self._seen, self._run),
            ).fetchall()
        for number, record in rows:
            self._seen = number
            tell_arrival(self._listener, record)

    def _newest(self) -> int:
        with contextlib.closing(connect_reader(self._path, SECONDS)) as connection:
            found = connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'inputs'"
            ).fetchone()
        return 0 if found is None else int(found[0])
