"""Random operations by several owners on each kind of store, checked against a plain list."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import (
    HELD_KEY,
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)
from tests.support.queue_stores import QueueStore

CONTEXTS = (AgentRuntimeId("s", "main"), AgentRuntimeId("s", "sub-1"))
PRIORITIES = st.sampled_from(QueuedInputPriority)
SOURCES = st.sampled_from([None, "sub-1"])
METADATA = st.sampled_from([{}, {HELD_KEY: "1"}, {"kind": "command"}, {"origin": "repl"}])
FILTERS = st.builds(
    QueueFilter,
    st.sampled_from(CONTEXTS),
    PRIORITIES,
    SOURCES,
    st.sampled_from([{}, {}, {"origin": "repl"}]),
    exclude_held=st.booleans(),
    prompts_only=st.booleans(),
)
OWNERS = st.integers(0, 2)


class Entry(NamedTuple):
    """An input in the model, and who has claimed it."""

    item: QueuedInput
    owner: int | None = None


class RepositoryMachine(RuleBasedStateMachine):
    """The model is a list in order of arrival; delivery order is a stable sort by tier.

    Owners are as many repositories on one store. Memory has one, whichever number is drawn.
    """

    uuids: Bundle[str] = Bundle("uuids")

    def __init__(self, store: QueueStore) -> None:
        super().__init__()
        self.store = store
        self.repositories = [store.open() for _ in range(3)]
        self.model: list[Entry] = []

    def teardown(self) -> None:
        self.store.close()

    def use(self, owner: int) -> tuple[MessageQueueRepository, int]:
        return self.repositories[owner], owner if self.store.shared else 0

    def selected(self, predicate: Predicate) -> list[QueuedInput]:
        waiting = [entry.item for entry in self.model if entry.owner is None]
        return [item for item in sorted(waiting, key=_priority) if predicate(item)]

    def find(self, uuid: str) -> Entry | None:
        return next((entry for entry in self.model if entry.item.uuid == uuid), None)

    def waiting(self, uuid: str) -> QueuedInput | None:
        entry = self.find(uuid)
        return None if entry is None or entry.owner is not None else entry.item

    def forget(self, gone: list[QueuedInput]) -> None:
        self.model = [entry for entry in self.model if entry.item not in gone]

    def set_owner(self, items: list[QueuedInput], owner: int | None) -> None:
        self.model = [
            Entry(entry.item, owner) if entry.item in items else entry for entry in self.model
        ]

    @rule(
        target=uuids,
        owner=OWNERS,
        context=st.sampled_from(CONTEXTS),
        priority=PRIORITIES,
        source=SOURCES,
        metadata=METADATA,
    )
    def enqueue(
        self,
        owner: int,
        context: AgentRuntimeId,
        priority: QueuedInputPriority,
        source: str | None,
        metadata: dict[str, str],
    ) -> str:
        text = f"text {len(self.model)}"
        item = QueuedInput(text, context, priority, source_agent_id=source, metadata=metadata)
        assert self.repositories[owner].enqueue(item)
        self.model.append(Entry(item))
        return item.uuid

    @rule(owner=OWNERS, uuid=uuids)
    def enqueue_again(self, owner: int, uuid: str) -> None:
        entry = self.find(uuid)
        if entry is not None:
            assert not self.repositories[owner].enqueue(entry.item)

    @rule(owner=OWNERS, selection=FILTERS)
    def drain(self, owner: int, selection: QueueFilter) -> None:
        expected = self.selected(selection)
        assert self.repositories[owner].drain(selection) == expected
        self.forget(expected)

    @rule(owner=OWNERS, selection=FILTERS, as_callable=st.booleans())
    def dequeue(self, owner: int, selection: QueueFilter, as_callable: bool) -> None:
        expected = self.selected(selection)[:1]
        predicate: Predicate = selection.__call__ if as_callable else selection
        first = expected[0] if expected else None
        assert self.repositories[owner].peek(predicate) == first
        assert self.repositories[owner].dequeue(predicate) == first
        self.forget(expected)

    @rule(owner=OWNERS, uuid=uuids)
    def remove(self, owner: int, uuid: str) -> None:
        item = self.waiting(uuid)
        assert self.repositories[owner].remove(uuid) is (item is not None)
        if item is not None:
            self.forget([item])

    @rule(
        owner=OWNERS,
        uuid=uuids,
        text=st.sampled_from(["edited", "again"]),
        priority=PRIORITIES,
        metadata=METADATA,
    )
    def replace(
        self,
        owner: int,
        uuid: str,
        text: str,
        priority: QueuedInputPriority,
        metadata: dict[str, str],
    ) -> None:
        entry = self.find(uuid)
        if entry is None:
            return
        changed = dataclasses.replace(
            entry.item, input_text=text, priority=priority, metadata=metadata
        )
        replaced = self.repositories[owner].replace(changed)
        assert replaced is (entry.owner is None)
        if not replaced:
            return
        place = self.model.index(entry)
        if changed.priority == entry.item.priority:
            self.model[place] = Entry(changed)
        else:
            del self.model[place]
            self.model.append(Entry(changed))

    @rule(owner=OWNERS, uuid=uuids, before=st.one_of(st.none(), uuids))
    def move(self, owner: int, uuid: str, before: str | None) -> None:
        item = self.waiting(uuid)
        target = None if before is None else self.waiting(before)
        possible = item is not None and (
            before is None
            or (target is not None and target != item and _tier(target) == _tier(item))
        )
        assert self.repositories[owner].move(uuid, before) is possible
        if item is None or not possible:
            return
        self.model.remove(Entry(item))
        place = len(self.model) if target is None else self.model.index(Entry(target))
        self.model.insert(place, Entry(item))

    @rule(owner=OWNERS, selection=FILTERS, as_callable=st.booleans())
    def claim(self, owner: int, selection: QueueFilter, as_callable: bool) -> None:
        repository, number = self.use(owner)
        expected = self.selected(selection)
        assert repository.claim(selection.__call__ if as_callable else selection) == expected
        self.set_owner(expected, number)

    @rule(owner=OWNERS, uuid=uuids)
    def claim_by_uuid(self, owner: int, uuid: str) -> None:
        repository, number = self.use(owner)
        item = self.waiting(uuid)
        context = CONTEXTS[0] if item is None else item.context_id
        named = QueueFilter(context, exclude_held=False, uuids=frozenset({uuid}))
        expected = [] if item is None else [item]
        assert repository.claim(named) == expected
        self.set_owner(expected, number)

    @rule(owner=OWNERS, names=st.lists(uuids, max_size=3))
    def confirm(self, owner: int, names: list[str]) -> None:
        repository, number = self.use(owner)
        repository.confirm(names)
        found = [entry for name in names if (entry := self.find(name)) is not None]
        self.forget([entry.item for entry in found if entry.owner in (None, number)])

    @rule(owner=OWNERS, names=st.lists(uuids, max_size=3))
    def unclaim(self, owner: int, names: list[str]) -> None:
        repository, number = self.use(owner)
        repository.unclaim(names)
        found = [entry for name in names if (entry := self.find(name)) is not None]
        self.set_owner([entry.item for entry in found if entry.owner == number], None)

    @precondition(lambda self: self.store.shared)
    @rule(owner=OWNERS)
    def crash_and_recover(self, owner: int) -> None:
        self.store.crash(self.repositories[owner])
        self.repositories[owner] = self.store.open()
        back: list[QueuedInput] = []
        for context in CONTEXTS:
            claimed = [
                entry.item
                for entry in self.model
                if entry.owner == owner and entry.item.context_id == context
            ]
            expected = sorted(claimed, key=_priority)
            assert self.repositories[owner].recover(context) == expected
            back += expected
        self.set_owner(back, None)

    @invariant()
    def agrees_with_the_model(self) -> None:
        later = QueuedInputPriority.LATER
        everything: list[QueuedInput] = []
        for index, context in enumerate(CONTEXTS):
            repository = self.repositories[index]
            selection = QueueFilter(context, exclude_held=False)
            expected = self.selected(selection)
            assert _seen(repository.list_by_max_priority(later, selection)) == _seen(expected)
            assert repository.size(context) == len(expected)
            everything += expected
        listed = self.repositories[2].list_by_max_priority(later, lambda _: True)
        assert set(listed) == set(everything)
        assert [item.priority for item in listed] == sorted(item.priority for item in listed)
        assert self.repositories[2].size() == len(everything)


def _priority(item: QueuedInput) -> QueuedInputPriority:
    return item.priority


def _tier(item: QueuedInput) -> tuple[AgentRuntimeId, QueuedInputPriority]:
    return item.context_id, item.priority


def _seen(items: list[QueuedInput]) -> list[tuple[str, str, dict[str, str]]]:
    return [(item.uuid, item.input_text, dict(item.metadata)) for item in items]


def run_machine(make_store: Callable[[], QueueStore], examples: int, steps: int) -> None:
    class Machine(RepositoryMachine):
        def __init__(self) -> None:
            super().__init__(make_store())

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=steps)
    )


def test_a_repository_agrees_with_a_plain_list(make_store: Callable[[], QueueStore]) -> None:
    run_machine(make_store, 20, 30)


@pytest.mark.slow
def test_a_repository_agrees_with_a_plain_list_for_long(
    make_store: Callable[[], QueueStore],
) -> None:
    run_machine(make_store, 200, 50)
