"""Events as JSON objects, one a line, for ``--output-format stream-json``."""

from __future__ import annotations

from midturn_cli.ui_events import UiEvent
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    InputsDelivered,
    MessageEnded,
    MessageSuperseded,
    Notice,
    RetryWaiting,
    StepStarted,
    SubagentEvent,
    TextDelta,
    ToolResultReady,
    ToolUseStarted,
    TurnStarted,
)
from midturn_core.model.messages import JsonValue

Json = dict[str, JsonValue]


def event_to_json(event: UiEvent) -> Json | None:
    """The object of an event; None for events that only a screen needs."""
    match event:
        case TurnStarted():
            return {"type": "turn_started", "context": str(event.context_id)}
        case StepStarted(step):
            return {"type": "step_started", "step": step}
        case TextDelta(text):
            return {"type": "text", "text": text}
        case MessageEnded(stop_reason, _, cut):
            return {"type": "message_ended", "stop_reason": stop_reason.value, "cut": cut}
        case MessageSuperseded(reason):
            return {"type": "message_superseded", "reason": reason}
        case RetryWaiting(attempt, attempts, delay, reason):
            return {
                "type": "retry",
                "attempt": attempt,
                "attempts": attempts,
                "delay_s": delay,
                "reason": reason,
            }
        case InputsDelivered(inputs, point, step):
            texts: list[JsonValue] = [item.input_text for item in inputs]
            return {"type": "inputs_delivered", "at": point.value, "step": step, "texts": texts}
        case Notice(level, text):
            return {"type": "notice", "level": level.value, "text": text}
        case SubagentEvent():
            return _subagent_event(event)
        case _:
            return _tool_event(event)


def _subagent_event(event: SubagentEvent) -> Json | None:
    """The event of the subagent as it would be by itself, with whose it is."""
    inner = event_to_json(event.event)
    if inner is None:
        return None
    return {
        "type": "subagent",
        "context": str(event.context_id),
        "task": event.tool_use_id,
        "event": inner,
    }


def _tool_event(event: UiEvent) -> Json | None:
    match event:
        case BatchStarted(batch_id, _, count, verdict):
            return {
                "type": "batch_started",
                "batch": batch_id,
                "count": count,
                "parallel": verdict.parallel,
                "cause": verdict.cause.value if verdict.cause else None,
            }
        case ToolUseStarted(batch_id, index, _, use):
            return {
                "type": "tool_started",
                "batch": batch_id,
                "index": index,
                "id": use.id,
                "name": use.name,
                "input": dict(use.input),
            }
        case ToolResultReady(batch_id, index, result):
            return {
                "type": "tool_result",
                "batch": batch_id,
                "index": index,
                "id": result.tool_use_id,
                "name": result.name,
                "outcome": result.outcome.value,
                "content": result.content,
                "duration_ms": round(result.duration_ms, 1),
            }
        case BatchFinished(report):
            return {
                "type": "batch_finished",
                "batch": report.batch_id,
                "wall_ms": round(report.wall_ms, 1),
                "sequential_ms": round(report.sequential_ms, 1),
            }
        case _:
            return None
