"""What the screen shows besides the core's events.

One ordered stream goes to the screen: core events and these. Texts are untrusted unless said
otherwise; whoever renders them cleans them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from midturn_cli.render.theme import ThemeName
from midturn_core.config import QueueConfig
from midturn_core.events import Event
from midturn_core.model.messages import ToolUseResult
from midturn_core.queue.types import QueuedInput


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The waiting inputs of the main agent, in delivery order."""

    items: tuple[QueuedInput, ...]
    settings: QueueConfig = QueueConfig()
    """Decide when they are delivered."""
    unstored: frozenset[str] = frozenset()
    """The uuids of those that the store does not have."""
    store_fails: bool = False
    """The store cannot be used; otherwise what is unstored is on its way there."""


@dataclass(frozen=True, slots=True)
class StatusInfo:
    """The parts of the status row."""

    model: str
    demo: bool
    mode: str
    parallel: bool
    max_concurrency: int
    per_batch_max: int
    context_percent: int | None = None
    tokens: int = 0
    cost: str = ""
    """Money with its unit, only when prices are configured."""
    slots_in_use: int = 0
    """Of ``max_concurrency``: calls that run together now."""
    slots_by_agent: tuple[tuple[str, int], ...] = ()
    """Who has how many of them: name and number, the most first."""


@dataclass(frozen=True, slots=True)
class StatusChanged:
    status: StatusInfo


@dataclass(frozen=True, slots=True)
class UserEcho:
    """A line the user entered that is no model input: a slash command or a ``!`` line."""

    text: str


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a slash command says. ``markdown`` renders the text as Markdown."""

    text: str
    markdown: bool = False
    error: bool = False


@dataclass(frozen=True, slots=True)
class CommandTable:
    """Rows of a slash command, aligned in columns by the renderer."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    footer: str = ""


@dataclass(frozen=True, slots=True)
class ShellLineStarted:
    """A ``!command`` of the user's runs."""

    id: str
    command: str


@dataclass(frozen=True, slots=True)
class ShellLineFinished:
    id: str
    command: str
    output: str
    exit_code: int | None
    """None: it was interrupted."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first lines of a session."""

    version: str
    folder: str
    status: StatusInfo
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerReplayed:
    """An earlier answer of a resumed session, as Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class PromptReplayed:
    """An earlier prompt of a resumed session."""

    text: str


@dataclass(frozen=True, slots=True)
class ClipboardText:
    """Text for the clipboard of the terminal. Nothing of it is shown; at most ``osc52.MAX_BYTES``."""

    text: str


@dataclass(frozen=True, slots=True)
class ResultExpanded:
    """A finished tool result, to be shown whole; ``number`` 1 is the newest."""

    title: str
    result: ToolUseResult
    number: int


@dataclass(frozen=True, slots=True)
class ThemeChanged:
    """From now on the screen has other colours; what is in the scrollback keeps its own."""

    theme: ThemeName


UiOnlyEvent: TypeAlias = (
    QueueChanged
    | StatusChanged
    | UserEcho
    | CommandOutput
    | CommandTable
    | ShellLineStarted
    | ShellLineFinished
    | Greeting
    | AnswerReplayed
    | PromptReplayed
    | ResultExpanded
    | ThemeChanged
    | ClipboardText
)
UiEvent: TypeAlias = Event | UiOnlyEvent
