"""``StoreWorker``: the one thread that talks to the store of the queue (D7).

A slow disk or server keeps this thread waiting, never the input line. Jobs run in the order in
which they were submitted. While the store cannot be used the first job waits, and with it all
others: nothing is dropped and nothing overtakes.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from midturn_core.errors import QueueStoreError

_log = logging.getLogger(__name__)

Job: TypeAlias = Callable[[], None]

RETRY_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each new try of a store that failed; the last one is repeated."""


class StoreWorker:
    """Runs jobs one after another on a daemon thread that starts with the first one.

    A job that raises ``QueueStoreError`` is tried again until it succeeds or the worker is closed;
    so jobs must be idempotent. Anything else that a job raises is logged, and the job is over.

    Args:
        on_trouble: called on the worker with the error when the store begins to fail, and with
            None when it works again.
        pauses: seconds before each new try.
    """

    def __init__(
        self,
        on_trouble: Callable[[QueueStoreError | None], None],
        pauses: tuple[float, ...] = RETRY_PAUSES,
    ) -> None:
        self._on_trouble = on_trouble
        self._pauses = pauses
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._trouble: QueueStoreError | None = None
        self._busy = False
        self._closed = False
        self._gave_up = False
        """A job was dropped at the close: whatever works after it, something is missing."""

    @property
    def trouble(self) -> QueueStoreError | None:
        """Why the store cannot be used now; None while it can."""
        return self._trouble

    def submit(self, job: Job) -> bool:
        """Put a job at the end of the line; False, and it never runs, once closed."""
        with self._changed:
            if self._closed:
                return False
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="queue-store-worker", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            return True

    def close(self, seconds: float) -> bool:
        """Take no more jobs and let those in the line finish for so long; False when one still runs.

        While the store fails they are tried once more and dropped. Idempotent. A job that hangs
        keeps its daemon thread; it holds up nothing.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._jobs and not self._busy, seconds)
            self._jobs.clear()
            self._changed.notify_all()
            thread = self._thread
        if done and thread is not None and thread is not threading.current_thread():
            thread.join()
        return done

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            self._persist(job)

    def _next_job(self) -> Job | None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._jobs) or self._closed)
            if not self._jobs:
                return None
            self._busy = True
            return self._jobs.popleft()

    def _persist(self, job: Job) -> None:
        """Run a job to its end, however often the store fails before."""
        for attempt in itertools.count():
            try:
                job()
            except QueueStoreError as error:
                self._set_trouble(error)
                if not self._pause(attempt):
                    self._gave_up = True
                    return
            except Exception:
                # Isolation wall: a mistake in one job must not stop what comes after it.
                _log.exception("a job of the queue's store failed")
                return
            else:
                if not self._gave_up:
                    self._set_trouble(None)
                return

    def _pause(self, attempt: int) -> bool:
        """Wait before a new try; False when the worker is closed: the store had its chance."""
        seconds = self._pauses[min(attempt, len(self._pauses) - 1)]
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)
            return not self._closed

    def _set_trouble(self, error: QueueStoreError | None) -> None:
        known, self._trouble = self._trouble, error
        if (known is None) != (error is None):
            self._on_trouble(error)
