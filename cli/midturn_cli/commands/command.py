"""What a slash command is, and what it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from midturn_cli.engine import Engine
from midturn_cli.ports import CommandInfo
from midturn_cli.ui_events import CommandOutput, CommandTable
from midturn_core.controller import SessionController
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.queue.edits import QueueEdits


class CommandError(Exception):
    """A command cannot do what was asked; the text says why and what is possible."""


class When(Enum):
    """When a command typed while something runs takes effect (D3)."""

    AT_ONCE = "at once"
    AFTER_TURN = "after what runs now"


class CommandHost(Protocol):
    """What a command can ask of the front end."""

    def request_exit(self) -> None: ...

    def edit_row(self, uuid: str) -> bool:
        """Bring an input that waits into the input line; False when there is no such line."""
        ...

    def reopen(self, session_id: str | None) -> None:
        """Leave this session and open another: an earlier one, or a new one for None."""
        ...


@dataclass(slots=True)
class ShownLists:
    """The numbered lists as they were last on screen: a number means what the user saw there."""

    queue: tuple[str, ...] = ()
    """The uuids of the queued inputs."""
    expired: tuple[str, ...] = ()
    """The uuids of the expired inputs."""
    reminders: tuple[str, ...] = ()
    """The uuids of the scheduled inputs."""
    sessions: tuple[str, ...] = ()
    """The ids of the sessions."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a command: its arguments as typed, and everything it may act on."""

    arguments: str
    engine: Engine
    controller: SessionController
    host: CommandHost
    commands: Sequence[Command]
    """All there are, in the order of /help."""
    edits: QueueEdits
    shown: ShownLists = field(default_factory=ShownLists)
    interrupt: InterruptCoordinator | None = None
    """Set for a command that is a turn of its own: trips when the user cancels it."""
    attachments: Sequence[AttachmentRef] = ()
    """The pictures of the line, for a command that submits text."""

    @property
    def words(self) -> list[str]:
        return self.arguments.split()

    @property
    def turn(self) -> InterruptCoordinator:
        """The interrupt of a command that is a turn of its own."""
        assert self.interrupt is not None
        return self.interrupt

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


Run: TypeAlias = Callable[[Use], None]
RunAsync: TypeAlias = Callable[[Use], Awaitable[None]]
Check: TypeAlias = Callable[[str], str]
"""Arguments in; why they cannot be used, or an empty string."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a command, and what it does."""

    text: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. How it runs decides when it takes effect (D3):

    ``now`` at once; ``beside`` at once too, but it waits for a disk or a program meanwhile;
    ``own_turn`` after what runs now. One that has ``own_turn`` and another shows something at once
    and changes something, with arguments, in a turn of its own.

    Raises:
        ValueError: there is no way to run it, or there are two for the same use.
    """

    name: str
    summary: str
    arguments: str = ""
    now: Run | None = None
    beside: RunAsync | None = None
    own_turn: RunAsync | None = None
    aliases: tuple[str, ...] = ()
    forms: tuple[Form, ...] = ()
    """For /help NAME, where ``arguments`` does not say it all."""
    check: Check | None = None
    """Looks at the arguments before the line is taken: a refused line stays in the input."""
    echo: bool = True
    """Whether the transcript shows the line."""
    shown_by_status: frozenset[str] = frozenset()
    """Arguments of uses that leave nothing in the transcript of a live screen, unless they fail: its
    status row shows what they have done.
    """

    def __post_init__(self) -> None:
        shows = self.now is not None or self.beside is not None
        if (self.now and self.beside) or not (shows or self.own_turn):
            raise ValueError(f"/{self.name} needs one way to run")

    def when(self, arguments: str) -> When:
        """When this use takes effect."""
        shows = self.now is not None or self.beside is not None
        if self.own_turn is not None and (arguments or not shows):
            return When.AFTER_TURN
        return When.AT_ONCE

    @property
    def timing(self) -> str:
        """When it takes effect, in words."""
        bare, given = self.when(""), self.when("x")
        return bare.value if bare is given else f"{bare.value}; changes wait"

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()

    @property
    def info(self) -> CommandInfo:
        return CommandInfo(self.name, self.summary, self.arguments)
