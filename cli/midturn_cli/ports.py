"""The seams inside the front end: what keys act on, and what the writer paints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.ui_events import UiEvent
from midturn_core.model.messages import ImageBlock
from midturn_core.queue.types import QueuedInput, QueuedInputPriority


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """A slash command for completion and /help."""

    name: str
    """Without the slash."""
    summary: str
    arguments: str = ""


class QueuePort(Protocol):
    """What the keyboard can do to one input that waits. Every method returns at once."""

    def waiting(self) -> Sequence[QueuedInput]:
        """Everything that waits, in delivery order."""
        ...

    def begin(self, uuid: str) -> QueuedInput | None:
        """Keep an input back while it is edited; None when it waits no more."""
        ...

    def end(self, uuid: str) -> None:
        """It is edited no more: what it was before, it is again."""
        ...

    def save(self, uuid: str, text: str) -> str:
        """Give an input another text, in place; an empty string, or why not."""
        ...

    def remove(self, uuid: str) -> QueuedInput | None:
        """Take one out, never sent; None when it waits no more."""
        ...

    def set_tier(self, uuid: str, tier: QueuedInputPriority) -> bool: ...

    def move(self, uuid: str, offset: int) -> bool:
        """Move one within its tier; a negative offset is sooner."""
        ...


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """A picture of the draft, and the file of the session that holds it."""

    picture: ImageBlock
    path: Path


class SessionPort(Protocol):
    """What the keyboard can do to a session. Every method but ``clipboard_picture`` returns at
    once.
    """

    @property
    def busy(self) -> bool:
        """A turn, a command or a ``!`` line is running."""
        ...

    @property
    def has_held(self) -> bool:
        """Inputs are held back after an interrupt (D5)."""
        ...

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None,
        *,
        pasted: bool = False,
        attachments: Sequence[ImageBlock] = (),
    ) -> str:
        """Take a line: prompt, slash command or ``!`` line; it starts a turn when idle and is
        queued when busy. ``priority`` None takes the configured meaning of Enter. ``pasted``
        says that the text begins with pasted text: a slash or ``!`` there is content, no command.
        ``attachments`` are the pictures whose placeholders stand in the text, in its order.
        Returns an empty string when it was taken; otherwise why not, and the text stays in the
        input line.
        """
        ...

    async def clipboard_picture(self) -> KeptPicture | str:
        """The picture on the clipboard, kept in a file of the session; one sentence why not."""
        ...

    def interrupt(self) -> bool:
        """Cancel what runs; False when nothing did."""
        ...

    def cancel_awaited_call(self) -> bool:
        """Cancel the running call that a NOW input waits for (D1); False when there is none."""
        ...

    def release_held(self) -> bool:
        """Resume the held inputs; False when there are none."""
        ...

    def commands(self) -> Sequence[CommandInfo]: ...

    @property
    def queue(self) -> QueuePort | None:
        """What waits; None until there is a session."""
        ...


@dataclass(frozen=True, slots=True)
class LiveRegion:
    """The rows above and below the input line, as ANSI text without a final line end.

    Empty means that the part is not shown.
    """

    tail: str = ""
    """The open block of the streaming answer; its last rows."""
    tools: str = ""
    queue: str = ""
    ask: str = ""
    status: str = ""
    rule_shown: bool = False
    """The question shows the whole rule of an answer that lasts: only then is one taken."""


class Presenter(Protocol):
    """Events in, ANSI text out; no terminal, no I/O. One instance per session."""

    def apply(self, event: UiEvent) -> None: ...

    def take_committed(self, width: int, max_chars: int | None = None) -> str:
        """Everything that is final and not yet in the scrollback, as whole lines of ANSI text.

        ``max_chars`` is the budget of a slow terminal: at least one block is returned, and the
        rest stays for the next call.
        """
        ...

    @property
    def has_committed(self) -> bool:
        """Whether ``take_committed`` would return something."""
        ...

    def drop_backlog(self, width: int, keep_rows: int) -> None:
        """After an interrupt: forget uncommitted text beyond a screenful, and say how much."""
        ...

    def live(
        self,
        width: int,
        max_rows: int,
        now: float,
        *,
        keyboard: AskKeyboard = AskKeyboard.NOT_YET,
        rows_above: int = 0,
    ) -> LiveRegion:
        """The live region at a monotonic time; at most ``max_rows`` rows altogether.

        ``rows_above``: so many rows at least stand above it on the screen.
        """
        ...

    @property
    def animated(self) -> bool:
        """Something changes with time alone (a spinner, an elapsed time)."""
        ...

    def recent(self, width: int, rows: int) -> str:
        """The last rows of the transcript, to repaint a cleared screen."""
        ...
