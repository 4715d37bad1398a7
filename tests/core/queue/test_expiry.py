"""Inputs that waited too long: never sent, never lost, and a clock that jumps back does no harm."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.expiry import ExpiredInputs
from midturn_core.queue.leftovers import Leftovers
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.mirror import RepositoryMirror
from midturn_core.queue.mirror_hooks import MirrorHooks
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = QueueFilter(MAIN, QueuedInputPriority.NEXT, prompts_only=True)
HOOKS = MirrorHooks(trouble=lambda _: None, arrived=lambda: None)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def setup() -> tuple[MessageQueueManager, ExpiredInputs, Clock]:
    clock = Clock()
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), ttl=60, now=clock)
    expired = ExpiredInputs(manager, MAIN, 60)
    manager.add_listener(expired)
    return manager, expired, clock


def put(manager: MessageQueueManager, text: str) -> QueuedInput:
    item = QueuedInput(text, MAIN, enqueued_at=START)
    manager.enqueue(item)
    return item


def at_step(manager: MessageQueueManager) -> list[str]:
    return [item.input_text for item in manager.drain_at_step(STEP)]


def test_a_drain_takes_out_what_has_expired_and_it_is_kept() -> None:
    manager, expired, clock = setup()
    put(manager, "old")
    clock.pass_seconds(61)
    manager.enqueue(QueuedInput("new", MAIN, enqueued_at=clock.now))
    assert at_step(manager) == ["new"]
    assert [item.input_text for item in expired.items()] == ["old"]


def test_the_event_says_that_it_expired() -> None:
    manager, _, clock = setup()
    events: list[QueueEvent] = []

    class Listener:
        def on_event(self, event: QueueEvent) -> None:
            events.append(event)

    manager.add_listener(Listener())
    put(manager, "old")
    clock.pass_seconds(61)
    manager.expire(MAIN)
    assert (events[-1].change_type, events[-1].reason) == (
        QueueChangeType.REMOVED,
        QueueChangeReason.EXPIRED,
    )


def test_held_and_edited_inputs_do_not_expire_and_a_release_gives_them_their_time_anew() -> None:
    manager, expired, clock = setup()
    held, edited = put(manager, "held"), put(manager, "edited")
    manager.hold(held.uuid)
    manager.begin_edit(edited.uuid)
    clock.pass_seconds(3600)
    assert at_step(manager) == []
    manager.release(held.uuid)
    manager.end_edit(edited.uuid)
    clock.pass_seconds(59)
    assert at_step(manager) == ["held", "edited"]
    assert not expired.items()


def test_a_clock_that_was_set_back_expires_nothing() -> None:
    manager, expired, clock = setup()
    put(manager, "typed")
    clock.pass_seconds(-100_000)
    assert at_step(manager) == ["typed"]
    assert not expired.items()


def test_without_a_time_to_live_nothing_expires() -> None:
    clock = Clock()
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), now=clock)
    put(manager, "old")
    clock.pass_seconds(10**9)
    assert at_step(manager) == ["old"]


async def test_the_timer_finds_what_expired_while_nothing_is_delivered() -> None:
    manager, expired, clock = setup()
    put(manager, "old")
    clock.pass_seconds(61)
    told: asyncio.Queue[QueuedInput] = asyncio.Queue()
    expired.start(told.put_nowait)
    assert (await asyncio.wait_for(told.get(), 30)).input_text == "old"
    await expired.close()


def test_a_restored_input_is_a_new_one_with_all_its_time() -> None:
    manager, _, clock = setup()
    old = put(manager, "old")
    clock.pass_seconds(61)
    (item,) = manager.expire(MAIN)
    restored = item.as_expired().as_restored(clock.now)
    assert restored.uuid != old.uuid
    assert not restored.held
    assert not restored.expired
    manager.enqueue(restored)
    assert at_step(manager) == ["old"]


async def test_an_expired_input_stays_in_the_store_and_is_found_by_the_next_run() -> None:
    manager, _, clock = setup()
    store = InMemoryMessageQueueRepository()
    first = RepositoryMirror(manager, lambda: store, MAIN, HOOKS)
    await first.start()
    put(manager, "old")
    clock.pass_seconds(61)
    manager.expire(MAIN)
    await first.close()

    after, kept, _ = setup()
    second = RepositoryMirror(after, lambda: store, MAIN, HOOKS)
    left = await second.start()
    assert left.waiting == ()
    kept.bring_in(left.expired)
    assert [item.input_text for item in kept.items()] == ["old"]
    assert after.size(MAIN) == 0
    second.sync()
    second.discard(kept.items()[0].uuid)
    await second.close()
    assert store.size(MAIN) == 0
    assert after.size(MAIN) == 0


async def test_an_expired_command_that_somebody_else_put_into_the_store_is_refused() -> None:
    """What is restored runs: it must have been typed in the session, as anything that waits."""
    store = InMemoryMessageQueueRepository()
    planted = QueuedInput("!touch x", MAIN, metadata={"kind": "shell"})
    store.enqueue(planted.as_expired())
    hooks = MirrorHooks(
        trouble=lambda _: None, arrived=lambda: None, left_refusal=lambda _: "not from here"
    )
    manager, _, _ = setup()
    mirror = RepositoryMirror(manager, lambda: store, MAIN, hooks)
    assert await mirror.start() == Leftovers()
    await mirror.close()
    assert store.size(MAIN) == 0
