"""An agent with a scripted model, a real queue and tools that tests control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

from midturn_core.agent import Agent, AgentParts, BatchRunner, ModelSettings
from midturn_core.conversation import Conversation, FreshId
from midturn_core.delivery import DeliveryRules, InputDelivery
from midturn_core.dispatch.runner import BatchSignals
from midturn_core.dispatch.types import BatchOutcome, BatchReport, CallReport, GateVerdict
from midturn_core.events import Emit, Event
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import InterruptCoordinator, SignalSource
from midturn_core.model.messages import (
    ImageBlock,
    Outcome,
    TextBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
)
from midturn_core.pictures import read_picture
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.queue.claims import Claims, NoStore
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.queue.types import KIND_KEY, QueuedInput, QueuedInputPriority
from tests.support.picture_files import png
from tests.support.scripted_model import ScriptedModel

E = TypeVar("E")
CONTEXT = AgentRuntimeId("test-session")
NONCE = "0123456789abcdef"
DEADLINE = 20.0


class ScriptedBatches:
    """Answers every call by its name: ``Fail`` fails, ``Wait`` waits for ``release`` or for the
    batch's signal, anything else succeeds.
    """

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.release = asyncio.Event()
        self.defect: Exception | None = None
        """Raised by the next batches."""
        self.wait_fails = False
        """Whether ``Wait`` fails when it is released."""
        self.batches: list[tuple[ToolUse, ...]] = []

    def listening(self, step: int, fresh_id: FreshId) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def run(self, uses: Sequence[ToolUse], step: int, signals: BatchSignals) -> BatchOutcome:
        self.batches.append(tuple(uses))
        if self.defect is not None:
            raise self.defect
        results = [await self._call(use, signals.batch) for use in uses]
        verdict = GateVerdict(parallel=False)
        calls = tuple(
            CallReport(index, use, result.outcome, 0.0, None, None)
            for index, (use, result) in enumerate(zip(uses, results, strict=True))
        )
        report = BatchReport(
            f"batch-{step}", verdict, calls, 0.0, 0.0, 0.0, cancelled_by=signals.batch.reason
        )
        return BatchOutcome(tuple(results), report)

    async def _call(self, use: ToolUse, signals: SignalSource) -> ToolUseResult:
        if signals.reason is not None:
            content = f"skipped: {signals.reason.value}"
            return ToolUseResult(use.id, use.name, Outcome.SKIPPED, content)
        if use.name == "Fail":
            return ToolUseResult(use.id, use.name, Outcome.FAILED, "Error: it failed")
        if use.name == "Wait":
            self.running.set()
            waits = [
                asyncio.ensure_future(self.release.wait()),
                asyncio.ensure_future(signals.wait()),
            ]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
            if signals.reason is not None:
                content = f"stopped: {signals.reason.value}"
                return ToolUseResult(use.id, use.name, Outcome.STOPPED, content)
            if self.wait_fails:
                return ToolUseResult(use.id, use.name, Outcome.FAILED, "Error: it failed")
        return ToolUseResult(use.id, use.name, Outcome.SUCCEEDED, "ok")


@dataclass
class AgentKit:
    """The agent and everything a test looks at."""

    model: ScriptedModel
    rules: DeliveryRules = field(default_factory=DeliveryRules)
    max_steps: int = 100
    on_event: Callable[[Event], None] | None = None
    make_batches: Callable[[Emit], BatchRunner] | None = None
    """In place of the scripted ones."""
    make_claims: Callable[[MessageQueueManager], Claims] | None = None
    """A store beside the queue."""

    def __post_init__(self) -> None:
        self.events: list[Event] = []
        self.batches = ScriptedBatches()
        self.queue = MessageQueueManager(InMemoryMessageQueueRepository())
        self.conversation = Conversation()
        self.claims = self.make_claims(self.queue) if self.make_claims else NoStore()
        reminders = SystemReminderFormatter(NONCE)
        delivery = InputDelivery(
            self.queue, CONTEXT, reminders, self.rules, any_picture, self.claims
        )
        self.agent = Agent(
            AgentParts(
                context_id=CONTEXT,
                conversation=self.conversation,
                model=self.model,
                model_settings=ModelSettings("test-model", 1000),
                system_prompt=lambda: "be good",
                tool_definitions=lambda: (),
                batches=self.make_batches(self.emit) if self.make_batches else self.batches,
                delivery=delivery,
                reminders=reminders,
                emit=self.emit,
                max_steps=self.max_steps,
                restart_pauses=(0.0, 0.0),
            )
        )
        self.interrupt = InterruptCoordinator("turn-1")

    def rewired(self, batches: BatchRunner) -> AgentKit:
        """The same kit with another way to run batches."""
        self.agent = Agent(replace(self.agent.parts, batches=batches))
        return self

    def emit(self, event: Event) -> None:
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def item(
        self,
        text: str,
        priority: QueuedInputPriority = QueuedInputPriority.NEXT,
        kind: str = "prompt",
    ) -> QueuedInput:
        return QueuedInput(text, CONTEXT, priority, metadata={KIND_KEY: kind})

    def enter(
        self,
        text: str,
        priority: QueuedInputPriority = QueuedInputPriority.NEXT,
        kind: str = "prompt",
    ) -> QueuedInput:
        item = self.item(text, priority, kind)
        self.queue.enqueue(item)
        return item

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def user_texts(self, request: int) -> list[str]:
        """The text blocks of the last user message of a request, reminders unwrapped."""
        last = self.model.requests[request].messages[-1]
        assert isinstance(last, UserMessage)
        return [unwrap(block.text) for block in last.blocks if isinstance(block, TextBlock)]


def any_picture(ref: AttachmentRef) -> ImageBlock:
    return read_picture(png(), ref.name)


def unwrap(text: str) -> str:
    """The text of a system reminder; any other text as it is."""
    lines = text.split("\n")
    if lines[0].startswith(f"<system-reminder-{NONCE}"):
        return "\n".join(lines[1:-1])
    return text


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something holds."""

    async def poll() -> None:
        while not condition():  # noqa: ASYNC110  # what is asked has no event of its own
            await asyncio.sleep(0.001)

    await asyncio.wait_for(poll(), DEADLINE)
