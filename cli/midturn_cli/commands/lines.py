"""``CommandLines``: recognises and runs the lines that are no prompts (D3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from midturn_cli.commands.command import (
    Command,
    CommandError,
    CommandHost,
    RunAsync,
    ShownLists,
    Use,
)
from midturn_cli.commands.line_kinds import line_kind, line_problem
from midturn_cli.commands.registry import CommandRegistry, split_command
from midturn_cli.engine import Engine
from midturn_cli.shell_line import run_shell_line, shell_command
from midturn_cli.ui_events import CommandOutput, UserEcho
from midturn_core.controller import LineKind, SessionController
from midturn_core.errors import MidturnError
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.queue.edits import QueueEdits
from midturn_core.queue.types import QueuedInput

_log = logging.getLogger(__name__)


class CommandLines:
    """Implements the controller's ``LineRunner`` with the slash commands and ``!`` lines."""

    def __init__(self, engine: Engine, host: CommandHost, registry: CommandRegistry) -> None:
        self._engine = engine
        self._host = host
        self._registry = registry
        self._shown = ShownLists()
        self._beside: set[asyncio.Task[None]] = set()
        self.controller: SessionController | None = None
        """Set once both exist: each needs the other."""

    @property
    def edits(self) -> QueueEdits:
        """How the waiting inputs are changed."""
        assert self.controller is not None
        engine = self._engine
        return QueueEdits(engine.queue, engine.context_id, self, self.controller.wake)

    @property
    def registry(self) -> CommandRegistry:
        return self._registry

    def problem(self, text: str) -> str:
        return line_problem(self._registry, text)

    def classify(self, text: str) -> LineKind:
        return line_kind(self._registry, text)

    def run_immediate(self, text: str, attachments: Sequence[AttachmentRef] = ()) -> None:
        command, arguments = self._command(text)
        assert command is not None
        use = replace(self._use(arguments), attachments=attachments)
        self._show_line(command, text, arguments)
        if command.beside is not None:
            running = self._run(command, command.beside, use)
            task = asyncio.get_running_loop().create_task(running)
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
            return
        assert command.now is not None
        with self._reporting(command):
            command.now(use)

    async def run_own_turn(self, item: QueuedInput, interrupt: InterruptCoordinator) -> None:
        text = item.input_text
        if command_line := shell_command(text):
            await run_shell_line(command_line, self._engine, interrupt)
            return
        command, arguments = self._command(text)
        assert command is not None and command.own_turn is not None
        self._show_line(command, text, arguments)
        await self._run(command, command.own_turn, self._use(arguments, interrupt))

    async def wait_beside(self) -> None:
        """Until no command runs beside the turns any more."""
        while self._beside:
            await asyncio.wait(self._beside)

    async def close(self) -> None:
        """Cancel the commands that run beside the turns."""
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)

    async def _run(self, command: Command, run: RunAsync, use: Use) -> None:
        with self._reporting(command):
            await run(use)

    @contextmanager
    def _reporting(self, command: Command) -> Generator[None]:
        try:
            yield
        except (CommandError, MidturnError) as error:
            self._fail(str(error))
        except Exception as error:
            # The wall around commands: one that is broken ends neither turn nor session.
            _log.exception("/%s raised", command.name)
            self._fail(f"/{command.name} failed inside Midturn: {error!r}")

    def _command(self, text: str) -> tuple[Command | None, str]:
        split = split_command(text)
        if split is None:
            return None, ""
        return self._registry.find(split[0]), split[1]

    def _use(self, arguments: str, interrupt: InterruptCoordinator | None = None) -> Use:
        assert self.controller is not None
        return Use(
            arguments,
            self._engine,
            self.controller,
            self._host,
            self._registry.all(),
            self.edits,
            self._shown,
            interrupt,
        )

    def _show_line(self, command: Command, text: str, arguments: str) -> None:
        quiet = self._engine.front.live and arguments in command.shown_by_status
        if command.echo and not quiet:
            self._engine.emit(UserEcho(text.strip()))

    def _fail(self, text: str) -> None:
        self._engine.emit(CommandOutput(text, error=True))
