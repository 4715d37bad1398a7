"""Many turns in one session: nothing that a turn has taken is kept."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer

TOKENS = 200
WARM_UP = 20
TURNS = 300
MOST_GROWTH_MB = 20.0
COUNTS_TASKS = """
import asyncio, signal, sys
from midturn_cli.main import main

pipe = sys.argv.pop(1)

def tell(*_):
    with open(pipe, "w") as writer:
        writer.write(str(len(asyncio.all_tasks())))

signal.signal(signal.SIGUSR1, tell)
sys.exit(main())
"""
"""The command, which writes into a pipe how many tasks it has when it is asked by a signal."""


def answer(number: int) -> list[Reply]:
    """A step with a call and one with ``TOKENS`` tokens."""
    words = [f"word{n} " for n in range(TOKENS)]
    return [
        Reply(Calls("Read", {"file_path": "a.txt"})),
        Reply(Says(*words, f"\n\nTurn {number} is over.")),
    ]


@pytest.mark.slow
def test_many_turns_leave_no_task_no_thread_no_descriptor_and_hardly_memory(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    replies = [reply for number in range(WARM_UP + TURNS) for reply in answer(number)]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    start = Start(command=(sys.executable, "-c", COUNTS_TASKS, str(pipe)))
    with MessagesServer(*replies) as server, live_midturn(server, tmp_path, start) as live:
        for number in range(WARM_UP):
            take_turn(live, number)
        before, tasks = held_by(live), tasks_of(live, pipe)
        memory = live.memory_mb()
        for number in range(WARM_UP, WARM_UP + TURNS):
            take_turn(live, number)
        after, more_tasks = held_by(live), tasks_of(live, pipe) - tasks
        growth = live.memory_mb() - memory
    assert after == before
    # What the last turn started may not be over yet.
    assert more_tasks < TURNS / 10
    assert growth < MOST_GROWTH_MB


def take_turn(live: LiveMidturn, number: int) -> None:
    live.send(f"turn {number}\r")
    live.see(rf"Turn {number} is over\.")
    live.see_idle()


def tasks_of(live: LiveMidturn, pipe: Path) -> int:
    live.signal(signal.SIGUSR1)
    return int(pipe.read_text(encoding="ascii"))


def held_by(live: LiveMidturn) -> dict[str, int]:
    """Threads, open descriptors and children of the command."""
    process = Path(f"/proc/{live.process.pid}")
    children = (process / "task" / process.name / "children").read_text(encoding="ascii")
    return {
        "threads": len(os.listdir(process / "task")),
        "descriptors": len(os.listdir(process / "fd")),
        "children": len(children.split()),
    }
