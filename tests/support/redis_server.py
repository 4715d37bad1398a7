"""A Redis server of the tests' own: a free port on loopback, nothing on disk, gone at the end."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import pytest

from tests.support.services import require

DEADLINE = 30.0
_TRIES = 50


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class RedisServer:
    """One ``redis-server``; it can be killed and started again on the same port."""

    options: tuple[str, ...] = ()
    port: int = 0
    folder: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="midturn-redis-"))
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, on the port that it had before, if any.

        Another program can take a free port first, and the bus of a cluster has a port too,
        10,000 above: then another one is tried.
        """
        for port in [self.port] if self.port else self._candidates():
            self.port = port
            words = [require("redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
            words += ["--dir", self.folder, "--save", "", "--appendonly", "no", *self.options]
            self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            if self._comes_up(self.process):
                return
        raise AssertionError("redis-server does not start")

    @staticmethod
    def _candidates() -> Iterator[int]:
        for _ in range(_TRIES):
            port = free_port()
            if port + 10_000 < 65_536:
                yield port

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def say(self, command: str) -> bytes:
        """Send one inline command over a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(65536)

    def _comes_up(self, process: subprocess.Popen[bytes]) -> bool:
        until = time.monotonic() + DEADLINE
        while not self._answers():
            if process.poll() is not None:
                return False
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.01)
        return True

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.say("PING").startswith((b"+PONG", b"-NOAUTH"))
        return False


@contextlib.contextmanager
def running_redis(*options: str) -> Generator[RedisServer]:
    server = RedisServer(options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One for all tests of a worker; each test uses a namespace of its own.

    It is the one node of a cluster, so that it refuses any script whose keys are in different
    slots.
    """
    with running_redis("--cluster-enabled", "yes") as server:
        server.say("CLUSTER ADDSLOTSRANGE 0 16383")
        until = time.monotonic() + DEADLINE
        while b"cluster_state:ok" not in server.say("CLUSTER INFO"):
            assert time.monotonic() < until, "the cluster of one is not ready"
        yield server
