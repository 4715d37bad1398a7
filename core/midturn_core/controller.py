"""``SessionController``: decides what a line becomes, and runs one thing after another.

A line starts a turn when the session is idle and waits in the queue when it is not. When something
ends, what waits is walked in order: neighbouring prompts together, a command or ``!`` line by
itself (D3, D4). After an interrupt everything that waits is held until the user releases it (D5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, assert_never

from midturn_core.agent import Agent
from midturn_core.errors import QueueFullError, internal_error
from midturn_core.events import Emit, Notice, NoticeLevel, TurnEnded, TurnEndReason
from midturn_core.execution import AgentExecutionInterceptor, InterceptingExecutor
from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.attachments import AttachmentRef, attachment_tags
from midturn_core.queue.claims import Claims, NoStore
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.metrics import QueueMetricsInterceptor
from midturn_core.queue.turn_gate import TurnGate
from midturn_core.queue.types import KIND_KEY, ORIGIN_KEY, QueuedInput, QueuedInputPriority

_log = logging.getLogger(__name__)


class LineKind(Enum):
    """What a typed line is. The values are the ``kind`` tags of queued inputs."""

    PROMPT = "prompt"
    COMMAND = "command"
    """A slash command that runs by itself, after what runs now."""
    SHELL = "shell"
    IMMEDIATE = "immediate"
    """A slash command that runs at once, whatever else runs; it never waits in the queue."""


class LineRunner(Protocol):
    """Recognises and runs what is no prompt."""

    def problem(self, text: str) -> str:
        """Why a line cannot be taken, such as an unknown command; empty when it can."""
        ...

    def classify(self, text: str) -> LineKind: ...

    def run_immediate(self, text: str, attachments: Sequence[AttachmentRef] = ()) -> None:
        """Run a command that needs no turn. It reports its own errors. One that submits text
        passes the attachments on.
        """
        ...

    async def run_own_turn(self, item: QueuedInput, interrupt: InterruptCoordinator) -> None:
        """Run a command or ``!`` line that is a turn of its own. It reports its own errors."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerRules:
    enter: QueuedInputPriority = QueuedInputPriority.NEXT
    """What Enter means while busy."""
    later_when_idle: bool = True
    """Whether LATER inputs leave by themselves when nothing else waits."""
    one_per_turn: bool = False
    """Whether each prompt that waits for a turn gets one of its own."""


@dataclass(frozen=True, slots=True)
class ControllerParts:
    context_id: AgentRuntimeId
    agent: Agent
    queue: MessageQueueManager
    lines: LineRunner
    emit: Emit
    cancel_awaited_call: Callable[[], bool]
    """Cancels the call that keeps a waiting NOW input from being delivered (D1)."""
    rules: ControllerRules = ControllerRules()
    claims: Claims = field(default_factory=NoStore)
    interceptors: Sequence[AgentExecutionInterceptor] = ()
    """Around each turn, inside of the queue's metrics; the first is the outermost."""
    busy_changed: Callable[[], None] = lambda: None
    """Told when the session begins to work and when it is idle again."""


class SessionController:
    """One conversation: idle, or busy with exactly one turn, command or ``!`` line."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self._gate = TurnGate(parts.queue, parts.context_id, one_per_turn=parts.rules.one_per_turn)
        self._metrics = QueueMetricsInterceptor(parts.queue)
        self._executor = (
            InterceptingExecutor.builder()
            .add_interceptor(self._metrics)
            .add_interceptor(*parts.interceptors)
            .build()
        )
        self._current: InterruptCoordinator | None = None
        self._work: asyncio.Task[None] | None = None
        self._closing = False
        self._later_due = 0
        self.last_turn: TurnEnded | None = None

    @property
    def context_id(self) -> AgentRuntimeId:
        return self._parts.context_id

    @property
    def metrics(self) -> QueueMetricsInterceptor:
        return self._metrics

    @property
    def busy(self) -> bool:
        return self._gate.is_open

    @property
    def has_held(self) -> bool:
        waiting = self._parts.queue.snapshot(self._parts.context_id)
        return any(item.held and not (item.scheduled or item.bars_others) for item in waiting)

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None = None,
        *,
        pasted: bool = False,
        attachments: Sequence[AttachmentRef] = (),
    ) -> str:
        """Take a line (see ``SessionPort.submit``). Text that was pasted is always a prompt.
        ``attachments`` are files of the session (D15), in the order of the text.

        Returns an empty string, or why the line was not taken.
        """
        if not text.strip():
            return ""
        problem = "" if pasted else self._parts.lines.problem(text)
        if problem:
            return problem
        kind = LineKind.PROMPT if pasted else self._parts.lines.classify(text)
        if kind is LineKind.IMMEDIATE:
            self._parts.lines.run_immediate(text, attachments)
            return ""
        if attachments and kind is not LineKind.PROMPT:
            return "Pictures go with text for the model only: take them out of this line"
        item = QueuedInput(
            text,
            self._parts.context_id,
            self._parts.rules.enter if priority is None else priority,
            metadata={ORIGIN_KEY: "repl", KIND_KEY: kind.value, **attachment_tags(attachments)},
        )
        return self.take(item)

    def take(self, item: QueuedInput) -> str:
        """Start with an input, or let it wait; an empty string, or why it was not taken.

        A LATER input waits even when idle where LATER inputs leave only by hand.
        """
        by_hand = not self._parts.rules.later_when_idle
        try:
            if by_hand and item.priority is QueuedInputPriority.LATER:
                self._parts.queue.enqueue(item)
                return ""
            starts = self._gate.enter(item)
        except QueueFullError as error:
            return str(error)
        if starts:
            self._start([item])
        return ""

    def retry(self, interrupt: InterruptCoordinator) -> Awaitable[None]:
        """Send the failed step again (D46), as the own turn of the command that asks for it."""
        return self._turn([], interrupt)

    def run_prompt(self, text: str, interrupt: InterruptCoordinator) -> Awaitable[None]:
        """Run a turn with a text of the program's, as the own turn of the command that sends it."""
        item = QueuedInput(text, self._parts.context_id, metadata={ORIGIN_KEY: "command"})
        return self._turn([item], interrupt)

    def interrupt(self) -> bool:
        """Cancel what runs and hold what waits (D5); False when nothing runs."""
        current = self._current
        if current is None or not current.interrupt(current.turn_id):
            return False
        self._later_due = 0
        self._parts.queue.hold(self._parts.context_id)
        return True

    def cancel_awaited_call(self) -> bool:
        return self._parts.cancel_awaited_call()

    def release_held(self) -> bool:
        """Let held inputs go on their way again; False when there are none."""
        released = self._parts.queue.release(self._parts.context_id) > 0
        self.wake()
        return released

    def wake(self, *, include_later: bool | None = None) -> None:
        """When idle, start with whatever waits; for inputs that came from elsewhere.

        ``include_later`` True lets one LATER input go even if they leave only by hand.
        """
        later = self._later_may_go if include_later is None else include_later
        items = self._gate.resume(include_later=later)
        if items:
            self._start(items)

    def run_later(self, count: int) -> None:
        """Let this many LATER inputs go after what runs now, each its own turn, even if they leave
        only by hand (``queue.later``). An interrupt ends that.
        """
        self._later_due = count
        self.wake()

    async def wait_idle(self) -> None:
        """Until nothing runs any more."""
        while self._work is not None and not self._work.done():
            await asyncio.wait({self._work})

    async def close(self) -> None:
        """Cancel what runs and wait for it; what waits stays in the queue."""
        self._closing = True
        self.interrupt()
        await self.wait_idle()

    @property
    def _later_may_go(self) -> bool:
        return self._parts.rules.later_when_idle or self._later_due > 0

    def _start(self, items: list[QueuedInput]) -> None:
        self._work = asyncio.get_running_loop().create_task(self._run(items))
        self._parts.busy_changed()

    async def _run(self, items: list[QueuedInput]) -> None:
        while items:
            self._current = InterruptCoordinator(new_id("turn"))
            if items[0].priority is QueuedInputPriority.LATER:
                self._later_due = max(self._later_due - 1, 0)
            try:
                await self._one(items, self._current)
            except Exception as error:
                # The wall that keeps the session alive whatever a turn or command raises.
                _log.exception("a turn raised")
                self._parts.emit(Notice(NoticeLevel.ERROR, internal_error(error)))
            finally:
                self._current = None
                items = self._gate.leave(include_later=self._later_may_go, hold=self._closing)
        self._parts.busy_changed()

    async def _turn(self, items: Sequence[QueuedInput], interrupt: InterruptCoordinator) -> None:
        self.last_turn = await self._executor.execute(
            self._parts.context_id, lambda: self._parts.agent.run_turn(items, interrupt)
        )
        if self.last_turn.reason is TurnEndReason.FAILED:
            # What waits would most likely fail too; the user decides when it goes.
            self._parts.queue.hold(self._parts.context_id)

    async def _one(self, items: list[QueuedInput], interrupt: InterruptCoordinator) -> None:
        items = await self._parts.claims.claim(items)
        if not items:
            return  # somebody took them out of the store in the same moment
        kind = LineKind(items[0].metadata.get(KIND_KEY, LineKind.PROMPT.value))
        match kind:
            case LineKind.PROMPT:
                await self._turn(items, interrupt)
            case LineKind.COMMAND | LineKind.SHELL | LineKind.IMMEDIATE:
                try:
                    await self._run_line(items[0], kind, interrupt)
                finally:
                    self._parts.claims.confirm([items[0].uuid])
            case _:
                assert_never(kind)

    async def _run_line(
        self, item: QueuedInput, kind: LineKind, interrupt: InterruptCoordinator
    ) -> None:
        if interrupt.signal.tripped:
            # While a slow store was asked for it: what has not begun must not begin any more.
            stopped = f"Interrupted before it began, not run: {item.input_text}"
            self._parts.emit(Notice(NoticeLevel.WARNING, stopped))
        elif kind is LineKind.IMMEDIATE:
            self._parts.lines.run_immediate(item.input_text)
        else:
            await self._parts.lines.run_own_turn(item, interrupt)
