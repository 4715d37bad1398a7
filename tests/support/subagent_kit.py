"""Subagents with a scripted model, real gate, real queue and tools that tests control."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from midturn_core.agent import ModelSettings
from midturn_core.events import Event, SubagentEvent
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import SignalSource
from midturn_core.model.messages import Usage
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.gate import AskGate
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.subagent.executor import SubagentExecutor, SubagentParts, SubagentTask
from midturn_core.subagent.outcome import SubagentOutcome
from midturn_core.subagent.types import GENERAL, SubagentType
from midturn_core.tool import Tool, ToolContext
from tests.support.scripted_model import ScriptedModel
from tests.support.tool_context import make_tool_context

E = TypeVar("E")

DEADLINE = 20.0
NONCE = "0123456789abcdef"
SESSION = "test-session"
MAIN = AgentRuntimeId(SESSION)


class Person:
    """Answers the questions of the gate, as soon as it is told what to say."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []
        self.withdrawn: list[Ask] = []
        self.being_asked = asyncio.Event()
        self._answers: asyncio.Queue[AskAnswer] = asyncio.Queue()

    def says(self, answer: AskAnswer) -> None:
        self._answers.put_nowait(answer)

    async def resolve(self, ask: Ask) -> AskReply:
        self.asked.append(ask)
        self.being_asked.set()
        try:
            return AskReply(await self._answers.get())
        except asyncio.CancelledError:
            self.withdrawn.append(ask)
            raise


class SubagentKit:
    """An executor and everything a test looks at."""

    def __init__(
        self,
        model: ScriptedModel,
        tools: Sequence[Tool] = (),
        *,
        workspace: Path = Path("/nowhere"),
        allow_rules: Sequence[str] = (),
        most: int = 3,
        time_limit: float = 600.0,
    ) -> None:
        self.model = model
        self.person = Person()
        self.events: list[Event] = []
        self.spent = Usage()
        self.notes: list[str] = []
        self.call = SignalSource()
        """The signal of the ``Task`` call."""
        self.queue = MessageQueueManager(InMemoryMessageQueueRepository())
        self.gate = AskGate(self.person, self.events.append)
        policy = PermissionPolicy(workspace, RuleSet.parse(allow=allow_rules))
        self.authorizer = Authorizer(policy, self.gate)
        self.workspace = workspace
        self.settings = ModelSettings("session-model", 1000)
        self.executor = SubagentExecutor(
            SubagentParts(
                session=SESSION,
                workspace=workspace,
                model=model,
                model_settings=self.settings,
                tools=lambda: tools,
                authorizer=self.authorizer,
                queue=self.queue,
                reminders=SystemReminderFormatter(NONCE),
                system_prompt=lambda kind, parallel: f"{kind.name} {parallel}",
                emit=self.events.append,
                on_usage=self._count,
                parallel=lambda: True,
                most=most,
                time_limit=time_limit,
            )
        )

    def context(self) -> ToolContext:
        return make_tool_context(
            self.workspace, signal=self.call, progress=self.notes.append, context_id=MAIN
        )

    async def run(self, kind: SubagentType = GENERAL, prompt: str = "do it") -> SubagentOutcome:
        return await asyncio.wait_for(
            self.executor.run(SubagentTask(kind, prompt, "task-1"), self.context()), DEADLINE
        )

    def start(self, kind: SubagentType = GENERAL) -> asyncio.Task[SubagentOutcome]:
        return asyncio.create_task(self.run(kind))

    def inner(self, kind: type[E]) -> list[E]:
        """The events of this kind that subagents emitted, without their wrapping."""
        return [
            event.event
            for event in self.events
            if isinstance(event, SubagentEvent) and isinstance(event.event, kind)
        ]

    def _count(self, usage: Usage) -> None:
        self.spent += usage


async def nothing_left_running() -> None:
    """Let what ends by itself in this moment end; then this test's task must be the only one."""
    for _ in range(5):
        await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others, others
