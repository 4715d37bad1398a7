"""What a session registers by itself to be observed by: the queue's listener and its metrics."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from midturn_core.events import TurnEnded, TurnEndReason
from midturn_core.queue.events import QueueEvent
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import make_launch, open_session


async def test_a_session_logs_every_change_of_its_queue_and_every_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toml = '[log]\nlevel = "debug"\n[queue]\nbackend = "memory"\n'
    async with busy_session(tmp_path, text("steered"), toml=toml) as busy:
        caplog.set_level(logging.DEBUG, "midturn_core.queue")
        busy.kit.submit("steer")
        busy.kit.submit("gone")
        busy.kit.submit("/queue rm 2")
        await busy.finish()
    lines = [record.getMessage() for record in caplog.records]
    changes = [found[1] for line in lines if (found := re.match(r"queue-event change=(\w+)", line))]
    assert changes == ["ENQUEUED", "ENQUEUED", "REMOVED", "DRAINED"]
    [turn] = [line for line in lines if line.startswith("queue-metrics")]
    assert "preDepth=0 postDepth=0 enqueuedInTurn=2 drainedInTurn=1" in turn


async def test_a_listener_that_always_fails_stops_no_turn(tmp_path: Path) -> None:
    class Broken:
        def on_event(self, event: QueueEvent) -> None:
            raise RuntimeError("metrics bug")

    async with busy_session(tmp_path, text("steered")) as busy:
        busy.kit.engine.queue.add_listener(Broken())
        busy.kit.submit("steer")
        await busy.finish()
        assert [turn.reason for turn in busy.kit.of(TurnEnded)] == [TurnEndReason.DONE]
        assert "steer" in "".join(busy.sent_texts())


async def test_contexts_carry_the_name_of_their_session(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: ScriptedModel(text("hello"))) as kit:
        context_id = kit.engine.context_id
        assert str(context_id) == f"{kit.engine.session.id}/main"
        async with open_session(launch, lambda _: ScriptedModel()) as other:
            assert other.engine.context_id != context_id
