"""Whatever is entered between the last drain of a turn and its end is delivered, once (D6).

Random schedules of real parts: controller, agent, gate, queue, and a model that says or calls
something. Inputs come a random number of loop steps after a message has ended, which is where a
turn looks at the queue for the last time and then ends, or not.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from midturn_core.controller import ControllerParts, ControllerRules, SessionController
from midturn_core.delivery import DeliveryRules
from midturn_core.events import TurnEnded, TurnEndReason
from midturn_core.model.client import ModelEvent, ModelRequest
from midturn_core.model.messages import TextBlock, UserMessage
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.types import (
    KIND_KEY,
    ORIGIN_KEY,
    Predicate,
    QueuedInput,
    QueuedInputPriority,
)
from tests.core.test_controller import Lines
from tests.support.agent_kit import CONTEXT, AgentKit, unwrap
from tests.support.scripted_model import ScriptedModel, Step, calls, text, use
from tests.support.virtual_time import VirtualTimeLoop

MOST_INPUTS = 6
MOST_STEPS = 25
"""Of the loop, between the end of a message and an input: from before the last look at the queue
to after the end of the turn, and to when the session has been idle for a while."""


class TalkingModel(ScriptedModel):
    """Answers for ever, and tells when a message has ended."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for step in self._schedule.next_message():
            assert not isinstance(step, asyncio.Event | Exception)
            yield step
            await asyncio.sleep(0)
        self._schedule.message_ended()


@dataclass
class Schedule:
    """One course of a session, given by its seed."""

    seed: int
    slow_store: bool = False
    entered: list[str] = field(default_factory=list[str])
    producers: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.lines = Lines()
        self.store = SlowRepository(self.seed)
        rng, one_per_turn = self.rng, self.rng.random() < 0.2
        self.kit = AgentKit(
            TalkingModel(self),
            DeliveryRules(rng.random() < 0.8, rng.random() < 0.8, one_per_turn),
            make_claims=self._mirror if self.slow_store else None,
        )
        self.controller = SessionController(
            ControllerParts(
                context_id=CONTEXT,
                agent=self.kit.agent,
                queue=self.kit.queue,
                lines=self.lines,
                emit=self.kit.emit,
                cancel_awaited_call=lambda: False,
                rules=ControllerRules(one_per_turn=one_per_turn),
                claims=self.kit.claims,
            )
        )

    async def run(self) -> None:
        claims = self.kit.claims
        if isinstance(claims, RepositoryMirror):
            await claims.start()
        self._enter()
        while self.producers or self.controller.busy:
            await asyncio.wait([*self.producers, asyncio.create_task(self.controller.wait_idle())])
        if isinstance(claims, RepositoryMirror):
            assert await claims.close(60.0)
        self._check()

    def next_message(self) -> Sequence[Step]:
        return calls(use("a")) if self.rng.random() < 0.2 else text("so be it")

    def message_ended(self) -> None:
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            producer = asyncio.create_task(self._produce(self.rng.randint(0, MOST_STEPS)))
            self.producers.add(producer)
            producer.add_done_callback(self.producers.discard)

    async def _produce(self, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        self._enter()

    def _enter(self) -> None:
        if len(self.entered) == MOST_INPUTS:
            return
        kind = "command" if self.rng.random() < 0.15 else "prompt"
        line = f"{'/' if kind == 'command' else ''}input-{len(self.entered)}"
        self.entered.append(line)
        priority = self.rng.choice(list(QueuedInputPriority))
        if self.rng.random() < 0.7:
            assert self.controller.submit(line, priority) == ""
            return
        # As what comes from elsewhere: it waits first, and then the session is told of it.
        tags = {ORIGIN_KEY: "outside", KIND_KEY: kind}
        self.kit.queue.enqueue(QueuedInput(line, CONTEXT, priority, metadata=tags))
        self.controller.wake()

    def _check(self) -> None:
        where = f"seed {self.seed}"
        assert Counter([*self._said(), *self.lines.ran]) == Counter(self.entered), where
        assert self.kit.queue.snapshot() == [], where
        # What the store still had would be delivered again after a restart.
        assert self.store.size() == 0, where
        assert {event.reason for event in self.kit.of(TurnEnded)} <= {TurnEndReason.DONE}, where

    def _said(self) -> Iterable[str]:
        for message in self.kit.conversation.messages:
            blocks = message.blocks if isinstance(message, UserMessage) else ()
            texts = [unwrap(block.text) for block in blocks if isinstance(block, TextBlock)]
            yield from (said for said in texts if said.startswith("input-"))

    def _mirror(self, queue: MessageQueueManager) -> RepositoryMirror:
        hooks = MirrorHooks(trouble=lambda _: None, arrived=lambda: None)
        return RepositoryMirror(queue, lambda: self.store, CONTEXT, hooks)


class SlowRepository(InMemoryMessageQueueRepository):
    """Takes a random time, longer than many steps of the loop, for what the mirror asks most."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = random.Random(seed)

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        self._dawdle()
        return super().enqueue(item, cap=cap)

    def claim(self, predicate: Predicate) -> list[QueuedInput]:
        self._dawdle()
        return super().claim(predicate)

    def _dawdle(self) -> None:
        time.sleep(self._rng.random() * 0.003)


def run_schedules(seeds: Iterable[int], *, slow_store: bool = False) -> None:
    async def all_of_them() -> None:
        for seed in seeds:
            await Schedule(seed, slow_store).run()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(all_of_them())


def test_an_input_between_the_last_drain_and_the_end_is_always_delivered() -> None:
    run_schedules(range(300))


def test_a_slow_store_beside_the_queue_loses_and_doubles_none_of_them() -> None:
    run_schedules(range(100), slow_store=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10_000, 2_500))
def test_ten_thousand_schedules_deliver_every_late_input(start: int) -> None:
    run_schedules(range(start, start + 2_500))


@pytest.mark.slow
def test_a_thousand_schedules_with_a_slow_store_deliver_every_late_input() -> None:
    run_schedules(range(1_000), slow_store=True)
