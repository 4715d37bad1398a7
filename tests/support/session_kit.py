"""A whole interactive session in a temporary folder: real engine, real files, collected events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from midturn_cli.engine import Engine, FrontEnd, ModelMaker
from midturn_cli.launch import Launch
from midturn_cli.session import InteractiveSession
from midturn_cli.ui_events import CommandOutput, CommandTable, UiEvent
from midturn_core import paths
from midturn_core.config_loader import ConfigSource, load_config
from midturn_core.model.client import ModelClient
from midturn_core.model.demo import DemoModel
from midturn_core.model.messages import ImageBlock
from midturn_core.permission.ask import AskHandler, DenyingAskHandler
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from tests.support.agent_kit import DEADLINE, until

E = TypeVar("E")

DEMO_RATE = 1_000_000.0
"""Words per second: tests of the demo do not wait for its typing."""


def make_launch(workspace: Path, toml: str = "", *, demo: bool = True) -> Launch:
    """A launch in ``workspace``; ``toml`` becomes the user's configuration file."""
    if toml:
        file = paths.config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(toml)
    loaded = load_config(ConfigSource(os.environ))
    return Launch(loaded=loaded, workspace=workspace.resolve(), demo=demo)


def fast_demo(engine: Engine) -> ModelClient:
    return DemoModel(engine.workspace, engine.demo_site, DEMO_RATE)


@dataclass(slots=True)
class RecordingHost:
    """A ``CommandHost`` that only remembers what it was asked for."""

    exits: int = 0
    reopened: list[str | None] = field(default_factory=list[str | None])
    edited: list[str] = field(default_factory=list[str])
    has_input_line: bool = True

    def request_exit(self) -> None:
        self.exits += 1

    def edit_row(self, uuid: str) -> bool:
        self.edited.append(uuid)
        return self.has_input_line

    def reopen(self, session_id: str | None) -> None:
        self.reopened.append(session_id)


@dataclass(slots=True)
class SessionKit:
    """The session and everything a test looks at."""

    session: InteractiveSession
    host: RecordingHost
    events: list[UiEvent]
    closed: bool = False

    @property
    def engine(self) -> Engine:
        return self.session.engine

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None = None,
        *,
        pasted: bool = False,
        attachments: Sequence[ImageBlock] = (),
    ) -> str:
        return self.session.submit(text, priority, pasted=pasted, attachments=attachments)

    async def run(self, text: str) -> str:
        """Submit a line and wait until all that follows from it is over."""
        problem = self.submit(text)
        await self.wait_idle()
        return problem

    async def wait_idle(self) -> None:
        await asyncio.wait_for(self.session.wait_idle(), DEADLINE)

    async def wait_for(self, kind: type[E]) -> E:
        """The newest event of a kind, as soon as there is one."""
        await until(lambda: bool(self.of(kind)))
        return self.of(kind)[-1]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def waiting(self) -> list[QueuedInput]:
        return self.engine.queue.snapshot(self.engine.context_id)

    @property
    def said(self) -> str:
        """Everything that commands showed, as text; the cells of a table row side by side."""
        return "\n".join(filter(None, map(_as_text, self.events)))

    @property
    def errors(self) -> list[str]:
        return [output.text for output in self.of(CommandOutput) if output.error]

    async def close(self) -> list[str]:
        """The inputs that were never delivered; may be called again."""
        if self.closed:
            return []
        self.closed = True
        return await asyncio.wait_for(self.session.close(), DEADLINE)


def _as_text(event: UiEvent) -> str:
    match event:
        case CommandOutput(text=text):
            return text
        case CommandTable(title, header, rows, footer):
            lines = [title, *(" | ".join(row) for row in (header, *rows)), footer]
            return "\n".join(filter(None, lines))
        case _:
            return ""


@asynccontextmanager
async def open_session(
    launch: Launch,
    make_model: ModelMaker = fast_demo,
    ask_handler: AskHandler | None = None,
    *,
    live: bool = True,
) -> AsyncGenerator[SessionKit]:
    """Open an interactive session and close it afterwards.

    A scripted model: ``open_session(launch, lambda _: ScriptedModel(...))``.
    """
    events: list[UiEvent] = []
    host = RecordingHost()
    front = FrontEnd(events.append, ask_handler or DenyingAskHandler(), live=live)
    kit = SessionKit(InteractiveSession(launch, front, host, make_model), host, events)
    kit.session.open()
    try:
        yield kit
    finally:
        await kit.close()


def texts(items: Sequence[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]
