"""Sessions that are killed: ``killed_session WORKSPACE ACKS`` forks one for each line it reads.

Everything is imported once, and each session is a process of its own that begins within
milliseconds. A line is ``ROUND`` or ``ROUND quiet``; the answer is the session's process id. A
session goes on with the latest one of the folder, lets go what was left held, and then types lines
of all tiers without an end, or, when quiet, only works off what waits and leaves.

ACKS gets a line for each promise that the screen made: an input that is shown as queued without the
mark that it is not stored, and a prompt that is shown as having reached the model.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from midturn_cli.engine import FrontEnd
from midturn_cli.launch import SessionStart
from midturn_cli.session import InteractiveSession
from midturn_cli.ui_events import QueueChanged, UiEvent
from midturn_core import paths
from midturn_core.events import InputsDelivered, TurnStarted
from midturn_core.model.client import ModelEvent, ModelRequest
from midturn_core.permission.ask import DenyingAskHandler
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from midturn_core.session.store import SessionStore
from tests.support.scripted_model import calls, text, use
from tests.support.session_kit import RecordingHost, make_launch

PAUSE = 0.004
"""Seconds that a piece of an answer takes at most."""


class BusyModel:
    """Answers at once or after a tool, with random pauses in which the queue fills."""

    label = "busy"

    def __init__(self, seed: int, workspace: Path) -> None:
        self._random = random.Random(seed)
        self._file = str(workspace / "read.txt")
        self._count = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._count += 1
        wants_tool = self._random.random() < 0.6
        read = use(f"toolu_{os.getpid()}_{self._count}", "Read", {"file_path": self._file})
        for step in calls(read) if wants_tool else text("an answer of two pieces"):
            await asyncio.sleep(self._random.uniform(0, PAUSE))
            assert not isinstance(step, asyncio.Event | Exception)
            yield step

    async def close(self) -> None:
        pass


class _Promises:
    """Writes down what the screen has promised; a killed process has written all of it."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._queued: set[str] = set()

    def emit(self, event: UiEvent) -> None:
        match event:
            case QueueChanged(items=items, unstored=unstored):
                new = [i for i in items if i.uuid not in unstored and i.uuid not in self._queued]
                self._queued.update(item.uuid for item in new)
                self._write("queued", new)
            case TurnStarted(inputs=inputs) | InputsDelivered(inputs=inputs):
                self._write("prompt", inputs)
            case _:
                pass

    def _write(self, kind: str, items: list[QueuedInput] | tuple[QueuedInput, ...]) -> None:
        for item in items:
            os.write(self._file, f"{kind} {item.input_text}\n".encode())


async def run_session(workspace: Path, acks: Path, number: int, *, quiet: bool) -> None:
    launch = make_launch(workspace, demo=False)
    if SessionStore(paths.sessions_folder(os.environ)).list():
        launch = replace(launch, session=SessionStart.LATEST)
    front = FrontEnd(_Promises(acks).emit, DenyingAskHandler())
    session = InteractiveSession(
        launch, front, RecordingHost(), lambda _: BusyModel(number, workspace)
    )
    session.open()
    await session.queue_opened()
    session.release_held()
    chance, line = random.Random(number), 0
    while not quiet:
        for _ in range(chance.randrange(4)):
            line += 1
            session.submit(f"line {number}.{line}", chance.choice(list(QueuedInputPriority)))
        await asyncio.sleep(chance.uniform(0, 4 * PAUSE))
    await session.wait_idle()
    await session.close()


def main() -> None:
    for late in ("sqlite", "redis", "redis_client"):
        # Sessions import these when they need them; here it is once for all of them.
        importlib.import_module(f"midturn_core.queue.{late}")
    workspace, acks = Path(sys.argv[1]), Path(sys.argv[2])
    for line in iter(sys.stdin.readline, ""):
        number, _, quiet = line.strip().partition(" ")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(run_session(workspace, acks, int(number), quiet=bool(quiet)))
                code = 0
            finally:
                os._exit(code)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("over\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
