"""The words between the turn loop, the dispatcher and whoever runs one call.

The run of a call has two stages, because only the tool itself holds a slot (D30): ``prepare``
(validate, permission, question) comes before it, ``run`` is inside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from midturn_core.events import CallPhase
from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.interrupt import Signal, SignalSource
from midturn_core.model.messages import JsonObject, ToolUse, ToolUseResult
from midturn_core.permission.access import Access
from midturn_core.tool import BlockingRunner, Tool, ToolRegistry


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """The tool uses of one model response, in the order the model wrote them."""

    uses: tuple[ToolUse, ...]
    registry: ToolRegistry
    """The tools of the agent that asks; the gate judges by it."""
    context_id: AgentRuntimeId
    step: int = 1
    batch_id: str = field(default_factory=lambda: new_id("batch"))


@dataclass(frozen=True, slots=True)
class BatchSignals:
    """What can cut a batch: the turn's signal (Esc, Ctrl-C) and the batch's own (NOW, D36)."""

    turn: Signal
    batch: SignalSource

    @classmethod
    def under(cls, turn: SignalSource) -> BatchSignals:
        return cls(turn, turn.child())


@dataclass(frozen=True, slots=True)
class BatchCall:
    """One call of a batch, as its runner gets it."""

    tool_use: ToolUse
    batch_id: str
    step: int
    index: int
    """0-based place in the batch."""
    count: int
    """Calls of the batch; of one that starts early, those that are known by then."""
    signal: Signal
    """Trips when this call should stop; it may trip before the call has started."""
    announce: Callable[[CallPhase], None]
    """Say that the call is ASKING (a person's time does not count, D22) or WAITING again."""
    progress: Callable[[str], None]
    """Emit a ``ToolProgress``; safe on any thread, ignored once the call has its result."""
    when_kept: Callable[[Callable[[], None]], None] | None = None
    """Set for a call that starts before its message is complete (D24): runs a function as soon as
    the message counts, or never. What outlives the call must not change before."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: its input is valid, final and permitted."""

    call: BatchCall
    tool: Tool
    tool_input: JsonObject
    accesses: tuple[Access, ...] = ()
    """What was permitted; the tool touches exactly this."""
    complete: Callable[[ToolUseResult], Awaitable[ToolUseResult]] | None = None
    """What follows the tool once its slot was given back (D30); None: nothing."""


class CallRunner(Protocol):
    """Runs single calls. It may raise: the dispatcher turns an exception into a result."""

    def title(self, tool_use: ToolUse) -> str:
        """The argument that matters, on one line; empty when the input is not valid."""
        ...

    def may_start_early(self, call: BatchCall) -> bool:
        """Whether the input is valid and the call permitted without a question, as things stand
        now (D24). Never asks; ``prepare`` still comes before the tool.
        """
        ...

    async def prepare(self, call: BatchCall) -> PreparedCall | ToolUseResult | None:
        """Everything before the slot. A result means that the tool does not run.

        Cancelled when the call is skipped: a question on screen is then withdrawn.
        """
        ...

    async def run(
        self, prepared: PreparedCall, run_blocking: BlockingRunner
    ) -> ToolUseResult | None:
        """Run the tool. None counts as a failure (S1.24).

        A cancelled run whose signal has tripped may return what it has instead of raising.
        """
        ...
