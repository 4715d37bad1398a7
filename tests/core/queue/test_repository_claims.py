"""Claims: nothing that is being delivered is lost by a crash, nothing comes twice (D12)."""

from __future__ import annotations

import dataclasses
import threading

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeType, QueueEvent
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from tests.support.queue_stores import QueueStore

DEADLINE = 30.0
MAIN = AgentRuntimeId("s1", "main")
OTHER = AgentRuntimeId("s2", "main")
ALL = QueueFilter(MAIN, exclude_held=False)
LATER = QueuedInputPriority.LATER


def put(repository: MessageQueueRepository, *names: str) -> list[QueuedInput]:
    items = [QueuedInput(name, MAIN) for name in names]
    for item in items:
        assert repository.enqueue(item)
    return items


def texts(items: list[QueuedInput]) -> list[str]:
    return [item.input_text for item in items]


def waiting(repository: MessageQueueRepository) -> list[str]:
    return texts(repository.list_by_max_priority(LATER, ALL))


def uuids(items: list[QueuedInput]) -> list[str]:
    return [item.uuid for item in items]


class ArrivalLatch:
    """A listener that can be waited for; its first call fails, which must not end the others."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._changed = threading.Condition()

    def on_event(self, event: QueueEvent) -> None:
        assert event.change_type is QueueChangeType.ENQUEUED
        with self._changed:
            self.texts.append(event.input.input_text)
            self._changed.notify_all()
        if len(self.texts) == 1:
            raise RuntimeError("a bug in a listener")

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.texts) >= count, DEADLINE)


def test_a_claimed_input_is_invisible_and_cannot_be_changed(
    repository: MessageQueueRepository,
) -> None:
    a, b = put(repository, "a", "b")
    assert texts(repository.claim(QueueFilter(MAIN, uuids=frozenset({a.uuid})))) == ["a"]
    assert waiting(repository) == ["b"]
    assert (repository.size(), repository.size(MAIN)) == (1, 1)
    assert repository.peek(ALL) == b
    assert repository.get(a.uuid) is None
    assert not repository.enqueue(a)
    assert not repository.remove(a.uuid)
    assert not repository.replace(dataclasses.replace(a, input_text="A"))
    assert not repository.move(a.uuid, None)
    assert not repository.move(b.uuid, a.uuid)
    assert repository.claim(lambda item: item.input_text == "a") == []
    assert texts(repository.drain(ALL)) == ["b"]


def test_a_confirmed_input_is_gone_for_good(store: QueueStore) -> None:
    repository = store.open()
    put(repository, "a", "b")
    claimed = repository.claim(ALL)
    repository.confirm(uuids(claimed))
    repository.confirm(uuids(claimed))
    repository.unclaim(uuids(claimed))
    assert waiting(repository) == []
    assert repository.enqueue(claimed[0])


def test_an_unclaimed_input_waits_again_where_it_was(repository: MessageQueueRepository) -> None:
    a, b, c = put(repository, "a", "b", "c")
    repository.claim(lambda item: item in (a, b))
    put(repository, "d")
    repository.unclaim([b.uuid, a.uuid, c.uuid, "gone"])
    repository.unclaim([a.uuid])
    assert waiting(repository) == ["a", "b", "c", "d"]
    assert repository.size(MAIN) == 4


def test_a_claim_takes_only_what_the_filter_selects(repository: MessageQueueRepository) -> None:
    put(repository, "a")
    repository.enqueue(QueuedInput("later", MAIN, LATER))
    repository.enqueue(QueuedInput("other", OTHER))
    assert texts(repository.claim(QueueFilter(MAIN, QueuedInputPriority.NEXT))) == ["a"]
    assert repository.size() == 2


def test_what_waits_again_although_it_was_logged_can_be_confirmed(
    repository: MessageQueueRepository,
) -> None:
    a, _ = put(repository, "a", "b")
    repository.confirm([a.uuid, "gone"])
    assert waiting(repository) == ["b"]


def test_a_live_owners_claims_are_its_own(shared_store: QueueStore) -> None:
    mine, other = shared_store.open(), shared_store.open()
    put(mine, "a")
    claimed = mine.claim(ALL)
    assert other.recover(MAIN) == []
    other.unclaim(uuids(claimed))
    other.confirm(uuids(claimed))
    assert (mine.size(), other.size()) == (0, 0)
    mine.unclaim(uuids(claimed))
    assert waiting(other) == ["a"]


def test_a_dead_owners_claims_come_back_where_they_were(shared_store: QueueStore) -> None:
    mine, other = shared_store.open(), shared_store.open()
    a, b, c = put(mine, "a", "b", "c")
    mine.claim(lambda item: item in (a, c))
    other.claim(lambda item: item == b)
    shared_store.crash(mine)
    third = shared_store.open()
    assert third.size() == 0
    assert third.recover(OTHER) == []
    assert third.recover(MAIN) == [a, c]
    assert third.recover(MAIN) == []
    assert waiting(third) == ["a", "c"]
    other.unclaim([b.uuid])
    assert waiting(third) == ["a", "b", "c"]


def test_closing_gives_back_what_was_not_confirmed(shared_store: QueueStore) -> None:
    mine, other = shared_store.open(), shared_store.open()
    put(mine, "a", "b")
    mine.confirm(uuids(mine.claim(lambda item: item.input_text == "a")))
    mine.claim(ALL)
    assert other.size() == 0
    mine.close()
    assert waiting(other) == ["b"]


def test_an_owner_hears_what_others_enqueue_and_not_its_own(shared_store: QueueStore) -> None:
    mine, other = shared_store.open(), shared_store.open()
    arrivals = ArrivalLatch()
    put(other, "before")
    unsubscribe = mine.subscribe(arrivals)
    put(mine, "my own")
    put(other, "from outside", "the last")
    arrivals.wait_for(2)
    unsubscribe()
    put(other, "unheard")
    assert arrivals.texts == ["from outside", "the last"]
