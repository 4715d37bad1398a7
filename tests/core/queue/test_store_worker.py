"""The one thread that talks to the store of the queue."""

from __future__ import annotations

import threading

from midturn_core.errors import QueueStoreError
from midturn_core.queue.store_worker import StoreWorker

DEADLINE = 30.0


def test_a_close_that_drops_a_job_is_not_told_as_a_store_that_works_again() -> None:
    told: list[QueueStoreError | None] = []
    failing = threading.Event()

    def on_trouble(error: QueueStoreError | None) -> None:
        told.append(error)
        failing.set()

    def write() -> None:
        raise QueueStoreError("the disk is full", where="the test", way_out="free some space")

    ran: list[str] = []
    worker = StoreWorker(on_trouble, pauses=(DEADLINE,))
    worker.submit(write)
    worker.submit(lambda: ran.append("a job that writes nothing"))
    assert failing.wait(DEADLINE)
    assert worker.close(DEADLINE)
    assert ran
    assert len(told) == 1 and told[0] is not None
    assert worker.trouble is told[0]
