"""Inputs at a time to come: order, clocks, threads, restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.interceptors.interceptor import InterceptedCall, ToolInterceptor, ToolInterceptors
from midturn_core.model.messages import ToolUseResult
from midturn_core.queue.events import QueueChangeReason, QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.rewake import (
    MAX_SPAN,
    NO_REWAKE,
    After,
    At,
    Clocks,
    QueueRewakeService,
    Wakeup,
)
from midturn_core.queue.sqlite import open_sqlite_repository
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from tests.core.dispatch.kit import Bench, safe

MAIN = AgentRuntimeId("s1", "main")
SUB = AgentRuntimeId("s1", "sub-1")
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEXT, LATER = QueuedInputPriority.NEXT, QueuedInputPriority.LATER
DEADLINE = 60.0


class Time:
    """Two clocks that tests move."""

    def __init__(self) -> None:
        self.wall = START
        self.elapsed = 1000.0

    def pass_by(self, span: timedelta) -> None:
        self.wall += span
        self.elapsed += span.total_seconds()

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.elapsed)


def new_manager(cap: int = 0) -> MessageQueueManager:
    return MessageQueueManager(InMemoryMessageQueueRepository(), cap)


def minutes(count: float) -> After:
    return After(timedelta(minutes=count))


class Scene:
    def __init__(self, manager: MessageQueueManager | None = None) -> None:
        self.time = Time()
        self.manager = new_manager() if manager is None else manager
        self.woken = 0
        self.service = QueueRewakeService(self.manager, self._wake, self.time.clocks)

    def _wake(self) -> None:
        self.woken += 1

    def schedule(self, text: str, due: After | At, priority: QueuedInputPriority = LATER) -> str:
        item = self.service.schedule(Wakeup(text, MAIN, priority), due)
        assert item is not None
        return item.uuid

    def pass_minutes(self, count: float) -> None:
        self.time.pass_by(timedelta(minutes=count))
        self.service.let_go()

    def ready(self) -> list[str]:
        """What a drain would take now."""
        items = self.manager.snapshot(MAIN)
        return [item.input_text for item in items if not item.held]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.service.close()


def test_an_input_is_let_go_at_its_time_and_not_before(scene: Scene) -> None:
    scene.schedule("tea", minutes(10))
    scene.pass_minutes(9.9)
    assert scene.ready() == []
    assert scene.manager.drain_for_injection(QueueFilter(MAIN), LATER) == []
    scene.pass_minutes(0.2)
    assert scene.ready() == ["tea"]
    [item] = scene.manager.drain_for_injection(QueueFilter(MAIN), LATER)
    assert (item.input_text, item.priority, dict(item.metadata)) == (
        "tea",
        LATER,
        {"origin": "reminder"},
    )
    assert scene.service.pending(MAIN) == []


def test_inputs_that_are_due_together_go_by_time_and_then_by_sequence(scene: Scene) -> None:
    scene.schedule("third", minutes(3))
    scene.schedule("second a", minutes(2))
    scene.schedule("first", At(START + timedelta(minutes=1)))
    scene.schedule("second b", minutes(2))
    assert [item.input_text for item in scene.service.pending(MAIN)] == [
        "first",
        "second a",
        "second b",
        "third",
    ]
    scene.pass_minutes(60)
    assert scene.ready() == ["first", "second a", "second b", "third"]


def test_a_reminder_comes_behind_what_was_typed_before_it_was_due(scene: Scene) -> None:
    scene.schedule("reminder", minutes(1))
    scene.manager.enqueue(QueuedInput("typed", MAIN, LATER))
    scene.pass_minutes(2)
    assert scene.ready() == ["typed", "reminder"]


def test_who_asked_for_it_is_woken_once_for_all_that_is_due(scene: Scene) -> None:
    scene.schedule("a", minutes(1))
    scene.schedule("b", minutes(1))
    scene.pass_minutes(0.5)
    assert scene.woken == 0
    scene.pass_minutes(1)
    assert scene.woken == 1


def test_a_span_does_not_follow_the_wall_clock_when_that_is_set(scene: Scene) -> None:
    scene.schedule("tea", minutes(10))
    scene.time.wall += timedelta(days=1)
    scene.service.let_go()
    assert scene.ready() == []
    scene.time.wall -= timedelta(days=2)
    scene.pass_minutes(10)
    assert scene.ready() == ["tea"]


def test_an_instant_follows_the_wall_clock_when_that_is_set(scene: Scene) -> None:
    scene.schedule("lunch", At(START + timedelta(hours=1)))
    scene.time.elapsed += 7200
    scene.service.let_go()
    assert scene.ready() == []
    scene.time.wall += timedelta(hours=1)
    scene.service.let_go()
    assert scene.ready() == ["lunch"]


def test_an_instant_that_has_passed_is_due_at_once(scene: Scene) -> None:
    scene.schedule("late", At(START - timedelta(minutes=1)))
    scene.service.let_go()
    assert scene.ready() == ["late"]


def test_one_that_is_cancelled_or_removed_never_comes(scene: Scene) -> None:
    cancelled, removed = scene.schedule("a", minutes(1)), scene.schedule("b", minutes(1))
    assert scene.service.cancel(cancelled) is not None
    assert scene.service.cancel(cancelled) is None
    scene.manager.remove(removed)
    scene.pass_minutes(2)
    assert scene.manager.size() == 0
    assert scene.woken == 0


def test_one_that_is_due_already_is_not_cancelled(scene: Scene) -> None:
    uuid = scene.schedule("a", minutes(1))
    scene.pass_minutes(2)
    assert scene.service.cancel(uuid) is None
    assert scene.ready() == ["a"]


def test_holding_and_releasing_everything_leaves_the_time_of_a_reminder(scene: Scene) -> None:
    scene.schedule("a", minutes(1))
    scene.manager.hold(MAIN)
    assert scene.manager.release(MAIN) == 0
    assert scene.ready() == []
    scene.pass_minutes(2)
    assert scene.ready() == ["a"]


def test_one_that_is_released_by_its_uuid_goes_at_once_and_only_once(scene: Scene) -> None:
    uuid = scene.schedule("a", minutes(1))
    assert scene.manager.release(uuid) == 1
    assert scene.ready() == ["a"]
    scene.manager.hold(MAIN)
    scene.pass_minutes(2)
    assert scene.ready() == []


def test_another_text_keeps_the_time(scene: Scene) -> None:
    uuid = scene.schedule("tee", minutes(1))
    scene.manager.edit(uuid, "tea")
    scene.pass_minutes(2)
    assert scene.ready() == ["tea"]


def test_the_cap_refuses_a_reminder_and_nothing_stays_of_it() -> None:
    scene = Scene(new_manager(cap=1))
    scene.schedule("a", minutes(1))
    with pytest.raises(QueueFullError):
        scene.schedule("b", minutes(1))
    assert [item.input_text for item in scene.service.pending(MAIN)] == ["a"]
    scene.pass_minutes(2)
    assert scene.ready() == ["a"]
    scene.service.close()


def test_the_thread_of_its_own_lets_go_by_the_real_clock() -> None:
    manager, woken = new_manager(), threading.Event()
    service = QueueRewakeService(manager, woken.set)
    service.schedule(Wakeup("far", MAIN), minutes(60))
    service.schedule(Wakeup("near", MAIN), After(timedelta(milliseconds=20)))
    assert woken.wait(DEADLINE)
    assert [item.input_text for item in manager.snapshot(MAIN) if not item.held] == ["near"]
    service.close()


def test_threads_that_schedule_at_the_same_time_lose_nothing() -> None:
    manager, released, done = new_manager(), list[str](), threading.Event()

    class Watch:
        def on_event(self, event: QueueEvent) -> None:
            if event.reason is QueueChangeReason.RELEASED:
                released.append(event.input.input_text)

    manager.add_listener(Watch())

    def look() -> None:
        if len(set(released)) == 400:
            done.set()

    service = QueueRewakeService(manager, look)

    def produce(name: int) -> None:
        for number in range(100):
            service.schedule(Wakeup(f"{name}-{number}", MAIN), After(timedelta(0)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(produce, range(4)))
    assert done.wait(DEADLINE)
    service.close()
    assert len(released) == 400
    assert all(not item.held for item in manager.snapshot(MAIN))


def test_a_service_that_is_closed_lets_nothing_go_any_more() -> None:
    manager, woken = new_manager(), threading.Event()
    service = QueueRewakeService(manager, woken.set)
    service.schedule(Wakeup("a", MAIN), minutes(60))
    service.close()
    service.close()
    assert manager.snapshot(MAIN)[0].scheduled
    assert not any(thread.name == "rewake" for thread in threading.enumerate())


def test_other_contexts_have_reminders_of_their_own(scene: Scene) -> None:
    scene.service.schedule(Wakeup("sub", SUB), minutes(1))
    scene.schedule("main", minutes(1))
    assert [item.input_text for item in scene.service.pending(SUB)] == ["sub"]
    scene.pass_minutes(2)
    assert scene.ready() == ["main"]
    assert [item.input_text for item in scene.manager.snapshot(SUB)] == ["sub"]


def test_without_a_service_nothing_is_scheduled() -> None:
    assert NO_REWAKE.schedule(Wakeup("a", MAIN), minutes(1)) is None
    assert NO_REWAKE.cancel("x") is None
    assert NO_REWAKE.pending(MAIN) == []


def test_times_that_cannot_be_meant_are_refused() -> None:
    for span in (timedelta(seconds=-1), MAX_SPAN + timedelta(seconds=1)):
        with pytest.raises(ValueError, match="366"):
            After(span)
    with pytest.raises(ValueError, match="time zone"):
        At(datetime(2026, 1, 1))


async def test_a_restart_counts_on_what_is_to_come_and_holds_what_was_missed(
    tmp_path: Path,
) -> None:
    first = Scene()
    mirror = _mirror(first.manager, tmp_path)
    await mirror.start()
    first.schedule("missed", minutes(5))
    first.schedule("to come", minutes(30))
    assert await mirror.close()
    first.service.close()

    second = Scene()
    second.time.pass_by(timedelta(minutes=10))
    mirror = _mirror(second.manager, tmp_path)
    leftovers = await mirror.start()
    assert [item.input_text for item in leftovers.waiting] == ["missed", "to come"]
    assert [item.input_text for item in second.service.pending(MAIN)] == ["to come"]
    second.service.let_go()
    assert second.ready() == []
    assert second.manager.release(MAIN) == 1
    assert second.ready() == ["missed"]
    second.pass_minutes(20)
    assert second.ready() == ["missed", "to come"]
    await mirror.close()
    second.service.close()


def _mirror(manager: MessageQueueManager, folder: Path) -> RepositoryMirror:
    hooks = MirrorHooks(trouble=lambda _: None, arrived=lambda: None)
    return RepositoryMirror(
        manager, lambda: open_sqlite_repository(folder / "state" / "queue.db"), MAIN, hooks
    )


async def test_interceptors_of_a_parallel_batch_schedule_for_their_agent() -> None:
    scene = Scene()
    together = threading.Barrier(4)

    def after(call: InterceptedCall, _: ToolUseResult) -> None:
        together.wait(DEADLINE)
        item = call.rewake.schedule(Wakeup(f"look {call.tool_index}", MAIN), minutes(1))
        assert item is not None

    chain = ToolInterceptors(ToolInterceptor("rewake", after=after), rewake=scene.service)
    bench = Bench(safe("Read"), config=ToolConcurrencyConfig.on(4), interceptors=chain)
    await bench.run("Read", "Read", "Read", "Read")
    scene.pass_minutes(2)
    assert sorted(scene.ready()) == ["look 0", "look 1", "look 2", "look 3"]
    scene.service.close()
    chain.close()
