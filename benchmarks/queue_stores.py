"""What 10,000 waiting inputs cost each operation of each queue store, as ratios within one run.

An operation on a queue in which 10,000 inputs wait, to the same on an empty one: at most 1.5 for
an enqueue. A drain of 10,000, to ten drains of 1,000, the best of three each: at most 1.5, so it
is linear. The SQLite file is written as the application does, safe against a power failure. Redis
is a server of the benchmark's own on loopback; without a ``redis-server`` program it is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.redis import open_redis_repository
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.sqlite import open_sqlite_repository
from midturn_core.queue.types import QueuedInput, QueueFilter

MAIN = AgentRuntimeId("benchmark", "main")
ALL = QueueFilter(MAIN)
WAITING = 10_000
TARGET = 1.5
DEADLINE = 30.0


def report(name: str, empty: MessageQueueRepository, full: MessageQueueRepository, n: int) -> None:
    """``empty`` and ``full`` are two stores of a kind, measured in turns."""
    small = min(drain_time(full, WAITING // 10) for _ in range(3))
    large = min(drain_time(full, WAITING) for _ in range(3))
    fill(full, WAITING)
    samples = [(cost(empty), cost(full)) for _ in range(n)]
    for operation in samples[0][0]:
        base = statistics.median(first[operation] for first, _ in samples)
        loaded = statistics.median(second[operation] for _, second in samples)
        target = f"(target: <= {TARGET:.2f})" if operation == "enqueue" else ""
        print(
            f"{name:7} {operation:8}{base * 1e6:9.0f} us   with {WAITING:,} waiting"
            f"{loaded * 1e6:9.0f} us   ratio {loaded / base:6.2f}  {target}"
        )
    print(
        f"{name:7} drain   {small * 1e3:9.1f} ms   {WAITING:,} instead of 1,000"
        f"{large * 1e3:8.1f} ms   ratio {large / small / 10:6.2f}  (per input; target: <= {TARGET:.2f})"
    )


def cost(repository: MessageQueueRepository) -> dict[str, float]:
    """Seconds of each operation; afterwards as many wait as before."""
    repository.enqueue(QueuedInput("stays", MAIN))
    item = QueuedInput("goes", MAIN)
    return {
        "enqueue": timed(partial(repository.enqueue, item)),
        "peek": timed(partial(repository.peek, ALL)),
        "remove": timed(partial(repository.remove, item.uuid)),
        "dequeue": timed(partial(repository.dequeue, ALL)),
    }


def drain_time(repository: MessageQueueRepository, count: int) -> float:
    fill(repository, count)
    gc.collect()
    return timed(partial(repository.drain, ALL))


def fill(repository: MessageQueueRepository, count: int) -> None:
    for number in range(count):
        repository.enqueue(QueuedInput(f"input {number}", MAIN))


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


@contextlib.contextmanager
def redis_url(folder: str) -> Generator[str]:
    """The address of a server that is gone afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
    process = subprocess.Popen([*words, "--save", ""], stdout=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}"
        wait_for(url)
        yield url
    finally:
        process.kill()
        process.wait()


def wait_for(url: str) -> None:
    until = time.perf_counter() + DEADLINE
    while True:
        try:
            open_redis_repository(url).size()
            return
        except QueueStoreError:
            if time.perf_counter() > until:
                raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    samples = parser.parse_args().samples
    report("memory", InMemoryMessageQueueRepository(), InMemoryMessageQueueRepository(), samples)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name / "queue.sqlite3" for name in ("empty", "full")]
        empty_file, full_file = map(open_sqlite_repository, files)
        report("sqlite", empty_file, full_file, samples)
        if shutil.which("redis-server") is None:
            print("redis   left out: there is no redis-server program")
            return
        with redis_url(folder) as url:
            empty = open_redis_repository(url, namespace="empty")
            report("redis", empty, open_redis_repository(url, namespace="full"), samples)


if __name__ == "__main__":
    main()
