"""What an interactive session shows when it opens."""

from __future__ import annotations

from pathlib import Path

from midturn_cli.session import replayed
from midturn_cli.ui_events import AnswerReplayed, PromptReplayed
from midturn_core.agent import LOOP_NOTE_KEY
from midturn_core.model.messages import TextBlock
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY
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
