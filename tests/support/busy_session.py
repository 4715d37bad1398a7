"""A session whose first turn runs for as long as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from midturn_core.events import TextDelta
from midturn_core.model.client import TextChunk
from midturn_core.model.messages import TextBlock, UserMessage
from tests.support.scripted_model import ScriptedModel, Step, text
from tests.support.session_kit import SessionKit, make_launch, open_session


class BusySession:
    """``kit`` with a turn that streams until ``finish``."""

    def __init__(self, kit: SessionKit, model: ScriptedModel, latch: asyncio.Event) -> None:
        self.kit = kit
        self.model = model
        self._latch = latch

    async def finish(self) -> None:
        """Let the turn end, and all that waits for it."""
        self._latch.set()
        await self.kit.wait_idle()

    def sent_texts(self) -> list[str]:
        """All text of the user's in all requests."""
        return [
            block.text
            for request in self.model.requests
            for message in request.messages
            if isinstance(message, UserMessage)
            for block in message.blocks
            if isinstance(block, TextBlock)
        ]


@asynccontextmanager
async def busy_session(
    workspace: Path, *later: Sequence[Step], toml: str = ""
) -> AsyncGenerator[BusySession]:
    """A session in the middle of answering "start"; ``later`` are the answers after it."""
    latch = asyncio.Event()
    first: list[Step] = [TextChunk("so "), latch, *text("so far")]
    model = ScriptedModel(first, *later)
    async with open_session(make_launch(workspace, toml, demo=False), lambda _: model) as kit:
        kit.submit("start")
        await kit.wait_for(TextDelta)
        yield BusySession(kit, model, latch)
        latch.set()
