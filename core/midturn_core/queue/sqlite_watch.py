"""Looking for what other processes put into the SQLite file."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from pathlib import Path

from midturn_core.queue.arrivals import tell_arrival
from midturn_core.queue.events import MessageQueueListener
from midturn_core.queue.sqlite_file import connect_reader

_log = logging.getLogger(__name__)

SECONDS = 0.5
"""Between two looks. SQLite has no way to wait for another process's change."""


class ArrivalWatch:
    """A thread of its own, with a connection of its own; told is only what others enqueue."""

    def __init__(self, path: Path, run: str, listener: MessageQueueListener) -> None:
        self._path = path
        self._run = run
        self._listener = listener
        self._seen = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="queue-watch", daemon=True)

    def start(self) -> None:
        """Begin with what is enqueued from now on.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        with contextlib.closing(connect_reader(self._path, SECONDS)) as connection:
            self._seen = _newest(connection)
        self._thread.start()

    def stop(self) -> None:
        """End it. Idempotent, and allowed to the listener itself."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            try:
                with contextlib.closing(connect_reader(self._path, SECONDS)) as connection:
                    self._follow(connection)
            except sqlite3.Error:
                # Whoever uses the file next tells the user; a hint may be missing.
                _log.warning("cannot look for new inputs in %s", self._path, exc_info=True)
                self._stopped.wait(SECONDS)

    def _follow(self, connection: sqlite3.Connection) -> None:
        version = None
        while not self._stopped.is_set():
            current = connection.execute("PRAGMA data_version").fetchone()[0]
            if current != version:
                version = current
                self._tell_newer(connection)
            self._stopped.wait(SECONDS)

    def _tell_newer(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute(
            "SELECT number, record FROM inputs WHERE number > ? AND origin <> ? ORDER BY number",
            (self._seen, self._run),
        ).fetchall()
        for number, record in rows:
            self._seen = number
            tell_arrival(self._listener, record)


def _newest(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'inputs'").fetchone()
    return 0 if found is None else int(found[0])
