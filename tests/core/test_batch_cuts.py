"""A batch of four is cut at every point it can stand, in every mode: by a NOW input and by an
interrupt. The next request is valid and has one result per call, in order, each of them true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from midturn_core.call_runner import PendingCall
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    CallPhase,
    Event,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseAnnounced,
    ToolUseStarted,
    TurnEndReason,
)
from midturn_core.model.client import BlockFinished, MessageFinished, ToolUseStarting
from midturn_core.model.messages import (
    JsonObject,
    Outcome,
    StopReason,
    ToolUse,
    ToolUseResult,
    UserMessage,
)
from midturn_core.model.wire import build_request
from midturn_core.queue.types import QueuedInputPriority
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import DEADLINE, Bench, reader, safe, shell, writer
from tests.support.agent_kit import AgentKit, until
from tests.support.batch_agent import agent_over
from tests.support.messages_rules import check_request
from tests.support.scripted_model import USAGE, ScriptedModel, Step, text

SEGMENTS = ToolConcurrencyConfig(enabled=True, mixed="segments")
STREAMING = ToolConcurrencyConfig(enabled=True, mixed="segments", start="streaming")

MODES = {
    "sequential": ToolConcurrencyConfig.off(),
    "parallel": ToolConcurrencyConfig.on(),
    "one slot": ToolConcurrencyConfig.on(1),
    "segments": SEGMENTS,
    "streaming": STREAMING,
}
BATCHES = {
    "all safe": ("Grep", "Read", "Grep", "Read"),
    "mixed": ("Grep", "Read", "Edit", "Grep"),
    "barrier first": ("Bash", "Grep", "Read", "Edit"),
}


@dataclass
class Facts:
    """What really happened to each call, told by the tools themselves."""

    entered: set[str] = field(default_factory=set[str])
    whole: set[str] = field(default_factory=set[str])
    parts: set[str] = field(default_factory=set[str])
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    gates: dict[str, asyncio.Event] = field(
        default_factory=lambda: {f"call-{n}": asyncio.Event() for n in range(4)}
    )

    async def cooperate(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return await self._run(context, obeys=True)

    async def finish(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        """Not to be stopped: the test opens its gate once everything has been cut."""
        return await self._run(context, obeys=False)

    async def _run(self, context: ToolContext, *, obeys: bool) -> ToolResult:
        use = context.tool_use_id
        self.entered.add(use)
        waits: list[asyncio.Task[object]] = [asyncio.create_task(self.gates[use].wait())]
        if obeys:
            waits.append(asyncio.create_task(context.signal.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.gates[use].is_set():
            self.whole.add(use)
            return ToolResult(f"all of {use}")
        self.parts.add(use)
        return ToolResult(f"part of {use}", stopped=True)

    def check(self, result: ToolUseResult, reason: str) -> None:
        """The result says what happened, neither more nor less."""
        use = result.tool_use_id
        match result.outcome:
            case Outcome.SUCCEEDED:
                assert use in self.whole
                assert result.content == f"all of {use}"
            case Outcome.STOPPED:
                assert use in self.parts
                assert use not in self.whole
                assert result.content.startswith("stopped after ")
                assert reason in result.content
                assert result.content.endswith(f"part of {use}")
            case Outcome.SKIPPED:
                assert use not in self.entered
                assert result.content == f"skipped: {reason}"
            case _:
                raise AssertionError(result)


class Scene:
    """A turn whose first message asks for four calls, and the point at which it is cut."""

    def __init__(self, mode: str, batch: str, *, asks: bool, stream_open: bool) -> None:
        self.facts = Facts()
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda event: None
        self._asks = asks
        self._stream_open = stream_open
        bench = Bench(
            safe("Grep", self.facts.cooperate),
            reader("Read", self.facts.finish),
            writer("Edit", self.facts.finish),
            shell("Bash", self.facts.cooperate),
            config=MODES[mode],
            authorize=self._authorize,
            permits=lambda pending: not asks or pending.call.index != 0,
        )
        self.dispatcher = bench.dispatcher
        uses = [ToolUse(f"call-{n}", name, {"n": n}) for n, name in enumerate(BATCHES[batch])]
        self.kit: AgentKit = agent_over(
            bench,
            ScriptedModel(self._message(uses), text("understood")),
            lambda event: self.on_event(event),
        )
        self.turn = asyncio.create_task(
            self.kit.agent.run_turn([self.kit.item("do it")], self.kit.interrupt)
        )

    def cut(self, how: str) -> str:
        """Returns the words that the model is told."""
        if how == "interrupt":
            self.kit.interrupt.interrupt("turn-1")
            return "the user interrupted the turn"
        self.kit.enter("no, this", QueuedInputPriority.NOW)
        return "the user sent a message"

    async def end(self, how: str, reason: str) -> None:
        """Let what cannot be stopped finish, and look at what the model is told next."""
        await until(lambda: self.turn.done() or self._only_stubborn_ones_run())
        for gate in self.facts.gates.values():
            gate.set()
        async with asyncio.timeout(DEADLINE):
            ended = await self.turn
        if how == "interrupt":
            assert ended.reason is TurnEndReason.INTERRUPTED
            await self.kit.agent.run_turn(
                [self.kit.item("go on")], self.kit.interrupt.__class__("t")
            )
        else:
            assert ended.reason is TurnEndReason.DONE
        self._check_request(reason)
        self._check_events()
        assert self.dispatcher.slots_in_use == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def _only_stubborn_ones_run(self) -> bool:
        """Everything else has its result."""
        ready = {event.result.tool_use_id for event in self.kit.of(ToolResultReady)}
        waiting = set(self.facts.gates) - ready
        return bool(self.kit.of(BatchStarted)) and waiting <= self.facts.entered

    def _check_request(self, reason: str) -> None:
        request = self.kit.model.requests[-1]
        check_request(cast("JsonObject", build_request(request)))
        answers = request.messages[2]
        assert isinstance(answers, UserMessage)
        results = [block for block in answers.blocks if isinstance(block, ToolUseResult)]
        assert [result.tool_use_id for result in results] == list(self.facts.gates)
        assert list(answers.blocks[:4]) == results
        for result in results:
            self.facts.check(result, reason)

    def _check_events(self) -> None:
        assert len(self.kit.of(BatchStarted)) == len(self.kit.of(BatchFinished)) == 1
        started = [event.tool_use.id for event in self.kit.of(ToolUseStarted)]
        assert started == list(self.facts.gates)
        ready = [event.result.tool_use_id for event in self.kit.of(ToolResultReady)]
        assert sorted(ready) == started
        assert self.kit.of(BatchFinished)[0].report.count(*Outcome) == 4

    def _message(self, uses: list[ToolUse]) -> list[Step]:
        steps: list[Step] = []
        for use in uses:
            steps += [ToolUseStarting(use.id, use.name), BlockFinished(use)]
        if self._stream_open:
            steps.append(asyncio.Event())
        return [*steps, MessageFinished(StopReason.TOOL_USE, USAGE)]

    async def _authorize(self, pending: PendingCall) -> ToolUseResult | None:
        if self._asks and pending.call.index == 0:
            pending.call.announce(CallPhase.ASKING)
            self.facts.asked.set()
            await asyncio.Event().wait()
        return None


CUTS = pytest.mark.parametrize("how", ["now", "interrupt"])
IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)
OF_EACH_BATCH = pytest.mark.parametrize("batch", BATCHES)


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
async def test_before_the_first_call_starts(how: str, mode: str, batch: str) -> None:
    scene = Scene(mode, batch, asks=False, stream_open=False)
    reason = ""

    def at_its_start(event: Event) -> None:
        nonlocal reason
        if isinstance(event, BatchStarted):
            reason = scene.cut(how)

    scene.on_event = at_its_start
    await until(lambda: bool(scene.kit.of(BatchStarted)))
    await scene.end(how, reason)
    if mode != "streaming":
        assert scene.facts.entered == set()


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
async def test_while_the_message_still_streams(how: str, mode: str, batch: str) -> None:
    scene = Scene(mode, batch, asks=False, stream_open=True)
    uses = {"all safe": 4, "mixed": 2, "barrier first": 0}[batch] if mode == "streaming" else 0
    await until(lambda: len(scene.facts.entered) == uses and _written(scene) == 4)
    await scene.end(how, scene.cut(how))
    assert len(scene.facts.entered) == uses


@CUTS
@OF_EACH_BATCH
async def test_while_the_message_still_streams_and_early_calls_are_done(
    how: str, batch: str
) -> None:
    scene = Scene("streaming", batch, asks=False, stream_open=True)
    early = {"all safe": 4, "mixed": 2, "barrier first": 0}[batch]
    for n in range(early):
        scene.facts.gates[f"call-{n}"].set()
    await until(lambda: len(scene.facts.whole) == early and _written(scene) == 4)
    await scene.end(how, scene.cut(how))
    assert len(scene.facts.whole) == early


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
async def test_while_a_call_waits_for_an_answer(how: str, mode: str, batch: str) -> None:
    scene = Scene(mode, batch, asks=True, stream_open=False)
    await asyncio.wait_for(scene.facts.asked.wait(), DEADLINE)
    await scene.end(how, scene.cut(how))
    assert "call-0" not in scene.facts.entered


@CUTS
@OF_EACH_BATCH
async def test_while_the_message_streams_and_a_call_of_it_will_need_an_answer(
    how: str, batch: str
) -> None:
    scene = Scene("streaming", batch, asks=True, stream_open=True)
    early = {"all safe": 3, "mixed": 1, "barrier first": 0}[batch]
    await until(lambda: _written(scene) == 4 and len(scene.facts.entered) == early)
    await scene.end(how, scene.cut(how))
    assert not scene.facts.asked.is_set()
    assert "call-0" not in scene.facts.entered


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
async def test_while_one_runs(how: str, mode: str, batch: str) -> None:
    scene = Scene(mode, batch, asks=False, stream_open=False)
    await until(lambda: _running(scene) >= 1)
    await scene.end(how, scene.cut(how))
    assert scene.facts.entered


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
@pytest.mark.parametrize("done", [1, 2, 3])
async def test_when_some_are_done(how: str, mode: str, batch: str, done: int) -> None:
    scene = Scene(mode, batch, asks=False, stream_open=False)
    for n in range(done):
        scene.facts.gates[f"call-{n}"].set()
    await until(lambda: len(scene.kit.of(ToolResultReady)) >= done)
    await scene.end(how, scene.cut(how))
    assert {f"call-{n}" for n in range(done)} <= scene.facts.whole


@CUTS
@IN_EACH_MODE
@OF_EACH_BATCH
async def test_when_all_are_done(how: str, mode: str, batch: str) -> None:
    scene = Scene(mode, batch, asks=False, stream_open=False)
    reason = ""

    def at_its_end(event: Event) -> None:
        nonlocal reason
        if isinstance(event, ToolResultReady) and len(scene.kit.of(ToolResultReady)) == 4:
            reason = scene.cut(how)

    scene.on_event = at_its_end
    for gate in scene.facts.gates.values():
        gate.set()
    await until(lambda: bool(reason))
    await scene.end(how, reason)
    assert scene.facts.whole == set(scene.facts.gates)


def _written(scene: Scene) -> int:
    """How many calls of the message have been announced."""
    return len(scene.kit.of(ToolUseAnnounced))


def _running(scene: Scene) -> int:
    changes = scene.kit.of(ToolPhaseChanged)
    return sum(event.phase is CallPhase.RUNNING for event in changes)
