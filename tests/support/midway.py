"""The real ``midturn`` in the middle of its first turn, for as long as a test wants.

with midway_in_bash(tmp_path, "it is done") as (live, server, gate):
    live.enter("a line that waits")
    gate.open()
    live.see("it is done")
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer

ALLOWED = ("--allow", "Bash(cat:*)")
"""Lets ``FifoLatch.command`` run without a question."""


@contextlib.contextmanager
def midway_in_bash(
    workspace: Path, *answers: str, prompt: str = "go", config: str = ""
) -> Generator[tuple[LiveMidturn, MessagesServer, FifoLatch]]:
    """A ``Bash`` call runs until the gate is opened; ``answers`` are what the model says then,
    each in a step of its own.
    """
    gate = FifoLatch(workspace)
    first = Reply(Calls("Bash", {"command": gate.command}))
    with (
        MessagesServer(first, *(Reply(Says(answer)) for answer in answers)) as server,
        live_midturn(server, workspace, Start(ALLOWED, config=config)) as live,
    ):
        live.enter(prompt)
        gate.reached()
        yield live, server, gate


@contextlib.contextmanager
def midway_in_answer(
    workspace: Path, *answers: str, prompt: str = "go", config: str = ""
) -> Generator[tuple[LiveMidturn, MessagesServer, Latch]]:
    """The model has said "busy" and goes on when the latch is opened; ``answers`` are its next."""
    latch = Latch()
    first = Reply(Says("busy ", latch))
    with (
        MessagesServer(first, *(Reply(Says(answer)) for answer in answers)) as server,
        live_midturn(server, workspace, Start(config=config)) as live,
    ):
        live.enter(prompt)
        live.see("busy")
        yield live, server, latch
