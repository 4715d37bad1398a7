"""A process that uses a shared queue: ``queue_worker ROLE KIND ADDRESS OWNERS [MORE]``.

produce NAME COUNT   enqueues NAME:0, NAME:1, ... into all tiers in turns
consume DONE         takes until the file DONE is there and nothing waits; prints what it took
deliver LOG          claims, appends to LOG, confirms, one by one, after having done with the
                     leftovers of its predecessors what a restored session does; prints "ready"
fill CAP             tries to enqueue an input for each line of standard input, and says whether it was
                     "stored" or the queue was "full"
hold                 claims everything, prints it, and waits for its end
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.claim_owner import ClaimOwner
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from tests.support.queue_stores import open_repository

MAIN = AgentRuntimeId("session", "main")
ALL = QueueFilter(MAIN)


def produce(repository: MessageQueueRepository, name: str, count: str) -> None:
    for number in range(int(count)):
        priority = QueuedInputPriority(number % 3)
        assert repository.enqueue(QueuedInput(f"{name}:{number}", MAIN, priority))


def consume(repository: MessageQueueRepository, done: str) -> None:
    turn = 0
    while True:
        over = Path(done).exists()
        turn += 1
        item = repository.dequeue(ALL) if turn % 5 else None
        taken = [] if item is None else [item]
        if not turn % 5:
            taken = repository.drain(ALL)
        for each in taken:
            _say(f"{each.priority.name} {each.input_text}")
        if not taken and over and repository.size() == 0:
            return


def deliver(repository: MessageQueueRepository, log: str) -> None:
    path = Path(log)
    path.touch()
    repository.recover(MAIN)
    repository.confirm(path.read_text().split())
    _say("ready")
    parent = os.getppid()
    with path.open("a") as file:
        while os.getppid() == parent:
            first = repository.peek(ALL)
            if first is None:
                time.sleep(0.002)
                continue
            for item in repository.claim(QueueFilter(MAIN, uuids=frozenset({first.uuid}))):
                file.write(f"{item.uuid}\n")
                file.flush()
                repository.confirm([item.uuid])


def fill(repository: MessageQueueRepository, cap: str) -> None:
    _say("ready")
    for line in sys.stdin:
        try:
            repository.enqueue(QueuedInput(line, MAIN), cap=int(cap))
        except QueueFullError:
            _say("full")
        else:
            _say("stored")


def hold(repository: MessageQueueRepository) -> None:
    claimed = repository.claim(ALL)
    _say(" ".join(item.input_text for item in claimed))
    sys.stdin.read()


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


ROLES: dict[str, Callable[..., None]] = {
    "produce": produce,
    "consume": consume,
    "deliver": deliver,
    "fill": fill,
    "hold": hold,
}


def main(role: str, kind: str, address: str, owners: str, *more: str) -> None:
    ROLES[role](open_repository(kind, address, ClaimOwner(Path(owners))), *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
