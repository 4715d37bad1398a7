"""The mirror: the queue of a session in a shared store too, and nothing waits for it (D7, D12)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority, QueueFilter
from tests.support.queue_stores import QueueStore

DEADLINE = 30.0
MAIN = AgentRuntimeId("s1", "main")
OTHER = AgentRuntimeId("s2", "main")
ALL = QueueFilter(MAIN, exclude_held=False)
NOW, NEXT, LATER = QueuedInputPriority


@dataclass
class Told:
    """What the mirror told, in the order in which it did."""

    troubles: list[str | None] = field(default_factory=list[str | None])
    refused: list[str] = field(default_factory=list[str])
    arrivals: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def hooks(self, refusal: Callable[[QueuedInput], str] = lambda _: "") -> MirrorHooks:
        return MirrorHooks(self._trouble, self._arrived, refusal, self._refused)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, DEADLINE)

    def _trouble(self, error: QueueStoreError | None) -> None:
        with self.changed:
            self.troubles.append(None if error is None else error.problem)
            self.changed.notify_all()

    def _arrived(self) -> None:
        with self.changed:
            self.arrivals += 1
            self.changed.notify_all()

    def _refused(self, item: QueuedInput, why: str) -> None:
        with self.changed:
            self.refused.append(f"{item.input_text}: {why}")
            self.changed.notify_all()


class FailingOpener:
    """Opens a store, but not before it is mended."""

    def __init__(self, store: QueueStore) -> None:
        self._store = store
        self.mended = threading.Event()

    def __call__(self) -> MessageQueueRepository:
        if not self.mended.is_set():
            raise QueueStoreError("it is broken", where="the test", way_out="mend it")
        return self._store.open()


@asynccontextmanager
async def mirrored(
    store: QueueStore,
    told: Told | None = None,
    *,
    opener: Callable[[], MessageQueueRepository] | None = None,
    delivered: frozenset[str] = frozenset(),
    refusal: Callable[[QueuedInput], str] = lambda _: "",
) -> AsyncGenerator[tuple[MessageQueueManager, RepositoryMirror]]:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    hooks = (told or Told()).hooks(refusal)
    mirror = RepositoryMirror(manager, opener or store.open, MAIN, hooks, (0.01,))
    mirror.start(delivered)
    await mirror.answered()
    try:
        yield manager, mirror
    finally:
        await mirror.close(DEADLINE)


def texts(items: list[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]


def stored(repository: MessageQueueRepository) -> list[tuple[str, str, bool]]:
    items = repository.list_by_max_priority(LATER, ALL)
    return [(item.priority.name, item.input_text, item.held) for item in items]


def waiting(manager: MessageQueueManager) -> list[tuple[str, str, bool]]:
    items = manager.snapshot(MAIN)
    return [(item.priority.name, item.input_text, item.held) for item in items]


def put(manager: MessageQueueManager, *names: str) -> list[QueuedInput]:
    items = [QueuedInput(name, MAIN) for name in names]
    for item in items:
        manager.enqueue(item)
    return items


async def settled(mirror: RepositoryMirror) -> None:
    """Until the store has what was changed so far."""
    assert await mirror.answered()


async def test_every_change_reaches_the_store_in_order(shared_store: QueueStore) -> None:
    async with mirrored(shared_store) as (manager, _):
        one, two, three, four = put(manager, "one", "two", "three", "four")
        manager.enqueue(QueuedInput("of another session", OTHER))
        manager.edit(two.uuid, "TWO")
        manager.move(three.uuid, -2)
        manager.reprioritise(four.uuid, NOW)
        manager.hold(one.uuid)
        manager.remove(two.uuid)
        expected = waiting(manager)
    assert stored(shared_store.open()) == expected
    assert expected == [("NOW", "four", False), ("NEXT", "three", False), ("NEXT", "one", True)]


async def test_what_is_delivered_leaves_the_store_only_when_the_log_has_it(
    shared_store: QueueStore,
) -> None:
    async with mirrored(shared_store) as (manager, mirror):
        put(manager, "one", "two")
        items = manager.drain_for_injection(ALL)
        assert texts(await mirror.claim(items)) == ["one", "two"]
        outside = shared_store.open()
        assert stored(outside) == []
        mirror.confirm([items[0].uuid])
        await settled(mirror)
    # The second was never confirmed: the next run finds it.
    assert stored(shared_store.open()) == [("NEXT", "two", False)]


async def test_what_another_process_took_out_is_not_delivered(shared_store: QueueStore) -> None:
    async with mirrored(shared_store) as (manager, mirror):
        _, two, _ = put(manager, "one", "two", "three")
        await settled(mirror)
        items = manager.drain_for_injection(ALL)
        assert shared_store.open().remove(two.uuid)
        assert texts(await mirror.claim(items)) == ["one", "three"]


async def test_an_input_that_was_never_queued_is_delivered_without_the_store(
    shared_store: QueueStore,
) -> None:
    async with mirrored(shared_store) as (_, mirror):
        typed = QueuedInput("typed when idle", MAIN)
        assert await mirror.claim([typed]) == [typed]
        mirror.confirm([typed.uuid])


async def test_inputs_from_outside_come_in_at_once(shared_store: QueueStore) -> None:
    told = Told()
    async with mirrored(shared_store, told) as (manager, mirror):
        put(manager, "mine")
        await settled(mirror)
        shared_store.open().enqueue(QueuedInput("from outside", MAIN, NOW))
        await asyncio.to_thread(told.wait_for, lambda: told.arrivals == 1)
        assert texts(manager.snapshot(MAIN)) == ["from outside", "mine"]


async def test_changes_from_outside_are_taken_over(shared_store: QueueStore) -> None:
    async with mirrored(shared_store) as (manager, mirror):
        items = put(manager, "one", "two", "three", "four")
        await settled(mirror)
        outside = shared_store.open()
        outside.remove(items[0].uuid)
        outside.move(items[3].uuid, items[1].uuid)
        outside.replace(QueuedInput("TWO", MAIN, LATER, uuid=items[1].uuid))
        outside.replace(items[2].as_held())
        mirror.sync()
        await settled(mirror)
        assert waiting(manager) == [
            ("NEXT", "four", False),
            ("NEXT", "three", True),
            ("LATER", "TWO", False),
        ]


async def test_what_is_being_delivered_does_not_come_back_from_the_store(
    shared_store: QueueStore,
) -> None:
    async with mirrored(shared_store) as (manager, mirror):
        put(manager, "one")
        await settled(mirror)
        manager.drain_for_injection(ALL)
        mirror.sync()
        await settled(mirror)
        assert manager.snapshot(MAIN) == []


async def test_what_may_not_come_from_outside_is_taken_out_and_told(
    shared_store: QueueStore,
) -> None:
    told = Told()

    def refusal(item: QueuedInput) -> str:
        return "a command" if item.input_text.startswith("/") else ""

    async with mirrored(shared_store, told, refusal=refusal) as (manager, mirror):
        put(manager, "/mine")
        await settled(mirror)
        outside = shared_store.open()
        outside.enqueue(QueuedInput("/clear", MAIN))
        await asyncio.to_thread(told.wait_for, lambda: bool(told.refused))
        assert told.refused == ["/clear: a command"]
        assert texts(manager.snapshot(MAIN)) == ["/mine"]
        assert texts(outside.list_by_max_priority(LATER, ALL)) == ["/mine"]


async def test_leftovers_come_back_held_and_what_the_log_holds_does_not(
    shared_store: QueueStore,
) -> None:
    dead = shared_store.open()
    items = [QueuedInput(name, MAIN) for name in ("one", "two", "three")]
    for item in items:
        dead.enqueue(item)
    dead.claim(QueueFilter(MAIN, uuids=frozenset({items[0].uuid, items[1].uuid})))
    shared_store.crash(dead)

    logged = frozenset({items[0].uuid})
    async with mirrored(shared_store, delivered=logged) as (manager, _):
        assert waiting(manager) == [("NEXT", "two", True), ("NEXT", "three", True)]
        assert stored(shared_store.open()) == [("NEXT", "two", True), ("NEXT", "three", True)]


async def test_what_was_held_before_is_not_written_again_at_the_start(
    shared_store: QueueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = shared_store.open()
    earlier.enqueue(QueuedInput("held", MAIN).as_held())
    earlier.enqueue(QueuedInput("on its way", MAIN))
    opened = shared_store.open()
    written: list[str] = []
    replace = opened.replace_all

    def counted(items: Sequence[QueuedInput]) -> int:
        written.extend(item.input_text for item in items)
        return replace(items)

    monkeypatch.setattr(opened, "replace_all", counted)
    async with mirrored(shared_store, opener=lambda: opened) as (manager, _):
        assert waiting(manager) == [("NEXT", "held", True), ("NEXT", "on its way", True)]
    assert written == ["on its way"]


async def test_a_store_that_fails_delays_nobody_and_gets_everything_later(
    shared_store: QueueStore,
) -> None:
    told, opener = Told(), FailingOpener(shared_store)
    async with mirrored(shared_store, told, opener=opener) as (manager, mirror):
        one, two = put(manager, "one", "two")
        assert mirror.unstored == (one, two)
        assert mirror.trouble is not None
        items = manager.drain_for_injection(QueueFilter(MAIN, uuids=frozenset({one.uuid})))
        assert await mirror.claim(items) == [one]
        mirror.confirm([one.uuid])
        opener.mended.set()
        await asyncio.to_thread(told.wait_for, lambda: len(told.troubles) == 2)
        await settled(mirror)
        assert not mirror.unstored
    assert told.troubles == ["it is broken", None]
    assert stored(shared_store.open()) == [("NEXT", "two", False)]


async def test_what_is_typed_before_the_store_answers_stays(shared_store: QueueStore) -> None:
    shared_store.open().enqueue(QueuedInput("left over", MAIN))
    told, opener = Told(), FailingOpener(shared_store)
    async with mirrored(shared_store, told, opener=opener) as (manager, mirror):
        put(manager, "typed meanwhile")
        opener.mended.set()
        await asyncio.to_thread(told.wait_for, lambda: None in told.troubles)
        await settled(mirror)
        assert waiting(manager) == [("NEXT", "left over", True), ("NEXT", "typed meanwhile", False)]


Step = tuple[bool, str, int]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from(["enqueue", "edit", "tier", "move", "remove", "hold"]),
            st.integers(0, 5),
        ),
        max_size=20,
    )
)
async def test_both_sides_agree_after_any_changes_on_either(steps: list[Step]) -> None:
    """Memory is the store here: two managers on one store, one of them through a mirror."""
    shared = InMemoryMessageQueueRepository()
    outside = MessageQueueManager(shared)
    here = MessageQueueManager(InMemoryMessageQueueRepository())
    mirror = RepositoryMirror(here, lambda: shared, MAIN, Told().hooks())
    await mirror.start()
    for local, change, number in steps:
        manager = here if local else outside
        _do(manager, change, number)
        if local:
            await settled(mirror)
        else:
            mirror.sync()
            await settled(mirror)
        assert waiting(here) == waiting(outside)
    await mirror.close(DEADLINE)


def _do(manager: MessageQueueManager, change: str, number: int) -> None:
    items = manager.snapshot(MAIN)
    if change == "enqueue" or not items:
        manager.enqueue(QueuedInput(f"input {number}", MAIN, QueuedInputPriority(number % 3)))
        return
    item = items[number % len(items)]
    match change:
        case "edit":
            manager.edit(item.uuid, f"{item.input_text}!")
        case "tier":
            manager.reprioritise(item.uuid, QueuedInputPriority(number % 3))
        case "move":
            manager.move(item.uuid, number - 2)
        case "remove":
            manager.remove(item.uuid)
        case _:
            manager.hold(item.uuid)


async def test_what_was_queued_before_the_store_was_opened_is_kept_and_not_held(
    store: QueueStore,
) -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    with contextlib.closing(store.open()) as repository:
        repository.enqueue(QueuedInput("left", MAIN))
        [early] = put(manager, "early")
        mirror = RepositoryMirror(manager, store.open, MAIN, Told().hooks(), (0.01,))
        assert texts(list((await mirror.start()).waiting)) == ["left"]
        await settled(mirror)
        expected = [("NEXT", "early", False), ("NEXT", "left", True)]
        assert sorted(waiting(manager)) == sorted(stored(repository)) == expected
        assert await mirror.claim(manager.drain_for_injection(QueueFilter(MAIN))) == [early]
        await mirror.close(DEADLINE)


class Restarting(InMemoryMessageQueueRepository):
    """Like a server that keeps nothing on its disk."""

    def __init__(self) -> None:
        super().__init__()
        self._starts = 1

    def generation(self) -> str:
        return f"start {self._starts}"

    def restart(self) -> None:
        self.drain(ALL)
        self._starts += 1


async def test_what_was_drained_before_a_look_found_the_store_started_anew_is_delivered() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    store = Restarting()
    mirror = RepositoryMirror(manager, lambda: store, MAIN, Told().hooks(), (0.01,))
    await mirror.start()
    put(manager, "before")
    await settled(mirror)
    drained = manager.drain_for_injection(QueueFilter(MAIN))
    store.restart()
    mirror.sync()
    await settled(mirror)
    assert texts(await mirror.claim(drained)) == ["before"]
    [after] = put(manager, "after")
    await settled(mirror)
    drained = manager.drain_for_injection(QueueFilter(MAIN))
    assert store.remove(after.uuid)
    assert await mirror.claim(drained) == []
    await mirror.close(DEADLINE)


class FailingOnce(InMemoryMessageQueueRepository):
    """Fails once, at the enqueue of a certain text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def enqueue(self, item: QueuedInput, *, cap: int = 0) -> bool:
        if item.input_text == self._text:
            self._text = ""
            raise QueueStoreError("it is broken", where="the test", way_out="mend it")
        return super().enqueue(item, cap=cap)


async def test_a_store_that_fails_while_it_is_filled_holds_nothing_that_was_typed() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    store, told = FailingOnce("two"), Told()
    store.enqueue(QueuedInput("left", MAIN))
    put(manager, "one", "two")
    mirror = RepositoryMirror(manager, lambda: store, MAIN, told.hooks(), (0.01,))
    mirror.start()
    await asyncio.to_thread(told.wait_for, lambda: None in told.troubles)
    await settled(mirror)
    assert waiting(manager) == [
        ("NEXT", "left", True),
        ("NEXT", "one", False),
        ("NEXT", "two", False),
    ]
    await mirror.close(DEADLINE)


async def test_what_another_process_had_taken_and_gives_back_waits_again(
    shared_store: QueueStore,
) -> None:
    async with mirrored(shared_store) as (manager, mirror):
        put(manager, "one")
        await settled(mirror)
        other = shared_store.open()
        [taken] = other.claim(ALL)
        assert await mirror.claim(manager.drain_for_injection(ALL)) == []
        other.unclaim([taken.uuid])
        mirror.sync()
        await settled(mirror)
        assert texts(manager.snapshot(MAIN)) == ["one"]


def _same(store: MessageQueueRepository) -> MessageQueueRepository:
    return store


class CountingRepository(InMemoryMessageQueueRepository):
    """Counts how often it is asked for inputs."""

    asked = 0

    def peek(self, predicate: Predicate) -> QueuedInput | None:
        self.asked += 1
        return super().peek(predicate)

    def list_by_max_priority(
        self, max_priority: QueuedInputPriority, predicate: Predicate
    ) -> list[QueuedInput]:
        self.asked += 1
        return super().list_by_max_priority(max_priority, predicate)


async def test_a_look_at_the_store_goes_through_the_queue_as_often_for_many_inputs_as_for_few() -> (
    None
):
    asked: list[int] = []
    for count in (5, 50):
        here = CountingRepository()
        manager = MessageQueueManager(here)
        store = InMemoryMessageQueueRepository()
        mirror = RepositoryMirror(manager, partial(_same, store), MAIN, Told().hooks())
        await mirror.start()
        put(manager, *map(str, range(count)))
        await settled(mirror)
        here.asked = 0
        mirror.sync()
        await settled(mirror)
        asked.append(here.asked)
        await mirror.close(DEADLINE)
    assert asked[0] == asked[1] > 0
