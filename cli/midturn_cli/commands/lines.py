"""``CommandLines``: recognises and runs the lines that are no prompts (D3)."""

from __future__ import annotations

import logging

from midturn_cli.commands.command import Command, CommandError, CommandHost, Use
from midturn_cli.commands.registry import CommandRegistry, split_command
from midturn_cli.engine import Engine
from midturn_cli.shell_line import run_shell_line
from midturn_cli.ui_events import CommandOutput, UserEcho
from midturn_core.controller import LineKind, SessionController
from midturn_core.errors import MidturnError
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.types import QueuedInput

_log = logging.getLogger(__name__)


class CommandLines:
    """Implements the controller's ``LineRunner`` with the slash commands and ``!`` lines."""

    def __init__(self, engine: Engine, host: CommandHost, registry: CommandRegistry) -> None:
        self._engine = engine
        self._host = host
        self._registry = registry
        self.controller: SessionController | None = None
        """Set once both exist: each needs the other."""

    @property
    def registry(self) -> CommandRegistry:
        return self._registry

    def problem(self, text: str) -> str:
        split = split_command(text)
        if split is None or self._registry.find(split[0]) is not None:
            return ""
        return self._registry.unknown(split[0])

    def classify(self, text: str) -> LineKind:
        if text.lstrip().startswith("!") and text.strip() != "!":
            return LineKind.SHELL
        command, _ = self._command(text)
        if command is None:
            return LineKind.PROMPT
        return LineKind.IMMEDIATE if command.now is not None else LineKind.COMMAND

    def run_immediate(self, text: str) -> None:
        command, arguments = self._command(text)
        assert command is not None and command.now is not None
        self._engine.emit(UserEcho(text.strip()))
        try:
            command.now(self._use(arguments))
        except (CommandError, MidturnError) as error:
            self._fail(str(error))
        except Exception as error:
            # The wall around commands: one that is broken ends neither turn nor session.
            self._broken(command, error)

    async def run_own_turn(self, item: QueuedInput, interrupt: InterruptCoordinator) -> None:
        text = item.input_text
        if self.classify(text) is LineKind.SHELL:
            await run_shell_line(text.strip()[1:].strip(), self._engine, interrupt)
            return
        command, arguments = self._command(text)
        assert command is not None and command.own_turn is not None
        self._engine.emit(UserEcho(text.strip()))
        try:
            await command.own_turn(self._use(arguments, interrupt))
        except (CommandError, MidturnError) as error:
            self._fail(str(error))
        except Exception as error:
            # As above.
            self._broken(command, error)

    def _command(self, text: str) -> tuple[Command | None, str]:
        split = split_command(text)
        if split is None:
            return None, ""
        return self._registry.find(split[0]), split[1]

    def _use(self, arguments: str, interrupt: InterruptCoordinator | None = None) -> Use:
        assert self.controller is not None
        return Use(arguments, self._engine, self.controller, self._host, interrupt)

    def _fail(self, text: str) -> None:
        self._engine.emit(CommandOutput(text, error=True))

    def _broken(self, command: Command, error: Exception) -> None:
        _log.exception("/%s raised", command.name)
        self._fail(f"/{command.name} failed inside Midturn: {error!r}")
