"""Random operations on a repository, checked against a plain list."""

from __future__ import annotations

import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.types import (
    HELD_KEY,
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)

CONTEXTS = st.sampled_from([AgentRuntimeId("s", "main"), AgentRuntimeId("s", "sub-1")])
PRIORITIES = st.sampled_from(QueuedInputPriority)
FILTERS = st.builds(
    QueueFilter, CONTEXTS, PRIORITIES, exclude_held=st.booleans(), prompts_only=st.booleans()
)
METADATA = st.sampled_from([{}, {HELD_KEY: "1"}, {"kind": "command"}])


class RepositoryMachine(RuleBasedStateMachine):
    """The model is a list in order of arrival; delivery order is a stable sort by tier."""

    uuids: Bundle[str] = Bundle("uuids")

    def __init__(self) -> None:
        super().__init__()
        self.repository = InMemoryMessageQueueRepository()
        self.model: list[QueuedInput] = []

    def ordered(self) -> list[QueuedInput]:
        return sorted(self.model, key=lambda item: item.priority)

    def find(self, uuid: str) -> QueuedInput | None:
        return next((item for item in self.model if item.uuid == uuid), None)

    @rule(target=uuids, context=CONTEXTS, priority=PRIORITIES, metadata=METADATA)
    def enqueue(
        self, context: AgentRuntimeId, priority: QueuedInputPriority, metadata: dict[str, str]
    ) -> str:
        item = QueuedInput(f"text {len(self.model)}", context, priority, metadata=metadata)
        assert self.repository.enqueue(item)
        self.model.append(item)
        return item.uuid

    @rule(selection=FILTERS)
    def drain(self, selection: QueueFilter) -> None:
        expected = [item for item in self.ordered() if selection(item)]
        assert self.repository.drain(selection) == expected
        self.model = [item for item in self.model if item not in expected]

    @rule(selection=FILTERS, as_callable=st.booleans())
    def dequeue(self, selection: QueueFilter, as_callable: bool) -> None:
        expected = next((item for item in self.ordered() if selection(item)), None)
        predicate: Predicate = selection.__call__ if as_callable else selection
        assert self.repository.peek(predicate) == expected
        assert self.repository.dequeue(predicate) == expected
        if expected is not None:
            self.model.remove(expected)

    @rule(uuid=uuids)
    def remove(self, uuid: str) -> None:
        item = self.find(uuid)
        assert self.repository.remove(uuid) is (item is not None)
        if item is not None:
            self.model.remove(item)

    @rule(uuid=uuids, text=st.sampled_from(["edited", "again"]), priority=PRIORITIES)
    def replace(self, uuid: str, text: str, priority: QueuedInputPriority) -> None:
        item = self.find(uuid)
        if item is None:
            return
        changed = dataclasses.replace(item, input_text=text, priority=priority)
        assert self.repository.replace(changed)
        place = self.model.index(item)
        if changed.priority == item.priority:
            self.model[place] = changed
        else:
            del self.model[place]
            self.model.append(changed)

    @rule(uuid=uuids, before=st.one_of(st.none(), uuids))
    def move(self, uuid: str, before: str | None) -> None:
        item = self.find(uuid)
        tier = [] if item is None else self.tier_of(item)
        others = [other.uuid for other in tier if other.uuid != uuid]
        possible = item is not None and (before is None or before in others)
        assert self.repository.move(uuid, before) is possible
        if item is None or not possible:
            return
        slots = [self.model.index(other) for other in tier]
        tier.remove(item)
        tier.insert(len(others) if before is None else others.index(before), item)
        for slot, other in zip(slots, tier, strict=True):
            self.model[slot] = other

    def tier_of(self, item: QueuedInput) -> list[QueuedInput]:
        place = (item.context_id, item.priority)
        return [other for other in self.model if (other.context_id, other.priority) == place]

    @invariant()
    def agrees_with_the_model(self) -> None:
        listed = self.repository.list_by_max_priority(QueuedInputPriority.LATER, lambda _: True)
        assert [(item.uuid, item.input_text) for item in listed] == [
            (item.uuid, item.input_text) for item in self.ordered()
        ]
        assert self.repository.size() == len(self.model)


TestRepositoryAgreesWithAPlainList = RepositoryMachine.TestCase
TestRepositoryAgreesWithAPlainList.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
