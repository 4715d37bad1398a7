"""What a slash command is, and what it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from midturn_cli.engine import Engine
from midturn_cli.ports import CommandInfo
from midturn_cli.ui_events import CommandOutput, CommandTable
from midturn_core.controller import SessionController
from midturn_core.interrupt import InterruptCoordinator


class CommandError(Exception):
    """A command cannot do what was asked; the text says why and what is possible."""


class When(Enum):
    """When a command typed while something runs takes effect (D3)."""

    AT_ONCE = "at once"
    AFTER_TURN = "after what runs now"


class CommandHost(Protocol):
    """What a command can ask of the front end."""

    def request_exit(self) -> None: ...

    def reopen(self, session_id: str | None) -> None:
        """Leave this session and open another: an earlier one, or a new one for None."""
        ...


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a command: its arguments as typed, and everything it may act on."""

    arguments: str
    engine: Engine
    controller: SessionController
    host: CommandHost
    interrupt: InterruptCoordinator | None = None
    """Set for a command that is a turn of its own: trips when the user cancels it."""

    @property
    def words(self) -> list[str]:
        return self.arguments.split()

    def say(self, text: str, *, markdown: bool = False) -> None:
        self.engine.emit(CommandOutput(text, markdown=markdown))

    def table(
        self,
        title: str,
        header: tuple[str, ...],
        rows: Sequence[tuple[str, ...]],
        footer: str = "",
    ) -> None:
        self.engine.emit(CommandTable(title, header, tuple(rows), footer))


RunNow: TypeAlias = Callable[[Use], None]
RunOwnTurn: TypeAlias = Callable[[Use], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. Exactly one of ``now`` and ``own_turn`` is set: it decides ``when``."""

    name: str
    summary: str
    arguments: str = ""
    now: RunNow | None = None
    own_turn: RunOwnTurn | None = None
    aliases: tuple[str, ...] = ()

    @property
    def when(self) -> When:
        return When.AT_ONCE if self.now is not None else When.AFTER_TURN

    @property
    def info(self) -> CommandInfo:
        return CommandInfo(self.name, self.summary, self.arguments)
