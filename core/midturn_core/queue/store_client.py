"""``StoreClient``: the store of a queue as a running session uses it, however slow or broken it is.

Every use is a job for one worker thread, in order. While the store fails the first job is tried
again and the others wait behind it; a store that was taken away is opened anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import TypeVar

from midturn_core.errors import QueueStoreError, QueueStoreGoneError
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.store_link import StoreLink
from midturn_core.queue.store_worker import Job, StoreWorker

T = TypeVar("T")

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
"""How long ``ask`` waits for a slow store."""


class StoreClient:
    """Takes jobs on any thread; questions and ``close`` are for the loop's thread.

    Args:
        link: the way to the store.
        reopened: called on the worker when the store was taken away and is opened anew.
        on_trouble: called on the worker with the error when the store begins to fail, and with
            None when it works again.
        pauses: seconds before each new try of a store that failed.
    """

    def __init__(
        self,
        link: StoreLink,
        reopened: Callable[[], None],
        on_trouble: Callable[[QueueStoreError | None], None],
        pauses: tuple[float, ...],
    ) -> None:
        self._link = link
        self._reopened = reopened
        self._on_trouble = on_trouble
        self._worker = StoreWorker(self._tell_trouble, pauses)
        self._fall_backs: list[Callable[[], None]] = []

    @property
    def trouble(self) -> QueueStoreError | None:
        """Why the store cannot be used now; None while it can."""
        return self._worker.trouble

    @property
    def store(self) -> MessageQueueRepository:
        """For jobs only: it may have to be opened.

        Raises:
            QueueStoreError: it cannot be.
        """
        return self._link.store

    def watch(self) -> None:
        """Hear of what others change, from when the jobs before are done."""
        self.submit(self._link.watch)

    def submit(self, job: Job) -> None:
        """Do this once all jobs before it are done, and again while it raises ``QueueStoreError``."""
        self._worker.submit(partial(self._run, job))

    def call(self, find: Callable[[], T]) -> asyncio.Future[T]:
        """What a job finds, however late; never, when the store is closed before."""
        answer: Future[T] = Future()
        self.submit(lambda: _settle(answer, find()))
        return asyncio.wrap_future(answer)

    async def ask(self, find: Callable[[], T], otherwise: T) -> T:
        """What a job finds; ``otherwise`` while the store fails, or when it is too slow. The job is
        done in any case.
        """
        answer: Future[T] = Future()
        fall_back = partial(_settle, answer, otherwise)
        self._fall_backs.append(fall_back)
        self.submit(lambda: _settle(answer, find()))
        if self.trouble is not None:
            fall_back()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            _log.warning("the queue's store did not answer in %.0f s", ANSWER_SECONDS)
            return otherwise
        finally:
            self._fall_backs.remove(fall_back)

    async def close(self, seconds: float) -> bool:
        """Let the jobs be done and let go of the store, for so long; False when that still goes on."""
        self._worker.submit(self._link.let_go)
        return await asyncio.to_thread(self._worker.close, seconds)

    def _run(self, job: Job) -> None:
        try:
            job()
        except QueueStoreGoneError:
            self._link.let_go()
            self.watch()
            self._reopened()
            raise  # it is tried again, on a store that is opened anew

    def _tell_trouble(self, error: QueueStoreError | None) -> None:
        if error is not None:
            for fall_back in tuple(self._fall_backs):
                fall_back()
        self._on_trouble(error)


def _settle(answer: Future[T], value: T) -> None:
    """Give the answer, unless there is one or nobody waits for it any more."""
    with contextlib.suppress(InvalidStateError):
        answer.set_result(value)
