"""The closed union of events that core emits; the only way it speaks outward.

Every event is a frozen value. They are emitted on the loop's thread, in order, through one
callable (``Emit``). Renderers match calls on ``tool_use_id``: ``ToolUseStarted`` comes in input
order, ``ToolResultReady`` as the calls finish (S1.21, S1.22, D27).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from midturn_core.dispatch.types import BatchReport, GateVerdict
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import StopReason, ToolUse, ToolUseResult, Usage
from midturn_core.permission.ask import Ask, AskReply
from midturn_core.queue.types import QueuedInput


class TurnEndReason(Enum):
    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    STEP_LIMIT = "step_limit"
    STALLED = "stalled"
    """Six steps in a row in which every call failed (D39)."""
    REFUSED = "refused"


class NoticeLevel(Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class CallPhase(Enum):
    """Where a call of a batch stands before its result."""

    WAITING = "waiting"
    """For a slot, or for the calls before it."""
    ASKING = "asking"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    context_id: AgentRuntimeId
    turn_id: str
    inputs: tuple[QueuedInput, ...]
    """What started it, in order; empty for a continuation (``/retry``)."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model request is about to be sent."""

    step: int
    """1-based within the turn."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolUseAnnounced:
    """The model has begun to write this tool use."""

    tool_use_id: str
    name: str


@dataclass(frozen=True, slots=True)
class MessageEnded:
    """The model's message is over; ``usage`` is of this request alone.

    ``cut`` says that a NOW input or an interrupt ended it early. ``duration_ms`` is the time from
    the request to here, of the try that came through: the round trip of S4.2.
    """

    stop_reason: StopReason
    usage: Usage
    cut: bool = False
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class MessageSuperseded:
    """The stream failed and the step starts over: what was shown of it no longer counts (D38)."""

    reason: str


@dataclass(frozen=True, slots=True)
class RetryWaiting:
    """A request failed and is sent again after ``delay`` seconds."""

    attempt: int
    attempts: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class ToolUseStartedEarly:
    """A call runs although the message that asks for it is not complete (D24).

    It is part of no batch yet: either ``BatchStarted`` follows and says everything about it, or
    the message is superseded and it never happened. ``title`` as in ``ToolUseStarted``.
    """

    tool_use_id: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class ToolUseEndedEarly:
    """A call that started early has its result, and its message is still not complete."""

    tool_use_id: str
    duration_ms: float


@dataclass(frozen=True, slots=True)
class BatchStarted:
    batch_id: str
    step: int
    count: int
    verdict: GateVerdict


@dataclass(frozen=True, slots=True)
class ToolUseStarted:
    """A call enters the batch. ``title`` is the argument that matters (untrusted text)."""

    batch_id: str
    index: int
    count: int
    tool_use: ToolUse
    title: str


@dataclass(frozen=True, slots=True)
class ToolPhaseChanged:
    tool_use_id: str
    phase: CallPhase


@dataclass(frozen=True, slots=True)
class ToolProgress:
    tool_use_id: str
    note: str


@dataclass(frozen=True, slots=True)
class ToolResultReady:
    batch_id: str
    index: int
    result: ToolUseResult


@dataclass(frozen=True, slots=True)
class BatchFinished:
    report: BatchReport


@dataclass(frozen=True, slots=True)
class AskRequested:
    """A question is on screen now (the gate lets one through at a time)."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class AskAnswered:
    ask: Ask
    reply: AskReply


@dataclass(frozen=True, slots=True)
class AskWithdrawn:
    ask: Ask
    reason: str


class DeliveryPoint(Enum):
    """Where a queued input reached the model."""

    STEP_BOUNDARY = "step_boundary"
    """After the tool results of a step."""
    STREAM_CUT = "stream_cut"
    """A NOW input cut the answer."""
    BEFORE_ANSWER = "before_answer"
    """A NOW input came while the model had not begun to answer."""
    TURN_END = "turn_end"
    """The model wanted to stop; the input was absorbed and the turn goes on."""
    OWN_TURN = "own_turn"


@dataclass(frozen=True, slots=True)
class InputsDelivered:
    """These queued inputs are in the history now."""

    inputs: tuple[QueuedInput, ...]
    point: DeliveryPoint
    step: int


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """``turn`` and ``session`` are sums; ``context_tokens`` is the newest request's size."""

    turn: Usage
    session: Usage
    context_tokens: int


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    automatic: bool


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    messages_before: int
    messages_after: int
    error: str = ""
    usage: Usage = Usage()
    """What the summary itself took; part of no turn's usage."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user must know, in one sentence (untrusted text may be in it)."""

    level: NoticeLevel
    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    context_id: AgentRuntimeId
    turn_id: str
    reason: TurnEndReason
    steps: int
    usage: Usage
    duration_ms: float
    error: str = ""
    """One sentence, when it failed."""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class SubagentEvent:
    """An event of a subagent's own turn; no other event of its turn is emitted.

    Only its questions come by themselves, with its context id: one gate asks for all agents.
    """

    context_id: AgentRuntimeId
    tool_use_id: str
    """The ``Task`` call of the main agent that it works for."""
    event: Event


Event: TypeAlias = (
    TurnStarted
    | StepStarted
    | TextDelta
    | ThinkingDelta
    | ToolUseAnnounced
    | MessageEnded
    | MessageSuperseded
    | RetryWaiting
    | ToolUseStartedEarly
    | ToolUseEndedEarly
    | BatchStarted
    | ToolUseStarted
    | ToolPhaseChanged
    | ToolProgress
    | ToolResultReady
    | BatchFinished
    | AskRequested
    | AskAnswered
    | AskWithdrawn
    | InputsDelivered
    | UsageChanged
    | CompactionStarted
    | CompactionFinished
    | Notice
    | TurnEnded
    | SubagentEvent
)

Emit: TypeAlias = Callable[[Event], None]
