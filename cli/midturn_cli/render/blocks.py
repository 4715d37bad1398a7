"""What the transcript is made of: finished blocks as plain values, their text cleaned already.

The reducer makes them, the screen and the plain front end each render them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from midturn_cli.ui_events import StatusInfo
from midturn_core.dispatch.types import BatchReport, GateVerdict
from midturn_core.events import CallPhase, NoticeLevel, TurnEndReason
from midturn_core.model.messages import DiffDetail, Outcome, ToolDetail


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """A prompt at the point where it reached the model.

    ``tier`` is empty unless it waited in the queue; ``point`` says in words where it went in, and
    ``origin`` where it came from when nobody typed it just now.
    """

    text: str
    tier: str = ""
    point: str = ""
    origin: str = ""

    @property
    def where(self) -> str:
        return " · ".join(filter(None, (self.tier, self.point, self.origin)))


@dataclass(frozen=True, slots=True)
class EchoBlock:
    """A line that is no model input: a slash command or a ``!`` line."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The next piece of the open answer, as Markdown source."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The open answer is complete."""


@dataclass(frozen=True, slots=True)
class ThoughtBlock:
    """The model thought for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A call as it is shown: which it is, and the argument that matters."""

    name: str
    title: str
    index: int
    """0-based within its batch."""
    count: int

    @property
    def position(self) -> str:
        return f"[{self.index + 1}/{self.count}]"

    @property
    def in_batch(self) -> str:
        """``[2/4] Read: path``, as a row of a panel begins (S3.12)."""
        return f"{self.position} {self.name}: {self.title}".removesuffix(": ")


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a call, for the screen. ``error`` is one line and empty on success."""

    outcome: Outcome
    duration_ms: float
    summary: str = ""
    error: str = ""
    detail: ToolDetail | None = None
    retried: bool = False
    receipt: str = ""
    """What the person answered when asked about it."""


class GroupPlace(Enum):
    """Where a call stands among those that ran together, in a batch of several parts (D23)."""

    ALONE = "alone"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A finished call; ``in_panel`` when it is a row of a batch panel (D34).

    ``labels`` are all rows of that panel: their signs stand below each other.
    """

    call: CallInfo
    result: CallResult
    in_panel: bool
    labels: tuple[str, ...] = ()
    place: GroupPlace = GroupPlace.ALONE


@dataclass(frozen=True, slots=True)
class ExpandedBlock:
    """A tool result whole, as the model got it, and the whole change if it was one."""

    call: CallInfo
    outcome: Outcome
    duration_ms: float
    text: str
    diff: DiffDetail | None
    number: int
    """Counted from the newest result, which is 1."""


@dataclass(frozen=True, slots=True)
class PanelTitle:
    """The first row of a batch panel (S3.12)."""

    count: int
    verdict: GateVerdict


@dataclass(frozen=True, slots=True)
class PanelFooter:
    """The totals of a batch (S3.12, S3.13, D34), and what parallel would have taken (D20).

    ``round_trip_ms`` is how long the model takes for one message, on average; 0 while unknown.
    """

    report: BatchReport
    round_trip_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    level: NoticeLevel
    text: str


@dataclass(frozen=True, slots=True)
class RemarkBlock:
    """A quiet line of the program about what stands above it."""

    text: str


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """What a slash command says."""

    text: str
    markdown: bool = False
    error: bool = False


@dataclass(frozen=True, slots=True)
class TableBlock:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    footer: str = ""


@dataclass(frozen=True, slots=True)
class ShellBlock:
    """The output of a ``!`` line. ``exit_code`` None: it was interrupted."""

    output: str
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class GreetingBlock:
    version: str
    folder: str
    status: StatusInfo
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnEndBlock:
    """A turn that did not simply finish."""

    reason: TurnEndReason
    steps: int
    duration_ms: float
    error: str = ""
    way_out: str = ""


Block: TypeAlias = (
    PromptBlock
    | EchoBlock
    | AnswerText
    | AnswerEnd
    | ThoughtBlock
    | CallBlock
    | ExpandedBlock
    | PanelTitle
    | PanelFooter
    | NoticeBlock
    | RemarkBlock
    | OutputBlock
    | TableBlock
    | ShellBlock
    | GreetingBlock
    | TurnEndBlock
)


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A call that is not in the scrollback yet. ``started`` is monotonic, in seconds.

    ``result`` is set when it has finished and waits for the calls before it.
    """

    id: str
    call: CallInfo
    started: float
    phase: CallPhase = CallPhase.WAITING
    note: str = ""
    receipt: str = ""
    result: CallResult | None = None
