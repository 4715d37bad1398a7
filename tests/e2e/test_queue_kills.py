"""``kill -9`` at random moments of a session whose queue is never empty: nothing is lost, nothing
is doubled (D12).

What counts is what the screen has promised: an input that is shown as queued without the mark that
it is not stored, or as a prompt that reached the model, is in the session's log exactly once or
still in the queue at the next start; and nothing at all is in the log twice.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from midturn_core import paths
from midturn_core.config_loader import ConfigSource, load_config
from midturn_core.conversation import Conversation
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import TextBlock, UserMessage
from midturn_core.queue.open_store import store_opener
from midturn_core.queue.outside import outside_tags
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from midturn_core.session.store import SessionStore
from tests.support.live_midturn import write_config
from tests.support.midturn_process import ROOT, midturn_environment
from tests.support.redis_server import RedisServer

KILLS = int(os.environ.get("MIDTURN_KILLS", "30"))
LONGEST = 0.25
"""Seconds after which a session is killed at the latest."""


class Sessions:
    """Starts sessions one after another, kills them, and sends them something now and then."""

    def __init__(self, workspace: Path, seed: int) -> None:
        self.acks = workspace / "acks"
        self.acks.touch()
        (workspace / "read.txt").write_text("a line\n")
        self.workspace = workspace
        self.chance = random.Random(seed)
        self.sent: list[str] = []
        self.errors = (workspace / "errors").open("wb")
        environ = midturn_environment(ANTHROPIC_API_KEY="none")
        environ["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed_session", workspace, self.acks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environ,
            cwd=workspace,
            text=True,
        )

    def start(self, words: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        return int(self._answer())

    def end(self) -> None:
        assert self._answer() == "over"

    def kill_one(self, number: int) -> None:
        """Kill a session at a random moment after its first new promise, or before any."""
        size = self.acks.stat().st_size
        child = self.start(str(number))
        if self.chance.random() < 0.9:
            until = time.monotonic() + 30
            while self.acks.stat().st_size == size and time.monotonic() < until:
                time.sleep(0.001)
        if number % 3 == 2:
            self.send(f"sent {number}")
        time.sleep(self.chance.uniform(0, LONGEST))
        os.kill(child, signal.SIGKILL)
        self.end()

    def send(self, text: str) -> None:
        queue = load_config(ConfigSource(os.environ)).config.queue
        opener = store_opener(queue, paths.queue_file(os.environ))
        assert opener is not None
        repository = opener()
        tier = self.chance.choice(list(QueuedInputPriority))
        repository.enqueue(
            QueuedInput(text, AgentRuntimeId(self.session_id), tier, metadata=outside_tags())
        )
        repository.close()
        self.sent.append(text)

    @property
    def session_id(self) -> str:
        (summary,) = SessionStore(paths.sessions_folder(os.environ)).list()
        return summary.id

    def promised(self) -> set[str]:
        lines = self.acks.read_text().splitlines()
        return {line.partition(" ")[2] for line in lines} | set(self.sent)

    def in_the_log(self) -> Counter[str]:
        store = SessionStore(paths.sessions_folder(os.environ))
        resumed = store.resume(store.find(self.session_id), self.workspace)
        conversation = Conversation(lambda change: None)
        conversation.replay(resumed.changes)
        reminders = SystemReminderFormatter(resumed.session.head.nonce)
        resumed.session.close()
        return Counter(
            reminders.unwrap(block.text)
            for message in conversation.messages
            if isinstance(message, UserMessage)
            for block in message.blocks
            if isinstance(block, TextBlock)
        )

    def still_waiting(self) -> list[str]:
        queue = load_config(ConfigSource(os.environ)).config.queue
        opener = store_opener(queue, paths.queue_file(os.environ))
        assert opener is not None
        repository = opener()
        everything = QueueFilter(AgentRuntimeId(self.session_id), exclude_held=False)
        found = repository.list_by_max_priority(QueuedInputPriority.LATER, everything)
        repository.close()
        return [item.input_text for item in found]

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
        self.errors.close()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def kill_and_count(sessions: Sessions) -> None:
    for number in range(KILLS):
        sessions.kill_one(number)
    sessions.start(f"{KILLS} quiet")
    sessions.end()
    promised, logged = sessions.promised(), sessions.in_the_log()
    assert len(promised) > KILLS
    doubled = {text: count for text, count in logged.items() if count > 1 and text in promised}
    assert doubled == {}
    assert promised - set(logged) == set()
    assert sessions.still_waiting() == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "redis"])
def test_nothing_that_was_promised_is_lost_or_doubled_by_kills(
    backend: str, tmp_path: Path, redis_server: RedisServer
) -> None:
    url = f'\nurl = "{redis_server.url}"' if backend == "redis" else ""
    write_config(f'[queue]\nbackend = "{backend}"{url}\n')
    sessions = Sessions(tmp_path, seed=KILLS)
    try:
        kill_and_count(sessions)
    finally:
        sessions.close()
        assert (tmp_path / "errors").read_text() == ""
