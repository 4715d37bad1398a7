"""``InterceptorThreads``: where blocking interceptors run, apart from every worker of the tools."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from midturn_core.dispatch.pool import WorkerPool

T = TypeVar("T")

MAX_BUSY = 128
"""Functions on their way at once, those that nobody waits for any more included."""
THREAD = "tool-interceptor"


class InterceptorThreads:
    """Daemon threads, started when there is work and none is free; used on the loop's thread.

    Nothing ever waits in line for a thread: an interceptor may itself start calls with
    interceptors and wait for them, and a full pool would then wait for itself for ever (S1.41).
    One call has one interceptor running at a time, so there are as many threads as calls (and
    nested calls) at once; beyond ``limit`` an interceptor fails at once instead of waiting.
    """

    def __init__(self, limit: int = MAX_BUSY) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._busy = 0
        self._pool: WorkerPool | None = None

    @property
    def size(self) -> int:
        """Threads that live now and are not given up."""
        return self._pool.size if self._pool is not None else 0

    async def run(self, function: Callable[[], T]) -> T:
        """The function's value. A cancelled waiter gives its thread up: it ends with the function.

        Raises:
            RuntimeError: as many functions as the limit allows are busy.
        """
        if self._pool is None:
            self._pool = WorkerPool(lambda number: f"{THREAD}-{number}", self._limit)
        with self._lock:
            if self._busy >= self._limit:
                raise RuntimeError(f"{self._limit} blocking interceptors are busy already")
            self._busy += 1
        context = contextvars.copy_context()
        job = self._pool.submit(lambda: context.run(function))
        job.on_done(self._release)
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            self._pool.abandon(job)
            raise

    def close(self) -> None:
        """May be called again; a later ``run`` starts anew."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()

    def _release(self) -> None:
        with self._lock:
            self._busy -= 1
