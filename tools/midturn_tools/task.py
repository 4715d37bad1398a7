"""Task: gives one piece of work to a subagent and returns its last words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

from midturn_core.dispatch.slots import Permits
from midturn_core.events import TurnEndReason
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, JsonValue, TranscriptDetail
from midturn_core.permission.access import Access
from midturn_core.subagent.executor import SubagentTask
from midturn_core.subagent.outcome import SubagentOutcome
from midturn_core.subagent.types import TASK_TOOL, SubagentTypes
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._input import check_input, text

LONGEST = 7 * 24 * 3600.0
"""Seconds. The real limit is the subagent's own, which stands still while a person is asked."""
MAX_CALLS_TOLD = 30

_DESCRIPTION = """\
Gives a task to a subagent: an agent of its own with an empty history, which works until the task \
is done and returns one message. It sees nothing of this conversation, so the prompt must hold \
everything it needs, and say what to return. Worth it for work of many calls of which you need \
only the outcome; to read a known file or to search once, do it yourself. The user does not see \
the message: tell what matters of it. Types of subagents:
"""


class SubagentRunner(Protocol):
    """Runs a subagent to its end; ``SubagentExecutor`` is one."""

    @property
    def places(self) -> Permits:
        """One is held by each subagent that runs."""
        ...

    async def run(self, task: SubagentTask, context: ToolContext) -> SubagentOutcome: ...


class TaskTool:
    """One at a time, since a subagent can do whatever its own tools can; those of a read-only type
    may be let run together (D35).

    Checklist of S1.26 for these: (a) every tool they can have only reads; (b) what they share is
    the session's gate, rules, queue and dispatcher, each made for it, and their READ_FILES are
    their own; (c) a subagent is stopped by the signal of its call, never through a thread (S1.53);
    (d) interceptors are those of the session, which run concurrently anyway; (e) their own calls
    are under the limits of the dispatcher and of each host, and of their number there is a cap.
    """

    name = TASK_TOOL

    def __init__(
        self,
        types: SubagentTypes,
        runner: SubagentRunner,
        *,
        time_limit: float,
        together: bool = False,
    ) -> None:
        """``time_limit`` in seconds is the one that ``runner`` keeps; for what is said of it.
        ``together`` lets calls with read-only types run beside each other.
        """
        self._types = types
        self._runner = runner
        self._time_limit = time_limit
        self._together = together
        self.description = _DESCRIPTION + "\n".join(
            f"- {kind.name}: {kind.description}" for kind in types
        )
        self.input_schema: JsonObject = _schema(types)

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    @property
    def places(self) -> Permits:
        return self._runner.places

    def concurrency_of(self, tool_input: JsonObject) -> ConcurrencyBehavior:
        kind = self._types.get(text(tool_input, "subagent_type"))
        safe = self._together and kind is not None and kind.read_only
        return ConcurrencyBehavior.CONCURRENT_SAFE if safe else ConcurrencyBehavior.SEQUENTIAL

    def why_alone(self, tool_input: JsonObject) -> str:
        kind = self._types.get(text(tool_input, "subagent_type"))
        if kind is not None and kind.read_only:
            return (
                "runs alone, as subagents do: [subagents] parallel = true lets those that only "
                "read run together"
            )
        return (
            "starts a subagent that may change something, so its batch keeps the order; ask for "
            "what only reads in a request of its own"
        )

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.EXTERNALLY_TERMINATED

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return LONGEST

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, self.input_schema)
        for key in ("description", "prompt"):
            if not text(tool_input, key).strip():
                raise InvalidInputError(f"{key} must not be blank")

    def describe(self, tool_input: JsonObject) -> str:
        description = " ".join(text(tool_input, "description").split())
        return f"{text(tool_input, 'subagent_type')}: {description}"

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        # What the subagent touches is decided call by call, like for the main agent.
        return ()

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        kind = self._types.get(text(tool_input, "subagent_type"))
        assert kind is not None
        task = SubagentTask(kind, text(tool_input, "prompt"), context.tool_use_id)
        return told(await self._runner.run(task, context), kind.max_steps, self._time_limit)


def _schema(types: SubagentTypes) -> JsonObject:
    names: list[JsonValue] = list(types.names())
    return {
        "type": "object",
        "properties": {
            "description": {
                "type": "string",
                "minLength": 1,
                "maxLength": 100,
                "description": "The task in a few words, for the user.",
            },
            "prompt": {
                "type": "string",
                "minLength": 1,
                "maxLength": 100_000,
                "description": "The whole task, and what the answer must say.",
            },
            "subagent_type": {"type": "string", "enum": names},
        },
        "required": ["description", "prompt", "subagent_type"],
        "additionalProperties": False,
    }


def told(outcome: SubagentOutcome, max_steps: int, time_limit: float) -> ToolResult:
    """What the main agent gets: the answer, or why there is none and what there was by then."""
    summary, detail = _summary(outcome), TranscriptDetail(outcome.transcript)
    if outcome.reason is TurnEndReason.DONE and outcome.answer:
        return ToolResult(outcome.answer, summary=summary, detail=detail)
    interrupted = outcome.reason is TurnEndReason.INTERRUPTED
    if interrupted and outcome.cancelled_by is not CancelReason.TIMEOUT:
        return ToolResult(so_far(outcome), summary=summary, detail=detail, stopped=True)
    why = _why(outcome, max_steps, time_limit)
    error = f"{why}; its task is not done.\n\n{so_far(outcome)}"
    return ToolResult(error=error, summary=summary, detail=detail)


def so_far(outcome: SubagentOutcome) -> str:
    """What a subagent that did not finish had said and done."""
    said = f"Its last words were:\n\n{outcome.last_words}" if outcome.last_words else ""
    calls = outcome.calls[-MAX_CALLS_TOLD:]
    left_out = len(outcome.calls) - len(calls)
    listed = "\n".join(f"- {call}" for call in calls)
    earlier = f" (the last {len(calls)} of {len(outcome.calls)})" if left_out else ""
    done = f"Its calls{earlier}:\n\n{listed}" if calls else "It had made no call."
    return f"{done}\n\n{said or 'It had said nothing.'}"


def _why(outcome: SubagentOutcome, max_steps: int, time_limit: float) -> str:
    match outcome.reason:
        case TurnEndReason.DONE:
            return "the subagent ended without an answer"
        case TurnEndReason.INTERRUPTED:
            return f"the subagent was stopped at its time limit of {time_limit / 60:g} min"
        case TurnEndReason.STEP_LIMIT:
            return f"the subagent was stopped at its limit of {max_steps} steps"
        case TurnEndReason.STALLED:
            return "the subagent was stopped because all its calls failed, several steps in a row"
        case TurnEndReason.REFUSED:
            return "the model refused to go on with the subagent's task"
        case TurnEndReason.FAILED:
            return f"the subagent failed: {outcome.error.rstrip('.')}"
        case _:
            assert_never(outcome.reason)


def _summary(outcome: SubagentOutcome) -> str:
    parts = (
        _count(outcome.steps, "step"),
        _count(len(outcome.calls), "tool"),
        f"{_short(outcome.usage.context_tokens)} tokens",
    )
    return " · ".join(parts)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _short(tokens: int) -> str:
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}k"
