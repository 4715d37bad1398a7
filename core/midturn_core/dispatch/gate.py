"""The gate: may these tool uses run together, and if not, why (S1.17-S1.20, S1.51).

Pure. The model's intent (several calls in one response) is never enough: every tool of the batch
must declare itself safe, and one doubtful call makes the whole batch sequential, the safe ones
included: a read before an edit and a read after it are not the same read (S1.52). With
``mixed = "segments"`` such a batch keeps its order too, but neighbouring safe calls share their
place in it (D23). Tools that can only be stopped from outside stay out even when declared safe,
unless each call has a terminator of its own (``PerCallConcurrency``, S1.53), and so do tools of MCP
servers, whose claims nobody has reviewed (S1.54).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.segments import one_by_one, split
from midturn_core.dispatch.types import GateVerdict, SequentialCause
from midturn_core.model.messages import ToolUse
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    PerCallConcurrency,
    Tool,
    ToolRegistry,
)

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
    why: str = ""


_PER_CALL = frozenset(
    {
        SequentialCause.SEQUENTIAL_TOOL,
        SequentialCause.INTERRUPT_BEHAVIOR,
        SequentialCause.UNKNOWN_TOOL,
    }
)
"""Causes that are one call's alone: the others of its batch may still have safe neighbours."""


def judge(
    uses: Sequence[ToolUse], registry: ToolRegistry, config: ToolConcurrencyConfig, closed: bool
) -> GateVerdict:
    """Decide how a batch runs. The switch is looked at first, then the size, then each call."""
    obstacle = _first_obstacle(uses, registry, closed)
    neighbours = _neighbours(uses, registry, obstacle)
    keeps_neighbours = obstacle is None or config.mixed == "segments"
    planned = neighbours if keeps_neighbours else one_by_one(len(uses))
    passes = _some_together(planned)
    verdict = GateVerdict(
        parallel=config.enabled and passes,
        would_pass=passes,
        segments=planned if config.enabled else one_by_one(len(uses)),
        planned=planned,
        segments_would_help=not passes and _some_together(neighbours),
    )
    if not config.enabled and (passes or obstacle is None):
        return replace(verdict, cause=SequentialCause.DISABLED)
    if obstacle is None:
        return verdict
    return replace(
        verdict,
        cause=obstacle.cause if config.enabled else SequentialCause.DISABLED,
        next_cause=None if config.enabled else obstacle.cause,
        call_index=obstacle.call_index,
        tool_name=obstacle.tool_name,
        why=obstacle.why,
    )


def explain(verdict: GateVerdict) -> str:
    """One sentence for the user: how the batch ran, why, and what to change."""
    if verdict.cause is None:
        return "These calls run together: there are several and each is declared safe."
    if verdict.cause is not SequentialCause.DISABLED:
        because = _because(verdict.cause, verdict)
        if verdict.parallel:
            return f"Safe calls that stand side by side run together, in their order: {because}."
        return f"These calls run one after another: {because}."
    if verdict.next_cause is None:
        return "Parallel execution is off: switch it on with /parallel on to run these together."
    because = _because(verdict.next_cause, verdict)
    return f"Parallel execution is off, and /parallel on would not change this batch: {because}."


def may_run_together(tool: Tool) -> bool:
    """Whether calls of a tool can be part of a parallel batch."""
    return _obstacle_of(tool) is None


def is_safe(use: ToolUse, registry: ToolRegistry) -> bool:
    """Whether this call may run beside its neighbours, as far as its tool is concerned."""
    return _obstacle_in(use, registry) is None


def shares_workers(use: ToolUse, registry: ToolRegistry, verdict: GateVerdict) -> bool:
    """Whether this call runs on the dispatch pool and holds its slot while it runs.

    Any other call holds none: it may run a subagent whose own batches need slots.
    """
    tool = registry.get(use.name)
    return verdict.parallel and tool is not None and may_run_together(tool)


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
        cause = _obstacle_in(use, registry)
        if cause is not None:
            return _Obstacle(cause, index, use.name, _why_alone(use, registry))
    return None


def _neighbours(
    uses: Sequence[ToolUse], registry: ToolRegistry, obstacle: _Obstacle | None
) -> tuple[range, ...]:
    if obstacle is None:
        return (range(len(uses)),)
    if obstacle.cause in _PER_CALL:
        return split([is_safe(use, registry) for use in uses])
    return one_by_one(len(uses))


def _some_together(segments: Sequence[range]) -> bool:
    return any(len(segment) > 1 for segment in segments)


def _obstacle_in(use: ToolUse, registry: ToolRegistry) -> SequentialCause | None:
    tool = registry.get(use.name)
    if isinstance(tool, PerCallConcurrency):
        safe = tool.concurrency_of(use.input) is ConcurrencyBehavior.CONCURRENT_SAFE
        return None if safe else SequentialCause.SEQUENTIAL_TOOL
    return _obstacle_of(tool)


def _why_alone(use: ToolUse, registry: ToolRegistry) -> str:
    tool = registry.get(use.name)
    return tool.why_alone(use.input) if isinstance(tool, PerCallConcurrency) else ""


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
    way_out = "a request of its own"
    if verdict.segments_would_help:
        way_out += ", or let its safe neighbours run together with /parallel mixed segments"
    match cause:
        case SequentialCause.DISABLED:
            return "parallel execution is off (/parallel on)"
        case SequentialCause.SINGLE_CALL:
            return (
                "the model asked for one call only, and it takes two in one response; "
                "ask for independent things in one request"
            )
        case SequentialCause.SEQUENTIAL_TOOL if verdict.why:
            return f"{call} {verdict.why}"
        case SequentialCause.SEQUENTIAL_TOOL:
            return (
                f"{call} may change something, so its batch keeps the order; "
                f"ask for what only reads in {way_out}"
            )
        case SequentialCause.INTERRUPT_BEHAVIOR:
            return (
                f"{call} can only be stopped from outside, which a shared worker does not allow; "
                f"ask for it in {way_out}"
            )
        case SequentialCause.UNKNOWN_TOOL:
            return f"there is no tool named {call}; /tools lists those that exist"
        case SequentialCause.CLOSED:
            return "the dispatcher is closed; start Midturn again to run calls together"
        case _:
            assert_never(cause)
