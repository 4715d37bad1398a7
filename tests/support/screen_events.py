"""Short ways to write the events of a turn."""

from __future__ import annotations

from collections.abc import Mapping

from midturn_cli.ui_events import StatusInfo
from midturn_core.dispatch.types import BatchReport, CallReport, GateVerdict, SequentialCause
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    CallPhase,
    Event,
    MessageEnded,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStarted,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import (
    Outcome,
    StopReason,
    ToolDetail,
    ToolUse,
    ToolUseResult,
    Usage,
)
from midturn_core.permission.ask import Ask
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

MAIN = AgentRuntimeId("session")
SUB = AgentRuntimeId("session", "sub-1")
STATUS = StatusInfo("model-x", False, "default", False, 4, 4, 34, 12_300)
PARALLEL = GateVerdict(parallel=True)
SEQUENTIAL = GateVerdict(parallel=False, cause=SequentialCause.SINGLE_CALL)
SWITCHED_OFF = GateVerdict(parallel=False, cause=SequentialCause.DISABLED, would_pass=True)


def typed(
    text: str,
    priority: QueuedInputPriority = QueuedInputPriority.NEXT,
    metadata: Mapping[str, str] | None = None,
) -> QueuedInput:
    return QueuedInput(text, MAIN, priority, metadata=metadata or {})


def turn_started(*inputs: QueuedInput) -> TurnStarted:
    return TurnStarted(MAIN, "turn-1", inputs)


def turn_ended(
    reason: TurnEndReason = TurnEndReason.DONE, *, error: str = "", way_out: str = ""
) -> TurnEnded:
    return TurnEnded(MAIN, "turn-1", reason, 3, Usage(), 12_000, error, way_out)


def message_ended(
    stop_reason: StopReason = StopReason.END_TURN, *, cut: bool = False, took_ms: float = 0.0
) -> Event:
    return MessageEnded(stop_reason, Usage(), cut, took_ms)


def batch_started(count: int, verdict: GateVerdict = PARALLEL) -> BatchStarted:
    return BatchStarted("batch", 1, count, verdict)


def call_started(index: int, count: int, name: str = "Read", title: str = "") -> ToolUseStarted:
    title = title or f"src/{index}.py"
    return ToolUseStarted("batch", index, count, ToolUse(f"use-{index}", name), title)


def call_runs(index: int) -> ToolPhaseChanged:
    return ToolPhaseChanged(f"use-{index}", CallPhase.RUNNING)


def call_ready(
    index: int,
    outcome: Outcome = Outcome.SUCCEEDED,
    *,
    content: str = "",
    summary: str = "",
    detail: ToolDetail | None = None,
    ran: bool = True,
) -> ToolResultReady:
    took = 45.0 + index if ran else 0.0
    result = ToolUseResult(f"use-{index}", "Read", outcome, content, took, summary, detail)
    return ToolResultReady("batch", index, result)


def batch_finished(*outcomes: Outcome, verdict: GateVerdict = PARALLEL) -> BatchFinished:
    calls = tuple(
        CallReport(index, ToolUse(f"use-{index}", "Read"), outcome, 100.0, 0.0, 0.1)
        for index, outcome in enumerate(outcomes)
    )
    return BatchFinished(BatchReport("batch", verdict, calls, 156.0, 311.0, 120.0))


def ask(body: str = "git push", *, index: int = 0, count: int = 1, rule: str = "") -> Ask:
    return Ask(
        f"ask-{index}",
        MAIN,
        f"use-{index}",
        "Bash",
        f"Bash: {body}",
        body,
        "no rule allows it",
        index,
        count,
        session_rule=rule,
    )
