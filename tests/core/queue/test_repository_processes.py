"""Several processes on one store: each input exactly once, also when they are killed (S2.37)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from tests.support.queue_stores import QueueStore
from tests.support.queue_worker import ALL, MAIN

DEADLINE = 300.0
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def workers(shared_store: QueueStore) -> Iterator[Workers]:
    started = Workers(shared_store)
    yield started
    started.kill()


class Workers:
    """Processes of ``queue_worker`` on one store."""

    def __init__(self, store: QueueStore) -> None:
        self._store = store
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, role: str, *more: str) -> subprocess.Popen[str]:
        where = (self._store.kind, self._store.address, str(self._store.owners))
        folders = os.pathsep.join(str(ROOT / name) for name in (".", "cli", "core", "tools"))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.queue_worker", role, *where, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": folders},
            cwd=ROOT,
        )
        self._processes.append(process)
        return process

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def deliver_exactly_once(workers: Workers, done: Path, count: int) -> None:
    each = count // 4
    consumers = [workers.start("consume", str(done)) for _ in range(2)]
    producers = [workers.start("produce", f"p{number}", str(each)) for number in range(4)]
    with ThreadPoolExecutor(2) as pool:
        outputs = [pool.submit(consumer.communicate, None, DEADLINE) for consumer in consumers]
        for producer in producers:
            assert producer.wait(DEADLINE) == 0
        done.touch()
        taken = [output.result()[0].splitlines() for output in outputs]
    assert [consumer.returncode for consumer in consumers] == [0, 0]
    expected = Counter(f"p{producer}:{number}" for producer in range(4) for number in range(each))
    assert Counter(line.split()[1] for lines in taken for line in lines) == expected
    for lines in taken:
        assert_in_order(lines)


def assert_in_order(lines: list[str]) -> None:
    """Within a tier, a consumer gets what one producer sent in the order in which it was sent."""
    newest: dict[tuple[str, str], int] = {}
    for line in lines:
        tier, text = line.split()
        producer, number = text.split(":")
        assert newest.get((tier, producer), -1) < int(number)
        newest[tier, producer] = int(number)


def test_processes_deliver_each_input_exactly_once(workers: Workers, tmp_path: Path) -> None:
    deliver_exactly_once(workers, tmp_path / "done", 1_000)


@pytest.mark.slow
def test_processes_deliver_ten_thousand_inputs_exactly_once(
    workers: Workers, tmp_path: Path
) -> None:
    deliver_exactly_once(workers, tmp_path / "done", 10_000)


def test_what_a_killed_process_had_claimed_comes_back_in_order(
    workers: Workers, shared_store: QueueStore
) -> None:
    repository = shared_store.open()
    items = [QueuedInput(name, MAIN) for name in "abc"]
    for item in items:
        repository.enqueue(item)
    holder = workers.start("hold")
    assert first_line(holder) == "a b c"
    assert (repository.size(), repository.recover(MAIN)) == (0, [])
    holder.kill()
    holder.wait()
    assert repository.recover(MAIN) == items
    assert repository.drain(ALL) == items


def test_the_cap_holds_when_processes_enqueue_at_the_same_moment(
    workers: Workers, shared_store: QueueStore
) -> None:
    repository = shared_store.open()
    repository.enqueue(QueuedInput("waits already", MAIN))
    senders = [workers.start("fill", "2") for _ in range(3)]
    assert [first_line(sender) for sender in senders] == ["ready"] * 3
    for number in range(50):
        for sender in senders:
            assert sender.stdin is not None
            sender.stdin.write(f"{number}\n")
            sender.stdin.flush()
        assert sorted(map(first_line, senders)) == ["full", "full", "stored"]
        assert repository.size() == 2
        assert repository.dequeue(lambda item: item.input_text != "waits already")


def survive_kills(workers: Workers, store: QueueStore, log: Path, kills: int) -> None:
    """One process delivers and is killed at any moment, over and over; one enqueues."""
    repository = store.open()
    sent: list[str] = []
    chance = random.Random(kills)
    for _ in range(kills):
        worker = workers.start("deliver", str(log))
        assert first_line(worker) == "ready"
        until = time.monotonic() + chance.uniform(0.0, 0.1)
        while time.monotonic() < until or not log.read_text():
            assert time.monotonic() < until + DEADLINE
            item = QueuedInput(f"{len(sent)}", MAIN, QueuedInputPriority(len(sent) % 3))
            assert repository.enqueue(item)
            sent.append(item.uuid)
        worker.kill()
        worker.communicate()
    repository.recover(MAIN)
    logged = log.read_text().split()
    repository.confirm(logged)
    left = [item.uuid for item in repository.drain(ALL)]
    assert Counter(logged + left) == Counter(sent)


def test_no_kill_between_claim_and_confirm_loses_or_doubles_an_input(
    workers: Workers, shared_store: QueueStore, tmp_path: Path
) -> None:
    survive_kills(workers, shared_store, tmp_path / "log", 4)


@pytest.mark.slow
def test_sixty_kills_lose_and_double_nothing(
    workers: Workers, shared_store: QueueStore, tmp_path: Path
) -> None:
    survive_kills(workers, shared_store, tmp_path / "log", 60)
