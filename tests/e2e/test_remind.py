"""A reminder in the real command: it comes by itself, marked, and outlives a kill."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from midturn_core import paths
from midturn_core.queue.sqlite import open_sqlite_repository
from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_script import Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.request_texts import said_in, typed

pytestmark = pytest.mark.slow
DEADLINE = 60.0


def wait_until_stored() -> None:
    """Until the file of the queue has an input: a kill before that would come too early."""
    deadline = time.monotonic() + DEADLINE
    with contextlib.closing(open_sqlite_repository(paths.queue_file(os.environ))) as store:
        while not store.size():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_reminder_starts_a_turn_of_an_idle_session_and_is_marked(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("I look."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("/remind 2s look at   the tests")
        live.see_anywhere(r"Queued in . s \(\d\d:\d\d\): look at   the tests")
        live.see("I look.")
        live.see_anywhere(r"reminder set \d\d \w+ \d\d:\d\d")
        [request] = server.wait_for_requests(1)
        assert said_in(request) == [typed("look at   the tests")]


def test_a_reminder_outlives_a_kill_and_is_removed_by_its_number(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("hello"))) as server:
        with live_midturn(server, tmp_path) as live:
            live.enter("hi")
            live.see("hello")
            live.enter("/remind 2h look")
            live.see_anywhere(r"Queued in 2 h")
            live.enter("/queue")
            live.see_anywhere(r"1 +LATER +in 2 h \(.*look")
            wait_until_stored()
            live.process.kill()
            live.wait_exit()
        with live_midturn(server, tmp_path, Start(["--continue"])) as live:
            live.see_anywhere("1 reminder is still set")
            live.enter("/remind rm 1")
            live.see_anywhere("Removed, never sent: look")
            live.enter("/remind")
            live.see_anywhere("No reminder is set")
