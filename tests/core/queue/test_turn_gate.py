"""The end of a turn: nothing typed may fall between the last drain and the end (D6)."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.turn_gate import TurnGate
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
AT_STEP = QueueFilter(MAIN, QueuedInputPriority.NEXT, prompts_only=True)


class Scene:
    """A gate with its queue, producers and turns, advanced one atomic step at a time."""

    def __init__(self) -> None:
        self.manager = MessageQueueManager(InMemoryMessageQueueRepository())
        self.gate = TurnGate(self.manager, MAIN)
        self.delivered: list[str] = []
        self.turns_at_once = 0
        self.started: list[Generator[None]] = []

    def produce(self, items: list[QueuedInput]) -> Generator[None]:
        for item in items:
            if self.gate.enter(item):
                self.started.append(self.turn([item]))
            yield

    def turn(self, inputs: list[QueuedInput]) -> Generator[None]:
        self.turns_at_once += 1
        assert self.turns_at_once == 1
        yield
        while inputs:
            self.deliver(inputs)
            yield from self.steps()
            inputs = self.gate.leave(include_later=True)
            if not inputs:
                self.turns_at_once -= 1
            yield

    def steps(self) -> Generator[None]:
        """One tool step, then answers until nothing is left."""
        over: list[bool] = []
        self.deliver(self.manager.drain_for_injection(AT_STEP))
        yield
        while not over:
            self.deliver(self.manager.drain_or_close(AT_STEP, lambda: over.append(True)))
            yield

    def deliver(self, items: list[QueuedInput]) -> None:
        self.delivered.extend(item.input_text for item in items)


def some_input(rng: random.Random, text: str) -> QueuedInput:
    metadata = {"kind": "command"} if rng.random() < 0.2 else {}
    return QueuedInput(text, MAIN, rng.choice(list(QueuedInputPriority)), metadata=metadata)


def run_schedule(seed: int) -> None:
    rng = random.Random(seed)
    scene = Scene()
    expected = [f"{name}{number}" for name in "ab" for number in range(rng.randint(1, 4))]
    actors = [
        scene.produce([some_input(rng, text) for text in expected if text[0] == name])
        for name in "ab"
    ]
    while actors or scene.started:
        actors += scene.started
        scene.started = []
        actor = rng.choice(actors)
        if next(actor, actor) is actor:
            actors.remove(actor)
    assert sorted(scene.delivered) == expected, f"seed {seed}"
    assert scene.manager.size() == 0, f"seed {seed}"
    assert not scene.gate.is_open, f"seed {seed}"


def test_ten_thousand_schedules_deliver_everything_exactly_once() -> None:
    for seed in range(10_000):
        run_schedule(seed)


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Let threads take turns far more often than usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
def test_threads_that_type_while_turns_end_lose_nothing() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), cap=0)
    gate = TurnGate(manager, MAIN)
    delivered: list[str] = []
    running = threading.Semaphore(1)

    def run_turns(inputs: list[QueuedInput]) -> None:
        assert running.acquire(blocking=False), "two turns at once"
        while inputs:
            delivered.extend(item.input_text for item in inputs)
            over = threading.Event()
            while not over.is_set():
                drained = manager.drain_or_close(AT_STEP, over.set)
                delivered.extend(item.input_text for item in drained)
            with manager.atomic():
                inputs = gate.leave(include_later=True)
                if not inputs:
                    running.release()

    def type_lines(name: int) -> None:
        for number in range(500):
            item = QueuedInput(f"{name}:{number:03}", MAIN)
            if gate.enter(item):
                run_turns([item])

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(type_lines, name) for name in range(4)]:
            future.result(timeout=120)
    assert sorted(delivered) == [
        f"{name}:{number:03}" for name in range(4) for number in range(500)
    ]
    assert manager.size() == 0


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_idle_context_takes_the_input_and_a_busy_one_queues_it(scene: Scene) -> None:
    first, second = QueuedInput("a", MAIN), QueuedInput("b", MAIN)
    assert scene.gate.enter(first)
    assert not scene.gate.enter(second)
    assert scene.manager.snapshot() == [second]


def test_an_input_after_the_last_drain_starts_the_next_turn_by_itself(scene: Scene) -> None:
    over: list[bool] = []
    late = QueuedInput("late", MAIN)
    assert scene.gate.enter(QueuedInput("a", MAIN))
    assert scene.manager.drain_or_close(AT_STEP, lambda: over.append(True)) == []
    assert not scene.gate.enter(late)
    assert over == [True]
    assert scene.gate.leave(include_later=False) == [late]
    assert scene.gate.is_open
    assert scene.gate.leave(include_later=False) == []
    assert not scene.gate.is_open


def test_a_turn_that_still_gets_something_is_not_told_that_it_is_over(scene: Scene) -> None:
    over: list[bool] = []
    scene.gate.enter(QueuedInput("a", MAIN))
    late = QueuedInput("late", MAIN)
    scene.gate.enter(late)
    assert scene.manager.drain_or_close(AT_STEP, lambda: over.append(True)) == [late]
    assert over == []


def test_after_an_interrupt_everything_that_waits_is_held(scene: Scene) -> None:
    waiting = QueuedInput("b", MAIN)
    scene.gate.enter(QueuedInput("a", MAIN))
    scene.gate.enter(waiting)
    assert scene.gate.leave(include_later=True, hold=True) == []
    assert not scene.gate.is_open
    assert scene.gate.resume(include_later=True) == []
    scene.manager.release(MAIN)
    assert scene.gate.resume(include_later=True) == [waiting]
    assert scene.gate.is_open
    assert scene.gate.resume(include_later=True) == []


def test_work_that_is_no_input_occupies_the_context_once(scene: Scene) -> None:
    assert scene.gate.try_open()
    assert not scene.gate.try_open()
    assert not scene.gate.enter(QueuedInput("a", MAIN))


def test_a_refused_input_leaves_the_gate_as_it_was() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), cap=1)
    gate = TurnGate(manager, MAIN)
    gate.enter(QueuedInput("a", MAIN))
    gate.enter(QueuedInput("b", MAIN))
    with pytest.raises(QueueFullError):
        gate.enter(QueuedInput("c", MAIN))
    assert gate.is_open
    assert [item.input_text for item in manager.snapshot()] == ["b"]
