"""The gate: may these tool uses run together, and if not, why (S1.17-S1.20, S1.51).

Pure. The model's intent (several calls in one response) is never enough: every tool of the batch
must declare itself safe, and one doubtful call makes the whole batch sequential, the safe ones
included: a read before an edit and a read after it are not the same read (S1.52). Tools that can
only be stopped from outside stay out even when declared safe (S1.53), and so do tools of MCP
servers, whose claims nobody has reviewed (S1.54).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.types import GateVerdict, SequentialCause
from midturn_core.model.messages import ToolUse
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, Tool, ToolRegistry

SHAREABLE_INTERRUPTS = frozenset(
    {InterruptBehavior.NON_INTERRUPTIBLE, InterruptBehavior.COOPERATIVE}
)
"""The others register a terminator against the executing thread, ambiguous on a shared worker
(S1.20)."""


@dataclass(frozen=True, slots=True)
class _Obstacle:
    cause: SequentialCause
    call_index: int | None = None
    tool_name: str = ""


def judge(
    uses: Sequence[ToolUse], registry: ToolRegistry, config: ToolConcurrencyConfig, closed: bool
) -> GateVerdict:
    """Decide how a batch runs. The switch is looked at first, then the size, then each call."""
    obstacle = _first_obstacle(uses, registry, closed)
    if config.enabled and obstacle is None:
        return GateVerdict(parallel=True, would_pass=True)
    found = obstacle or _Obstacle(SequentialCause.DISABLED)
    return GateVerdict(
        parallel=False,
        cause=found.cause if config.enabled else SequentialCause.DISABLED,
        call_index=found.call_index,
        tool_name=found.tool_name,
        would_pass=obstacle is None,
        next_cause=None if config.enabled or obstacle is None else obstacle.cause,
    )


def explain(verdict: GateVerdict) -> str:
    """One sentence for the user: how the batch ran, why, and what to change."""
    if verdict.cause is None:
        return "These calls run together: there are several and each is declared safe."
    if verdict.cause is not SequentialCause.DISABLED:
        return f"These calls run one after another: {_because(verdict.cause, verdict)}."
    if verdict.next_cause is None:
        return "Parallel execution is off: switch it on with /parallel on to run these together."
    because = _because(verdict.next_cause, verdict)
    return f"Parallel execution is off, and /parallel on would not change this batch: {because}."


def may_run_together(tool: Tool) -> bool:
    """Whether calls of a tool can be part of a parallel batch."""
    return _obstacle_of(tool) is None


def describe_tools(registry: ToolRegistry) -> str:
    """Which tools may run together and which stay one at a time, in two sentences."""
    together = [tool.name for tool in registry if may_run_together(tool)]
    alone = [tool.name for tool in registry if not may_run_together(tool)]
    return (
        f"May run together: {', '.join(together) or 'none'}. "
        f"One at a time, with everything asked for beside them: {', '.join(alone) or 'none'}."
    )


def _first_obstacle(
    uses: Sequence[ToolUse], registry: ToolRegistry, closed: bool
) -> _Obstacle | None:
    if closed:
        return _Obstacle(SequentialCause.CLOSED)
    if len(uses) < 2:
        return _Obstacle(SequentialCause.SINGLE_CALL)
    for index, use in enumerate(uses):
        cause = _obstacle_of(registry.get(use.name))
        if cause is not None:
            return _Obstacle(cause, index, use.name)
    return None


def _obstacle_of(tool: Tool | None) -> SequentialCause | None:
    if tool is None:
        return SequentialCause.UNKNOWN_TOOL
    if tool.get_concurrency_behavior() is not ConcurrencyBehavior.CONCURRENT_SAFE:
        return SequentialCause.SEQUENTIAL_TOOL
    if tool.get_interrupt_behavior() not in SHAREABLE_INTERRUPTS:
        return SequentialCause.INTERRUPT_BEHAVIOR
    return None


def _because(cause: SequentialCause, verdict: GateVerdict) -> str:
    call = f"{verdict.tool_name} (call {(verdict.call_index or 0) + 1})"
    match cause:
        case SequentialCause.DISABLED:
            return "parallel execution is off (/parallel on)"
        case SequentialCause.SINGLE_CALL:
            return (
                "the model asked for one call only, and it takes two in one response; "
                "ask for independent things in one request"
            )
        case SequentialCause.SEQUENTIAL_TOOL:
            return (
                f"{call} may change something, so its batch keeps the order; "
                "ask for what only reads in a request of its own"
            )
        case SequentialCause.INTERRUPT_BEHAVIOR:
            return (
                f"{call} can only be stopped from outside, which a shared worker does not allow; "
                "ask for it in a request of its own"
            )
        case SequentialCause.UNKNOWN_TOOL:
            return f"there is no tool named {call}; /tools lists those that exist"
        case SequentialCause.CLOSED:
            return "the dispatcher is closed; start Midturn again to run calls together"
        case _:
            assert_never(cause)
