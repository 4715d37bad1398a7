"""Worker threads for the blocking parts of calls (D29, S1.47).

Threads are daemons, start with the first job and are never more than the limit. One whose job
cannot be joined is abandoned: it no longer counts, ends after that job, and another may start in
its place, so that a hanging file system never stops later batches (D28).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

DISPATCH_WORKER = "tool-dispatch-worker"
IO_WORKER = "tool-io-worker"


class JobHandle(Protocol):
    """A job without regard to what it returns."""

    def execute(self) -> None: ...

    def cancel(self) -> None:
        """Take it out of the line; one that has begun goes on."""
        ...

    def done(self) -> bool: ...

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call back when it is done, on whichever thread that happens."""
        ...


class Job(Generic[T]):
    """A function in the line of a pool, and the future of its value."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.future: Future[T] = Future()
        self._function = function

    def execute(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self._function()
        except BaseException as error:
            # Isolation wall: nothing a tool raises may end the worker or the event loop.
            self.future.set_exception(_carriable(error))
        else:
            self.future.set_result(value)

    def cancel(self) -> None:
        self.future.cancel()

    def done(self) -> bool:
        return self.future.done()

    def on_done(self, callback: Callable[[], None]) -> None:
        self.future.add_done_callback(lambda _: callback())


def _carriable(error: BaseException) -> Exception:
    """SystemExit would stop the event loop, and a future cannot carry StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    carried = RuntimeError(f"{type(error).__name__}: {error}")
    carried.__cause__ = error
    return carried


class _Worker:
    def __init__(self, number: int, name: str, work: Callable[[_Worker], None]) -> None:
        self.number = number
        self.job: JobHandle | None = None
        self.abandoned = False
        self.thread = threading.Thread(target=work, args=(self,), name=name, daemon=True)

    @property
    def free(self) -> bool:
        """Whether it waits for a job or is about to."""
        return self.job is None or self.job.done()


class WorkerPool:
    """Threads that share one line of jobs."""

    def __init__(self, name_of: Callable[[int], str], limit: int) -> None:
        self._name_of = name_of
        self._limit = limit
        self._changed = threading.Condition()
        self._jobs: deque[JobHandle] = deque()
        self._workers: list[_Worker] = []
        self._stopped = False

    @classmethod
    def for_dispatch(cls, limit: int) -> WorkerPool:
        return cls(lambda number: f"{DISPATCH_WORKER}-{number}", limit)

    @classmethod
    def for_io(cls) -> WorkerPool:
        """The one worker that serves sequential batches."""
        return cls(lambda number: IO_WORKER, 1)

    @property
    def size(self) -> int:
        """Threads that count towards the limit."""
        with self._changed:
            return len(self._workers)

    def submit(self, function: Callable[[], T]) -> Job[T]:
        """
        Raises:
            RuntimeError: the pool was stopped.
        """
        job = Job(function)
        with self._changed:
            if self._stopped:
                raise RuntimeError("the tool workers are stopped")
            self._jobs.append(job)
            self._start_workers()
            self._changed.notify()
        return job

    def abandon(self, job: JobHandle) -> bool:
        """Stop counting the worker that is busy with ``job``; False when none is."""
        with self._changed:
            for worker in self._workers:
                if worker.job is job and not job.done():
                    worker.abandoned = True
                    self._workers.remove(worker)
                    self._start_workers()
                    return True
        return False

    def resize(self, limit: int) -> None:
        with self._changed:
            self._limit = limit
            self._start_workers()
            self._changed.notify_all()

    def stop(self) -> None:
        """Let idle workers end now and busy ones after their job; waiting jobs are cancelled."""
        with self._changed:
            self._stopped = True
            for job in self._jobs:
                job.cancel()
            free = [worker for worker in self._workers if worker.free]
            self._changed.notify_all()
        for worker in free:
            worker.thread.join()

    def _start_workers(self) -> None:
        free = sum(worker.free for worker in self._workers)
        for _ in range(min(len(self._jobs) - free, self._limit - len(self._workers))):
            taken = {worker.number for worker in self._workers}
            number = next(number for number in count(1) if number not in taken)
            worker = _Worker(number, self._name_of(number), self._work)
            self._workers.append(worker)
            worker.thread.start()

    def _work(self, worker: _Worker) -> None:
        while self._work_once(worker):
            pass

    def _work_once(self, worker: _Worker) -> bool:
        # A frame of its own, so that an idle worker keeps no finished job and its value alive.
        job = self._next_job(worker)
        if job is None:
            return False
        job.execute()
        return True

    def _next_job(self, worker: _Worker) -> JobHandle | None:
        with self._changed:
            if worker.abandoned:
                return None
            worker.job = None
            while not self._jobs and not self._stopped and len(self._workers) <= self._limit:
                self._changed.wait()
            if not self._jobs or len(self._workers) > self._limit:
                self._workers.remove(worker)
                self._changed.notify()
                return None
            worker.job = self._jobs.popleft()
            return worker.job


class CallWorker:
    """The share of one call in a pool: one blocking function at a time."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._one_at_a_time = asyncio.Lock()
        self._newest: JobHandle | None = None
        self._over = False

    async def run_blocking(self, function: Callable[[], T]) -> T:
        """The ``BlockingRunner`` of the call's context. A cancelled waiter does not stop a
        function that has begun, but the next one of this call still waits for it.

        Raises:
            RuntimeError: the call is over, or the workers are stopped.
        """
        async with self._one_at_a_time:
            await self.join(None)
            if self._over:
                raise RuntimeError("the call is over: nothing more runs for it")
            context = contextvars.copy_context()
            job = self._pool.submit(lambda: context.run(function))
            self._newest = job
            return await asyncio.wrap_future(job.future)

    @property
    def busy(self) -> bool:
        """Whether a function of this call is in line or running."""
        return self._newest is not None and not self._newest.done()

    async def join(self, seconds: float | None) -> bool:
        """Wait until nothing of this call runs on a worker; False when it still does."""
        if self._newest is None or self._newest.done():
            return True
        loop = asyncio.get_running_loop()
        idle = asyncio.Event()
        self._newest.on_done(lambda: _wake(loop, idle))
        try:
            async with asyncio.timeout(seconds):
                await idle.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> bool:
        """Nothing more runs for the call; True when a worker had to be abandoned."""
        self._over = True
        return self._newest is not None and self._pool.abandon(self._newest)


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(event.set)
