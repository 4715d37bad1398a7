"""``SubagentExecutor``: runs one subagent from its task to its one outcome.

A subagent is an agent like the main one: the same loop with a context id, a history, a prompt,
tools, limits and READ_FILES of its own. It shares the session's permission rules, the gate that
asks one question at a time, and the queue, of which it sees its own context alone (S2.15).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from midturn_core.agent import Agent, AgentParts, ModelSettings
from midturn_core.batches import ToolBatches
from midturn_core.call_runner import ToolCallRunner
from midturn_core.conversation import Conversation
from midturn_core.delivery import DeliveryRules, InputDelivery
from midturn_core.dispatch.clock import BatchClock
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher, ParallelToolDispatcher
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import BatchCall
from midturn_core.dispatch.slots import Slots
from midturn_core.events import Emit, TurnEnded
from midturn_core.execution import InterceptingExecutor
from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.interceptors.interceptor import ToolInterceptors
from midturn_core.interrupt import CancelReason, InterruptCoordinator
from midturn_core.ledger.entries import LedgerBatch
from midturn_core.model.client import ModelClient
from midturn_core.model.messages import Usage
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.stage import PermissionStage
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.metrics import QueueMetricsInterceptor
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.queue.types import QueuedInput
from midturn_core.read_files import ReadFiles
from midturn_core.subagent.outcome import SubagentOutcome
from midturn_core.subagent.types import SubagentType
from midturn_core.subagent.watch import SubagentWatch
from midturn_core.tool import BlockingRunner, Tool, ToolContext, ToolRegistry

DEFAULT_TIME_LIMIT = 1800.0
"""Seconds of one subagent; the time in which a person is asked does not count (D22)."""
STOP_LIMITS = StopLimits(join=1.5, grace=1.0)
"""Shorter than those of the ``Task`` call around it, so that what a stopped subagent had so far
still reaches the main agent."""


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """What a subagent is to do, for the ``Task`` call of this id."""

    kind: SubagentType
    prompt: str
    tool_use_id: str


@dataclass(frozen=True, slots=True)
class SubagentParts:
    """What the subagents of a session share with it and with each other."""

    session: str
    workspace: Path
    model: ModelClient
    model_settings: ModelSettings
    """Those of the session; read when a subagent starts."""
    tools: Callable[[], Iterable[Tool]]
    """All tools of the session; each subagent gets those of its type."""
    authorizer: Authorizer
    queue: MessageQueueManager
    reminders: SystemReminderFormatter
    system_prompt: Callable[[SubagentType, bool], str]
    """The second argument says whether calls of one response may run together (S4.13)."""
    emit: Emit
    on_usage: Callable[[Usage], None]
    """Told what subagents spend, as they spend it."""
    interceptors: ToolInterceptors | None = None
    """Those of the session: they look at the calls of subagents too."""
    record_batch: Callable[[LedgerBatch], None] | None = None
    """Keeps the entries of the ledger with the session."""
    parallel: Callable[[], bool] = lambda: False
    """Whether parallel execution is on in the session now."""
    first_number: int = 1
    """Of the first subagent: a session that is resumed gives no context id twice (D14)."""
    most: int = 3
    """Subagents that run at once."""
    time_limit: float = DEFAULT_TIME_LIMIT


class SubagentExecutor:
    """Starts subagents; one for a whole session.

    The calls of a subagent run one after another, unless a dispatcher is set (S1.11). Whoever
    starts one holds one of its ``places`` meanwhile.
    """

    def __init__(self, parts: SubagentParts) -> None:
        self._parts = parts
        self._numbers = itertools.count(parts.first_number)
        self.places = Slots(parts.most)
        self._running: set[AgentRuntimeId] = set()
        self._dispatcher: ParallelToolDispatcher | None = None
        self.metrics = QueueMetricsInterceptor(parts.queue)
        self._executor = InterceptingExecutor.builder().add_interceptor(self.metrics).build()

    def with_parallel_tool_dispatcher(
        self, dispatcher: ParallelToolDispatcher | None
    ) -> SubagentExecutor:
        """Let later subagents run their batches on this dispatcher, which stays its owner's;
        None: one call at a time (S1.10).
        """
        self._dispatcher = dispatcher
        return self

    @property
    def running(self) -> frozenset[AgentRuntimeId]:
        return frozenset(self._running)

    async def run(self, task: SubagentTask, context: ToolContext) -> SubagentOutcome:
        """Run a subagent to its end. ``context`` is that of the ``Task`` call: its signal stops
        the subagent and everything that it runs.

        Cancelling it stops the subagent's batch, joins it and raises again.
        """
        if self._dispatcher is not None:
            return await self._run(task, context, self._dispatcher)
        dispatcher = DefaultParallelToolDispatcher(limits=STOP_LIMITS)
        try:
            return await self._run(task, context, dispatcher)
        finally:
            await dispatcher.close()

    async def _run(
        self, task: SubagentTask, context: ToolContext, dispatcher: ParallelToolDispatcher
    ) -> SubagentOutcome:
        parts = self._parts
        context_id = AgentRuntimeId(parts.session, f"sub-{next(self._numbers)}")
        interrupt = InterruptCoordinator(new_id("turn"))
        clock = BatchClock(parts.time_limit, partial(_trip, interrupt, CancelReason.TIMEOUT))
        watch = SubagentWatch(
            (context_id, task.tool_use_id), parts.emit, context.progress, clock, parts.on_usage
        )
        agent = self._agent(task, context_id, watch, dispatcher)
        unsubscribe = context.signal.on_trip(partial(_trip, interrupt))
        self._running.add(context_id)
        clock.start()
        try:
            ended = await self._executor.execute(
                context_id,
                lambda: agent.run_turn([QueuedInput(task.prompt, context_id)], interrupt),
            )
        finally:
            clock.stop()
            self._running.discard(context_id)
            unsubscribe()
            watch.count(agent.session_usage)
        return _outcome(ended, watch, interrupt, agent.session_usage)

    def _agent(
        self,
        task: SubagentTask,
        context_id: AgentRuntimeId,
        watch: SubagentWatch,
        dispatcher: ParallelToolDispatcher,
    ) -> Agent:
        parts, kind = self._parts, task.kind
        registry = ToolRegistry(kind.tools_among(parts.tools()))
        stage = PermissionStage(parts.authorizer, context_id, kind.name)
        runner = ToolCallRunner(
            registry,
            stage,
            self._context_factory(context_id),
            parts.interceptors,
            stage.permits,
        )
        together = self._dispatcher is not None
        return Agent(
            AgentParts(
                context_id=context_id,
                conversation=Conversation(watch.notes.record, id_prefix=f"{context_id.agent}-"),
                model=parts.model,
                model_settings=_settings(parts.model_settings, kind),
                system_prompt=lambda: parts.system_prompt(kind, together and parts.parallel()),
                tool_definitions=registry.definitions,
                batches=ToolBatches(
                    context_id, registry, dispatcher, runner, watch.take, parts.record_batch
                ),
                delivery=InputDelivery(parts.queue, context_id, parts.reminders, DeliveryRules()),
                reminders=parts.reminders,
                emit=watch.take,
                max_steps=kind.max_steps,
            )
        )

    def _context_factory(
        self, context_id: AgentRuntimeId
    ) -> Callable[[BatchCall, BlockingRunner], ToolContext]:
        """READ_FILES is made once per subagent and kept over its steps (S1.30)."""
        parts, read_files = self._parts, ReadFiles()

        def make(call: BatchCall, run_blocking: BlockingRunner) -> ToolContext:
            return ToolContext(
                context_id=context_id,
                workspace=parts.workspace,
                read_files=read_files,
                signal=call.signal,
                run_blocking=run_blocking,
                progress=call.progress,
                tool_use_id=call.tool_use.id,
                withholds=partial(parts.authorizer.withholds, call.tool_use.name),
            )

        return make


def _settings(session: ModelSettings, kind: SubagentType) -> ModelSettings:
    """A copy: ``/model`` in the middle of a subagent's turn does not change its model."""
    return replace(session, name=kind.model or session.name)


def _trip(interrupt: InterruptCoordinator, reason: CancelReason) -> None:
    interrupt.interrupt(interrupt.turn_id, reason)


def _outcome(
    ended: TurnEnded, watch: SubagentWatch, interrupt: InterruptCoordinator, usage: Usage
) -> SubagentOutcome:
    notes = watch.notes
    return SubagentOutcome(
        context_id=ended.context_id,
        reason=ended.reason,
        answer=notes.answer,
        last_words=notes.last_words,
        error=ended.error,
        cancelled_by=interrupt.signal.reason,
        steps=ended.steps,
        calls=tuple(notes.calls),
        transcript=tuple(notes.transcript),
        usage=usage,
    )
