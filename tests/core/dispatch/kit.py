"""Batches of probe tools whose course a test controls, run by the real dispatcher and runner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from midturn_core.call_runner import Authorize, PendingCall, Permits, ToolCallRunner
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import BatchCall, BatchSignals, CallRunner, ToolBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.events import Event, ToolPhaseChanged, ToolResultReady, ToolUseStarted
from midturn_core.ids import AgentRuntimeId
from midturn_core.interceptors.interceptor import ToolInterceptors
from midturn_core.interrupt import SignalSource
from midturn_core.model.messages import JsonObject, JsonValue, ToolUse, ToolUseResult
from midturn_core.permission.access import Access
from midturn_core.read_files import ReadFiles
from midturn_core.tool import (
    BlockingRunner,
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
)

E = TypeVar("E")

CONTEXT = AgentRuntimeId("dispatch-tests")
DEADLINE = 20.0
"""Seconds after which a test that waits for something that does not come fails."""
QUICK = StopLimits(join=0.05, grace=0.01)
"""For tests whose calls refuse to stop."""

Body = Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]


async def answer(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult(f"output of {context.tool_use_id}")


@dataclass
class ProbeTool:
    """A tool whose run is a function of the test."""

    name: str
    body: Body = answer
    concurrency: ConcurrencyBehavior = ConcurrencyBehavior.CONCURRENT_SAFE
    interrupt: InterruptBehavior = InterruptBehavior.COOPERATIVE
    limit: float | None = None
    description: str = "a probe"
    input_schema: JsonObject = field(default_factory=dict[str, JsonValue])

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return self.concurrency

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return self.interrupt

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return self.limit

    def validate(self, tool_input: JsonObject) -> None:
        if "bad" in tool_input:
            raise InvalidInputError("'bad' is not allowed; allowed: nothing")

    def describe(self, tool_input: JsonObject) -> str:
        return f"title of {tool_input.get('n', '?')}"

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return ()

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return await self.body(tool_input, context)


def safe(name: str, body: Body = answer, limit: float | None = None) -> ProbeTool:
    return ProbeTool(name, body, limit=limit)


def reader(name: str, body: Body = answer) -> ProbeTool:
    return ProbeTool(name, body, interrupt=InterruptBehavior.NON_INTERRUPTIBLE)


def shell(name: str, body: Body = answer, limit: float | None = 60.0) -> ProbeTool:
    return ProbeTool(
        name,
        body,
        ConcurrencyBehavior.SEQUENTIAL,
        InterruptBehavior.EXTERNALLY_TERMINATED,
        limit,
    )


def writer(name: str, body: Body = answer) -> ProbeTool:
    return ProbeTool(
        name, body, ConcurrencyBehavior.SEQUENTIAL, InterruptBehavior.NON_INTERRUPTIBLE
    )


async def allow(pending: PendingCall) -> ToolUseResult | None:
    return None


def permit(pending: PendingCall) -> bool:
    return True


class Latch:
    """A tool body that counts who is inside and lets nobody out before ``open``."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.entered: list[str] = []
        self.peak = 0
        self._open = asyncio.Event()
        self._changed = asyncio.Condition()

    async def __call__(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        self.inside.append(context.tool_use_id)
        self.entered.append(context.tool_use_id)
        self.peak = max(self.peak, len(self.inside))
        await self._notify()
        try:
            await self._open.wait()
        finally:
            self.inside.remove(context.tool_use_id)
        return ToolResult(f"output of {context.tool_use_id}")

    def open(self) -> None:
        self._open.set()

    async def until_inside(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.inside) >= count)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def uses_of(*names: str) -> tuple[ToolUse, ...]:
    return tuple(ToolUse(f"call-{n}", name, {"n": n}) for n, name in enumerate(names))


class Bench:
    """A dispatcher, the tools of an agent, and everything that was emitted."""

    def __init__(
        self,
        *tools: Tool,
        config: ToolConcurrencyConfig | None = None,
        limits: StopLimits | None = None,
        authorize: Authorize = allow,
        interceptors: ToolInterceptors | None = None,
        permits: Permits = permit,
    ) -> None:
        self.dispatcher = DefaultParallelToolDispatcher(
            config if config is not None else ToolConcurrencyConfig.on(8), limits
        )
        self.registry = ToolRegistry(tools)
        self.turn = SignalSource()
        self.signals = BatchSignals.under(self.turn)
        self.events: list[Event] = []
        self.runner: CallRunner = ToolCallRunner(
            self.registry, authorize, self._context, interceptors, permits
        )
        self.reads = ReadFiles()
        self._emitted = asyncio.Event()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self._emitted.set()

    def batch(self, *names: str) -> ToolBatch:
        return ToolBatch(uses_of(*names), self.registry, CONTEXT)

    async def run(self, *names: str) -> BatchOutcome:
        return await self.run_batch(self.batch(*names))

    async def run_batch(self, batch: ToolBatch) -> BatchOutcome:
        async with asyncio.timeout(DEADLINE):
            return await self.dispatcher.dispatch(batch, self.runner, self.emit, self.signals)

    def start(self, *names: str) -> asyncio.Task[BatchOutcome]:
        return asyncio.create_task(self.run(*names))

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def started(self) -> list[str]:
        return [event.tool_use.id for event in self.of(ToolUseStarted)]

    def ready(self) -> list[str]:
        return [event.result.tool_use_id for event in self.of(ToolResultReady)]

    def phases(self, tool_use_id: str) -> list[str]:
        changes = self.of(ToolPhaseChanged)
        return [event.phase.value for event in changes if event.tool_use_id == tool_use_id]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for events until the condition holds."""
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._emitted.clear()
                await self._emitted.wait()

    def _context(self, call: BatchCall, run_blocking: BlockingRunner) -> ToolContext:
        return ToolContext(
            context_id=CONTEXT,
            workspace=Path.cwd(),
            read_files=self.reads,
            signal=call.signal,
            run_blocking=run_blocking,
            progress=call.progress,
            tool_use_id=call.tool_use.id,
            attributes={"of": "the bench"},
        )


def ids(count: int) -> list[str]:
    return [f"call-{n}" for n in range(count)]


def result_ids(outcome: BatchOutcome) -> list[str]:
    return [result.tool_use_id for result in outcome.results]


def outcomes(outcome: BatchOutcome) -> list[str]:
    return [result.outcome.value for result in outcome.results]


def contents(outcome: BatchOutcome) -> list[str]:
    return [result.content for result in outcome.results]
