"""The facade: batches, listeners, cap, holding, editing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.listeners import LoggingMessageQueueListener
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
SUB = AgentRuntimeId("s1", "sub-1")
NOW, NEXT, LATER = QueuedInputPriority
COMMAND = {"kind": "command"}


class Recorder:
    """Keeps every event; may do something more with it."""

    def __init__(self, then: Callable[[QueueEvent], None] = lambda _: None) -> None:
        self.events: list[QueueEvent] = []
        self._then = then

    def on_event(self, event: QueueEvent) -> None:
        self.events.append(event)
        self._then(event)

    def seen(self) -> list[tuple[QueueChangeType, str]]:
        return [(event.change_type, event.input.input_text) for event in self.events]


@pytest.fixture
def manager() -> MessageQueueManager:
    return MessageQueueManager(InMemoryMessageQueueRepository())


def put(
    manager: MessageQueueManager,
    text: str,
    priority: QueuedInputPriority = NEXT,
    context_id: AgentRuntimeId = MAIN,
    metadata: dict[str, str] | None = None,
) -> QueuedInput:
    item = QueuedInput(text, context_id, priority, metadata=metadata or {})
    manager.enqueue(item)
    return item


def texts(items: list[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]


def test_drains_only_matching_context(manager: MessageQueueManager) -> None:
    counts = LoggingMessageQueueListener()
    manager.add_listener(counts)
    a = put(manager, "a", context_id=MAIN)
    put(manager, "b", context_id=SUB)
    assert manager.drain_for_injection(QueueFilter(MAIN), NEXT) == [a]
    assert counts.get_enqueued_count() == 2
    assert counts.get_drained_count() == 1
    assert len(manager.snapshot()) == 1


def test_later_leaves_only_when_it_is_asked_for(manager: MessageQueueManager) -> None:
    put(manager, "later", LATER)
    put(manager, "next")
    assert texts(manager.drain_for_injection(QueueFilter(MAIN))) == ["next"]
    assert texts(manager.drain_for_injection(QueueFilter(MAIN), LATER)) == ["later"]


def test_the_narrower_of_filter_and_argument_limits_a_drain(manager: MessageQueueManager) -> None:
    put(manager, "next")
    put(manager, "now", NOW)
    assert texts(manager.drain_for_injection(QueueFilter(MAIN, NOW), LATER)) == ["now"]
    assert manager.drain_for_injection(lambda item: item.context_id == MAIN, NOW) == []


def test_a_drain_is_one_batch_that_a_late_input_cannot_join(manager: MessageQueueManager) -> None:
    late = QueuedInput("late", MAIN, NOW)

    def send_late(event: QueueEvent) -> None:
        if event.change_type is QueueChangeType.DRAINED:
            manager.enqueue(late)

    put(manager, "next")
    put(manager, "now", NOW)
    first, second = Recorder(send_late), Recorder()
    manager.add_listener(first)
    manager.add_listener(second)
    assert texts(manager.drain_for_injection(QueueFilter(MAIN))) == ["now", "next"]
    expected = [
        (QueueChangeType.DRAINED, "now"),
        (QueueChangeType.DRAINED, "next"),
        (QueueChangeType.ENQUEUED, "late"),
    ]
    assert first.seen() == expected
    assert second.seen() == expected
    assert manager.snapshot() == [late]


def test_a_failing_listener_reaches_neither_the_producer_nor_its_siblings(
    manager: MessageQueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: QueueEvent) -> None:
        raise RuntimeError("metrics bug")

    after = Recorder()
    manager.add_listener(Recorder(fail))
    manager.add_listener(after)
    item = put(manager, "a")
    assert manager.drain_for_injection(QueueFilter(MAIN)) == [item]
    assert [change for change, _ in after.seen()] == [
        QueueChangeType.ENQUEUED,
        QueueChangeType.DRAINED,
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_listeners_see_the_state_after_the_change(manager: MessageQueueManager) -> None:
    sizes: list[int] = []
    manager.add_listener(Recorder(lambda _: sizes.append(manager.size())))
    item = put(manager, "a")
    manager.remove(item.uuid)
    assert sizes == [1, 0]


def test_a_removed_listener_hears_nothing_more(manager: MessageQueueManager) -> None:
    recorder = Recorder()
    manager.add_listener(recorder)
    put(manager, "a")
    manager.remove_listener(recorder)
    manager.remove_listener(recorder)
    put(manager, "b")
    assert recorder.seen() == [(QueueChangeType.ENQUEUED, "a")]


def test_every_listener_sees_the_changes_of_all_threads_in_one_order(
    manager: MessageQueueManager,
) -> None:
    recorders = [Recorder(), Recorder()]
    for recorder in recorders:
        manager.add_listener(recorder)
    go = threading.Barrier(4)

    def produce(name: int) -> None:
        go.wait(timeout=60)
        for number in range(100):
            put(manager, f"{name}:{number}")

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(produce, name) for name in range(4)]:
            future.result(timeout=60)
    assert recorders[0].seen() == recorders[1].seen()
    assert [text for _, text in recorders[0].seen()] == texts(manager.snapshot())


def test_a_full_context_refuses_the_input_and_other_contexts_do_not() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), cap=2)
    first = put(manager, "a")
    put(manager, "b")
    with pytest.raises(QueueFullError, match="2 inputs are already waiting"):
        put(manager, "c")
    put(manager, "sub", context_id=SUB)
    manager.enqueue(first)
    assert texts(manager.snapshot(MAIN)) == ["a", "b"]


def test_a_cap_of_zero_is_no_cap() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), cap=0)
    for number in range(1_500):
        put(manager, str(number))
    assert manager.size(MAIN) == 1_500


def test_the_cap_holds_when_many_threads_enqueue_at_once() -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository(), cap=50)

    def produce() -> int:
        refused = 0
        for _ in range(50):
            try:
                put(manager, "x")
            except QueueFullError:
                refused += 1
        return refused

    with ThreadPoolExecutor(4) as pool:
        refused = sum(future.result(60) for future in [pool.submit(produce) for _ in range(4)])
    assert (manager.size(), refused) == (50, 150)


def test_removed_and_cleared_inputs_are_told_with_their_reason(
    manager: MessageQueueManager,
) -> None:
    recorder = Recorder()
    a, b, c = (put(manager, text) for text in "abc")
    manager.hold(c.uuid)
    manager.add_listener(recorder)
    assert manager.remove(a.uuid) == a
    assert manager.remove(a.uuid) is None
    assert manager.remove(b.uuid, QueueChangeReason.EXPIRED) == b
    assert manager.clear(MAIN) == [c]
    assert [(event.input, event.reason) for event in recorder.events] == [
        (a, QueueChangeReason.CANCELLED),
        (b, QueueChangeReason.EXPIRED),
        (c, QueueChangeReason.CLEARED),
    ]
    assert {event.change_type for event in recorder.events} == {QueueChangeType.REMOVED}


def test_an_edited_input_keeps_its_uuid_and_place(manager: MessageQueueManager) -> None:
    a = put(manager, "a")
    put(manager, "b")
    recorder = Recorder()
    manager.add_listener(recorder)
    assert manager.edit(a.uuid, "A")
    assert texts(manager.snapshot()) == ["A", "b"]
    assert recorder.seen() == [(QueueChangeType.CHANGED, "A")]
    with pytest.raises(ValueError, match="needs text"):
        manager.edit(a.uuid, "  ")
    assert not manager.edit("gone", "x")


def test_a_reprioritised_input_joins_the_end_of_its_new_tier(
    manager: MessageQueueManager,
) -> None:
    put(manager, "n", NOW)
    a = put(manager, "a")
    recorder = Recorder()
    manager.add_listener(recorder)
    assert manager.reprioritise(a.uuid, NOW)
    assert manager.reprioritise(a.uuid, NOW)
    assert not manager.reprioritise("gone", NOW)
    assert [(item.input_text, item.priority) for item in manager.snapshot()] == [
        ("n", NOW),
        ("a", NOW),
    ]
    assert [event.reason for event in recorder.events] == [QueueChangeReason.REPRIORITISED]


def test_move_stays_within_tier_and_context(manager: MessageQueueManager) -> None:
    put(manager, "now", NOW)
    _, b, c = (put(manager, text) for text in "abc")
    put(manager, "sub", context_id=SUB)
    assert manager.move(c.uuid, -1)
    assert texts(manager.snapshot(MAIN)) == ["now", "a", "c", "b"]
    assert manager.move(c.uuid, -9)
    assert texts(manager.snapshot(MAIN)) == ["now", "c", "a", "b"]
    assert manager.move(c.uuid, 9)
    assert texts(manager.snapshot(MAIN)) == ["now", "a", "b", "c"]
    assert not manager.move(c.uuid, 1)
    assert not manager.move("gone", 1)
    assert manager.move(b.uuid, -1)
    assert texts(manager.snapshot(MAIN)) == ["now", "b", "a", "c"]


def test_held_inputs_stay_until_they_are_released(manager: MessageQueueManager) -> None:
    a = put(manager, "a", metadata={"origin": "repl"})
    put(manager, "b")
    sub = put(manager, "sub", context_id=SUB)
    assert manager.hold(MAIN) == 2
    assert manager.hold(MAIN) == 0
    put(manager, "c")
    assert texts(manager.drain_for_injection(QueueFilter(MAIN), LATER)) == ["c"]
    assert manager.drain_for_injection(QueueFilter(SUB)) == [sub]
    assert manager.release(a.uuid) == 1
    released = manager.drain_for_injection(QueueFilter(MAIN))
    assert released == [a]
    assert dict(released[0].metadata) == {"origin": "repl"}
    assert manager.release(MAIN) == 1
    assert manager.hold("gone") == 0


def test_a_snapshot_and_its_metadata_are_copies(manager: MessageQueueManager) -> None:
    tags = {"origin": "repl"}
    item = QueuedInput("a", MAIN, metadata=tags)
    manager.enqueue(item)
    tags["origin"] = "changed"
    manager.snapshot().clear()
    assert [dict(waiting.metadata) for waiting in manager.snapshot()] == [{"origin": "repl"}]


def test_peek_leaves_the_input(manager: MessageQueueManager) -> None:
    a = put(manager, "a")
    assert manager.peek(QueueFilter(MAIN)) == a
    assert manager.peek(QueueFilter(SUB)) is None
    assert manager.size() == 1


def test_a_command_is_a_barrier_where_the_turn_would_stop(manager: MessageQueueManager) -> None:
    closed: list[bool] = []
    put(manager, "a")
    put(manager, "b")
    put(manager, "/compact", metadata=COMMAND)
    put(manager, "c")
    selection = QueueFilter(MAIN, NEXT, prompts_only=True)
    assert texts(manager.drain_or_close(selection, lambda: closed.append(True))) == ["a", "b"]
    assert closed == []
    assert manager.drain_or_close(selection, lambda: closed.append(True)) == []
    assert closed == [True]
    assert texts(manager.take_leftovers(MAIN, include_later=True)) == ["/compact"]
    assert texts(manager.take_leftovers(MAIN, include_later=True)) == ["c"]


def test_leftovers_are_walked_in_order_and_later_goes_one_by_one(
    manager: MessageQueueManager,
) -> None:
    put(manager, "l1", LATER)
    put(manager, "l2", LATER)
    put(manager, "/later-command", LATER, metadata=COMMAND)
    put(manager, "a")
    held = put(manager, "held")
    put(manager, "n", NOW)
    manager.hold(held.uuid)
    assert manager.take_leftovers(SUB, include_later=True) == []
    runs: list[list[str]] = []
    while run := manager.take_leftovers(MAIN, include_later=True):
        runs.append(texts(run))
    assert runs == [["n", "a"], ["l1"], ["l2"], ["/later-command"]]
    assert manager.snapshot() == [held]


def test_leftovers_without_later_leave_it_waiting(manager: MessageQueueManager) -> None:
    put(manager, "l", LATER)
    assert manager.take_leftovers(MAIN, include_later=False) == []
    assert manager.size() == 1
