"""``ToolCallRunner``: the stages of one call (D30): validate, interceptors, validate again,
permission on the final input, the tool, interceptors.

The dispatcher decides when each stage runs; what is permitted is decided by ``authorize``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from midturn_core.dispatch import results
from midturn_core.dispatch.runner import BatchCall, PreparedCall
from midturn_core.interceptors.interceptor import Deny, ToolInterceptors
from midturn_core.interceptors.stage import InterceptorStage
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult
from midturn_core.permission.access import Access
from midturn_core.read_files import StagedReads
from midturn_core.tool import (
    BlockingRunner,
    InvalidInputError,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call with a valid input that waits for permission."""

    call: BatchCall
    tool: Tool
    accesses: tuple[Access, ...]
    """Everything the call would touch, for the permission policy."""
    must_ask: str = ""
    """Why an interceptor wants a person to be asked; empty: the policy alone decides."""
    context: ToolContext | None = None
    """For looking at what the call would meet, before a question; it runs nothing."""


Authorize: TypeAlias = Callable[[PendingCall], Awaitable[ToolUseResult | None]]
"""None permits the call; a result (see ``denied``) is its answer instead."""

Permits: TypeAlias = Callable[[PendingCall], bool]
"""Whether a call would be permitted now without a question."""

ContextFactory: TypeAlias = Callable[[BatchCall, BlockingRunner], ToolContext]


def denied(use: ToolUse, why: str) -> ToolUseResult:
    """The result of a call that a person or a rule refused."""
    return results.failed(use, why, Outcome.DENIED)


class ToolCallRunner:
    """Implements ``CallRunner`` over the tools of one agent."""

    def __init__(
        self,
        registry: ToolRegistry,
        authorize: Authorize,
        context_factory: ContextFactory,
        interceptors: ToolInterceptors | None = None,
        permits: Permits | None = None,
    ) -> None:
        """``permits`` None: no call starts early, every one waits for its message (D24)."""
        self._registry = registry
        self._authorize = authorize
        self._context_factory = context_factory
        self._permits = permits
        self._interceptors = interceptors if interceptors is not None else ToolInterceptors()

    def title(self, tool_use: ToolUse) -> str:
        tool = self._registry.get(tool_use.name)
        if tool is None or self._refusal(tool_use) is not None:
            return ""
        return tool.describe(tool_use.input)

    def may_start_early(self, call: BatchCall) -> bool:
        """Never while there are interceptors: what they will say, and whether they ask, only
        their run tells, and a call that is dropped must not have been seen by them.
        """
        tool = self._registry.get(call.tool_use.name)
        if self._permits is None or self._interceptors.current or tool is None:
            return False
        return self._refusal(call.tool_use) is None and self._permits(self._pending(call, tool))

    async def prepare(self, call: BatchCall) -> PreparedCall | ToolUseResult:
        use = call.tool_use
        tool = self._registry.get(use.name)
        if tool is None:
            known = ", ".join(self._registry.names()) or "none"
            return results.failed(use, f"there is no tool named {use.name}; the tools are: {known}")
        refusal = self._refusal(use)
        if refusal is not None:
            return refusal
        if self._interceptors.current:
            return await self._prepare_intercepted(call, tool)
        return await self._permit(call, tool)

    async def run(self, prepared: PreparedCall, run_blocking: BlockingRunner) -> ToolUseResult:
        context = replace(
            self._context_factory(prepared.call, run_blocking), accesses=prepared.accesses
        )
        if prepared.call.when_kept is not None:
            reads = StagedReads(context.read_files)
            context = replace(context, read_files=reads.files)
            prepared.call.when_kept(reads.keep)
        clock = asyncio.get_running_loop().time
        started = clock()
        result = await prepared.tool.run(prepared.tool_input, context)
        return to_use_result(prepared.call, result, clock() - started)

    async def _prepare_intercepted(
        self, call: BatchCall, tool: Tool
    ) -> PreparedCall | ToolUseResult:
        context = self._context_factory(call, _no_slot_yet)
        stage = InterceptorStage(self._interceptors, call, context)
        decision = await stage.before()
        if isinstance(decision, Deny):
            return denied(call.tool_use, decision.reason)
        if decision.tool_input is not None:
            # From here on there is no other input: permission, question and tool all see this one.
            call = replace(call, tool_use=replace(call.tool_use, input=decision.tool_input))
            refusal = self._refusal(
                call.tool_use, "an interceptor changed the input, which is now "
            )
            if refusal is not None:
                return refusal
        prepared = await self._permit(call, tool, decision.ask)
        if isinstance(prepared, PreparedCall):
            return replace(prepared, complete=stage.after)
        return prepared

    async def _permit(
        self, call: BatchCall, tool: Tool, must_ask: str = ""
    ) -> PreparedCall | ToolUseResult:
        """Decide on the final input (D30)."""
        pending = self._pending(call, tool, must_ask)
        answer = await self._authorize(pending)
        if answer is not None:
            return answer
        return PreparedCall(call, tool, call.tool_use.input, pending.accesses)

    def _pending(self, call: BatchCall, tool: Tool, must_ask: str = "") -> PendingCall:
        context = self._context_factory(call, _no_slot_yet)
        accesses = tuple(tool.access(call.tool_use.input, context))
        context = replace(context, accesses=accesses)
        return PendingCall(call, tool, accesses, must_ask, context)

    def _refusal(self, use: ToolUse, how: str = "") -> ToolUseResult | None:
        if use.input_error is not None:
            return results.failed(
                use,
                f"the input is not readable JSON ({use.input_error}); "
                "send the call again with one complete JSON object",
            )
        tool = self._registry.get(use.name)
        assert tool is not None
        try:
            tool.validate(use.input)
        except InvalidInputError as error:
            return results.failed(use, f"{how}invalid input for {use.name}: {error}")
        return None


def to_use_result(call: BatchCall, result: ToolResult, seconds: float) -> ToolUseResult:
    """What the model and the screen get of a tool's answer (D32)."""
    use = call.tool_use
    if result.stopped:
        partial = result.output or ""
        answer = results.stopped(use, seconds, call.signal.reason, partial)
    elif result.error is not None:
        answer = results.failed(use, result.error)
    else:
        answer = ToolUseResult(use.id, use.name, Outcome.SUCCEEDED, result.output or "")
    return results.shown(answer, result.summary, result.detail)


async def _no_slot_yet(function: Callable[[], T]) -> T:
    raise RuntimeError("blocking work belongs into run, where the call holds a slot")
