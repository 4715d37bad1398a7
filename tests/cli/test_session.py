"""What an interactive session shows when it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_cli.session import replayed
from midturn_cli.ui_events import AnswerReplayed, PromptReplayed
from midturn_core.agent import LOOP_NOTE_KEY
from midturn_core.model.messages import TextBlock
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY
from midturn_core.queue.types import QueuedInput
from tests.support.session_kit import make_launch, open_session


async def test_a_resumed_history_shows_what_both_said_and_none_of_our_notes(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        conversation, wrap = kit.engine.conversation, kit.engine.reminders.wrap
        conversation.add_user_text("a prompt")
        conversation.add_assistant([TextBlock("an answer")])
        conversation.add_user_text(
            wrap(LOOP_NOTE_KEY, "the turn was interrupted"),
            wrap(MID_TURN_INJECTION_KEY, "typed meanwhile"),
        )
        assert replayed(kit.engine, 10) == [
            PromptReplayed("a prompt"),
            AnswerReplayed("an answer"),
            PromptReplayed("typed meanwhile"),
        ]


@pytest.mark.parametrize("step", ["queue", "presence", "engine"])
async def test_what_was_not_sent_is_told_although_a_step_of_closing_fails(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise OSError(28, "the disk is full")

    async with open_session(make_launch(tmp_path)) as kit:
        session = kit.session
        await session.queue_opened()
        kit.engine.queue.enqueue(QueuedInput("remember me", kit.engine.context_id).as_held())
        places = {
            "queue": session.engine.session_queue,
            "presence": session._presence,  # pyright: ignore[reportPrivateUsage]  # a step of closing
            "engine": session.engine,
        }
        with monkeypatch.context() as broken_step:
            broken_step.setattr(places[step], "close", broken)
            assert await session.close() == ["remember me"]
