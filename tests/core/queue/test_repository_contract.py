"""What every repository must do (S2.27 to S2.32, S2.11, D8, D9), on every kind of store."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import HELD_KEY, QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
SUB = AgentRuntimeId("s1", "sub-1")
NOW, NEXT, LATER = QueuedInputPriority
ALL_MAIN = QueueFilter(MAIN, exclude_held=False)


def put(
    repository: MessageQueueRepository,
    text: str,
    priority: QueuedInputPriority = NEXT,
    context_id: AgentRuntimeId = MAIN,
) -> QueuedInput:
    item = QueuedInput(text, context_id, priority)
    assert repository.enqueue(item)
    return item


def texts(items: list[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]


def test_first_in_first_out_within_a_tier(repository: MessageQueueRepository) -> None:
    for number in range(20):
        put(repository, str(number))
    assert texts(repository.drain(ALL_MAIN)) == [str(number) for number in range(20)]


def test_tiers_leave_in_their_fixed_order(repository: MessageQueueRepository) -> None:
    put(repository, "later", LATER)
    put(repository, "next")
    put(repository, "now", NOW)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["now", "next", "later"]


def test_the_order_never_depends_on_the_clock(repository: MessageQueueRepository) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(3):
        past = start - timedelta(hours=number)
        repository.enqueue(QueuedInput(str(number), MAIN, enqueued_at=past))
    assert texts(repository.drain(ALL_MAIN)) == ["0", "1", "2"]


def test_an_input_is_stored_once_however_often_it_is_sent(
    repository: MessageQueueRepository,
) -> None:
    item = put(repository, "a")
    assert not repository.enqueue(dataclasses.replace(item, input_text="again"))
    assert texts(repository.drain(ALL_MAIN)) == ["a"]


def test_a_full_context_refuses_an_input_and_keeps_no_trace_of_it(
    repository: MessageQueueRepository,
) -> None:
    first = QueuedInput("first", MAIN)
    refused = QueuedInput("refused", MAIN, NOW)
    assert repository.enqueue(first, cap=2)
    assert repository.enqueue(QueuedInput("second", MAIN), cap=2)
    for _ in range(2):
        with pytest.raises(QueueFullError, match="2 inputs are already waiting"):
            repository.enqueue(refused, cap=2)
    assert not repository.enqueue(first, cap=2)
    assert repository.enqueue(QueuedInput("of another context", SUB), cap=2)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["first", "second"]
    assert repository.get(refused.uuid) is None
    # What is claimed does not wait any more, so it takes no room.
    repository.claim(QueueFilter(MAIN, uuids=frozenset({first.uuid})))
    assert repository.enqueue(refused, cap=2)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["refused", "second"]


def test_remove_is_idempotent(repository: MessageQueueRepository) -> None:
    item = put(repository, "a")
    assert repository.remove(item.uuid) is True
    assert repository.remove(item.uuid) is False
    assert repository.remove("never seen") is False
    assert repository.size() == 0


def test_dequeue_takes_the_first_match_and_peek_leaves_it(
    repository: MessageQueueRepository,
) -> None:
    put(repository, "a", LATER)
    put(repository, "b")
    assert repository.peek(ALL_MAIN) == repository.peek(ALL_MAIN)
    first = repository.dequeue(ALL_MAIN)
    assert first is not None
    assert first.input_text == "b"
    second = repository.dequeue(lambda item: item.priority == LATER)
    assert second is not None
    assert second.input_text == "a"
    assert repository.dequeue(ALL_MAIN) is None
    assert repository.peek(ALL_MAIN) is None


def test_a_list_is_a_copy(repository: MessageQueueRepository) -> None:
    put(repository, "a")
    repository.list_by_max_priority(LATER, ALL_MAIN).clear()
    assert repository.size() == 1


def test_a_list_stops_at_the_tier_asked_for(repository: MessageQueueRepository) -> None:
    for priority in QueuedInputPriority:
        put(repository, priority.name, priority)
    assert texts(repository.list_by_max_priority(NEXT, ALL_MAIN)) == ["NOW", "NEXT"]


def test_a_drain_takes_only_what_the_filter_selects(repository: MessageQueueRepository) -> None:
    put(repository, "mine")
    put(repository, "other session", context_id=AgentRuntimeId("s2", "main"))
    put(repository, "subagent", context_id=SUB)
    repository.enqueue(QueuedInput("held", MAIN, metadata={HELD_KEY: "1"}))
    repository.enqueue(QueuedInput("/compact", MAIN, metadata={"kind": "command"}))
    assert texts(repository.drain(QueueFilter(MAIN, prompts_only=True))) == ["mine"]
    assert repository.size() == 4
    assert repository.size(MAIN) == 2


def test_any_callable_selects_across_contexts_by_tier(
    repository: MessageQueueRepository,
) -> None:
    put(repository, "1")
    put(repository, "2", context_id=SUB)
    put(repository, "3")
    put(repository, "4", NOW, context_id=SUB)
    first, *others = repository.drain(lambda item: item.input_text != "1")
    assert first.input_text == "4"
    assert sorted(texts(others)) == ["2", "3"]
    assert repository.size() == 1


def test_a_filter_can_name_the_source_the_tags_and_the_uuids(
    repository: MessageQueueRepository,
) -> None:
    tagged = QueuedInput("a", MAIN, source_agent_id="sub-1", metadata={"k": "v", "l": "\ud800'"})
    other = QueuedInput("b", MAIN, source_agent_id="sub-2", metadata={"k": "w"})
    repository.enqueue(other)
    repository.enqueue(tagged)

    def selected(**terms: Any) -> list[str]:
        return texts(repository.list_by_max_priority(LATER, QueueFilter(MAIN, **terms)))

    assert selected(source_agent_id="sub-1") == ["a"]
    assert selected(source_agent_id="sub") == []
    assert selected(metadata={"k": "v", "l": "\ud800'"}) == ["a"]
    assert selected(metadata={"k": "v", "m": "v"}) == []
    assert selected(uuids=frozenset({tagged.uuid, other.uuid, "gone"})) == ["b", "a"]
    assert selected(uuids=frozenset({tagged.uuid})) == ["a"]
    assert selected(uuids=frozenset[str]()) == []


def test_every_field_comes_back_as_it_was(repository: MessageQueueRepository) -> None:
    item = QueuedInput(
        "text",
        AgentRuntimeId("a {session}/with %2F", "sub/1 }{"),
        NOW,
        "no uuid \udcff at all",
        "source ü",
        datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        {"": "empty", "kind": "command", "\x00": "\n"},
    )
    assert repository.enqueue(item)
    (found,) = repository.drain(QueueFilter(item.context_id))
    for name in ("input_text", "context_id", "priority", "uuid", "source_agent_id"):
        assert getattr(found, name) == getattr(item, name)
    assert found.enqueued_at == item.enqueued_at
    assert dict(found.metadata) == dict(item.metadata)


def test_contexts_with_similar_names_stay_apart(repository: MessageQueueRepository) -> None:
    put(repository, "one", context_id=AgentRuntimeId("a/b", "c"))
    put(repository, "two", context_id=AgentRuntimeId("a", "b/c"))
    assert texts(repository.drain(QueueFilter(AgentRuntimeId("a", "b/c")))) == ["two"]


def test_a_uuid_is_stored_once_in_all_contexts(repository: MessageQueueRepository) -> None:
    item = put(repository, "a")
    assert not repository.enqueue(dataclasses.replace(item, context_id=SUB))
    assert repository.size() == 1


def test_what_left_can_come_back_under_its_uuid(repository: MessageQueueRepository) -> None:
    item = put(repository, "a")
    assert repository.remove(item.uuid)
    assert repository.enqueue(item)
    assert repository.get(item.uuid) == item
    assert texts(repository.drain(ALL_MAIN)) == ["a"]
    assert repository.enqueue(item)
    assert repository.size(MAIN) == 1


def test_held_and_released_inputs_are_told_apart_by_their_newest_state(
    repository: MessageQueueRepository,
) -> None:
    item = put(repository, "a")
    assert repository.replace(dataclasses.replace(item, metadata={HELD_KEY: "1"}))
    assert repository.drain(QueueFilter(MAIN)) == []
    assert repository.replace(dataclasses.replace(item, metadata={"kind": "command"}))
    assert repository.drain(QueueFilter(MAIN, prompts_only=True)) == []
    assert repository.drain(QueueFilter(MAIN)) == [item]


def test_many_moves_to_one_place_keep_the_order(repository: MessageQueueRepository) -> None:
    items = [put(repository, str(number)) for number in range(4)]
    expected = [item.uuid for item in items]
    for turn in range(120):
        mover = expected[1] if turn % 2 else expected[2]
        anchor = expected[2] if turn % 2 else expected[1]
        if turn % 2:
            mover, anchor = anchor, mover
        assert repository.move(mover, anchor)
        expected.remove(mover)
        expected.insert(expected.index(anchor), mover)
    listed = repository.list_by_max_priority(LATER, ALL_MAIN)
    assert [item.uuid for item in listed] == expected


def test_a_predicate_that_raises_takes_nothing(repository: MessageQueueRepository) -> None:
    put(repository, "1")
    put(repository, "2")

    def fail_on_two(item: QueuedInput) -> bool:
        if item.input_text == "2":
            raise RuntimeError("bug in the predicate")
        return True

    with pytest.raises(RuntimeError, match="bug"):
        repository.drain(fail_on_two)
    assert repository.size() == 2


def test_a_replaced_input_keeps_its_place(repository: MessageQueueRepository) -> None:
    first = put(repository, "a")
    put(repository, "b")
    assert repository.replace(dataclasses.replace(first, input_text="A"))
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["A", "b"]


def test_a_replaced_input_joins_the_end_of_another_tier(
    repository: MessageQueueRepository,
) -> None:
    put(repository, "n", NOW)
    first = put(repository, "a")
    put(repository, "b")
    assert repository.replace(dataclasses.replace(first, priority=NOW))
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["n", "a", "b"]


def test_replacing_what_is_gone_changes_nothing(repository: MessageQueueRepository) -> None:
    assert not repository.replace(QueuedInput("gone", MAIN))
    assert repository.size() == 0


def test_many_are_replaced_at_once_and_what_is_gone_is_passed_over(
    repository: MessageQueueRepository,
) -> None:
    a, b, c = (put(repository, text) for text in "abc")
    sub = put(repository, "sub", context_id=SUB)
    changed = [
        c.as_held(),
        QueuedInput("gone", MAIN),
        dataclasses.replace(sub, input_text="SUB"),
        dataclasses.replace(a, priority=LATER),
        dataclasses.replace(b, context_id=SUB),
    ]
    assert repository.replace_all(changed) == 3
    listed = repository.list_by_max_priority(LATER, ALL_MAIN)
    assert [(item.input_text, item.held) for item in listed] == [
        ("b", False),
        ("c", True),
        ("a", False),
    ]
    assert texts(repository.drain(QueueFilter(SUB))) == ["SUB"]
    assert repository.replace_all([]) == 0


def test_hundreds_are_replaced_in_place(repository: MessageQueueRepository) -> None:
    items = [put(repository, str(number)) for number in range(250)]
    assert repository.replace_all([item.as_held() for item in items]) == 250
    listed = repository.list_by_max_priority(LATER, ALL_MAIN)
    assert listed == items
    assert all(item.held for item in listed)


def test_move_puts_an_input_before_another_or_last(repository: MessageQueueRepository) -> None:
    a, b, c = (put(repository, text) for text in "abc")
    assert repository.move(c.uuid, a.uuid)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["c", "a", "b"]
    assert repository.move(a.uuid, None)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["c", "b", "a"]
    put(repository, "d")
    assert repository.move(b.uuid, c.uuid)
    assert texts(repository.list_by_max_priority(LATER, ALL_MAIN)) == ["b", "c", "a", "d"]


def test_move_refuses_another_tier_another_context_and_what_is_gone(
    repository: MessageQueueRepository,
) -> None:
    item = put(repository, "a")
    now = put(repository, "now", NOW)
    sub = put(repository, "sub", context_id=SUB)
    for before in (now.uuid, sub.uuid, item.uuid, "gone"):
        assert not repository.move(item.uuid, before)
    assert not repository.move("gone", item.uuid)


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "a\x00b", "\ud800 lone", "</system-reminder>", " padded "]
)
def test_text_comes_back_as_it_was(repository: MessageQueueRepository, text: str) -> None:
    put(repository, text)
    assert texts(repository.drain(ALL_MAIN)) == [text]


def test_get_finds_a_waiting_input_only(repository: MessageQueueRepository) -> None:
    item = put(repository, "a")
    found = repository.get(item.uuid)
    assert found is not None
    assert found.input_text == "a"
    repository.remove(item.uuid)
    assert repository.get(item.uuid) is None


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_inputs_are_stored_and_drained_in_order(
    repository: MessageQueueRepository, count: int
) -> None:
    for number in range(count):
        put(repository, str(number))
    for number in range(100):
        item = repository.dequeue(ALL_MAIN)
        assert item is not None
        assert item.input_text == str(number)
    assert texts(repository.drain(ALL_MAIN)) == [str(number) for number in range(100, count)]
    assert repository.size() == 0


def test_threads_deliver_each_input_exactly_once(repository: MessageQueueRepository) -> None:
    per_producer = 300
    done = threading.Event()

    def produce(name: int) -> None:
        for number in range(per_producer):
            put(repository, f"{name}:{number:04}", QueuedInputPriority(number % 3))

    def consume(batch: bool) -> list[QueuedInput]:
        taken: list[QueuedInput] = []
        while True:
            finished = done.is_set()
            item = None if batch else repository.dequeue(ALL_MAIN)
            got = repository.drain(ALL_MAIN) if batch else [item] if item is not None else []
            taken.extend(got)
            if finished and not got:
                return taken

    with ThreadPoolExecutor(8) as pool:
        consumers = [pool.submit(consume, batch) for batch in (True, False, True, False)]
        for producer in [pool.submit(produce, name) for name in range(4)]:
            producer.result(timeout=60)
        done.set()
        taken = [item for consumer in consumers for item in consumer.result(timeout=60)]
    expected = sorted(f"{name}:{number:04}" for name in range(4) for number in range(per_producer))
    assert sorted(texts(taken)) == expected
    assert repository.size() == 0
