"""Receipts: every input that waited ends in exactly one state, and the first end counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from midturn_core.dispatch.types import GateVerdict
from midturn_core.events import (
    BatchStarted,
    DeliveryPoint,
    InputsDelivered,
    StepStarted,
    ToolUseStarted,
    TurnStarted,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import ToolUse
from midturn_core.queue.events import QueueChangeReason
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.receipts import KEPT_RECEIPTS, QueueReceipts, Receipt, ReceiptState
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
NOW, NEXT, LATER = QueuedInputPriority
STEP = QueueFilter(MAIN, NEXT, prompts_only=True)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Bench:
    def __init__(self) -> None:
        self.manager = MessageQueueManager(InMemoryMessageQueueRepository())
        self.receipts = QueueReceipts(MAIN, lambda: START + timedelta(seconds=9))
        self.manager.add_listener(self.receipts)

    def put(self, text: str, priority: QueuedInputPriority = NEXT, kind: str = "prompt") -> str:
        item = QueuedInput(text, MAIN, priority, enqueued_at=START, metadata={"kind": kind})
        self.manager.enqueue(item)
        return item.uuid

    def deliver(self, point: DeliveryPoint, step: int = 1) -> None:
        items = self.manager.drain_at_step(STEP)
        self.receipts.observe(InputsDelivered(tuple(items), point, step))

    def run_tools(self, *names: str) -> None:
        self.receipts.observe(StepStarted(1))
        self.receipts.observe(BatchStarted("b", 1, len(names), GateVerdict(True)))
        for index, name in enumerate(names):
            use = ToolUse(f"t{index}", name, {})
            self.receipts.observe(ToolUseStarted("b", index, len(names), use, ""))

    @property
    def only(self) -> Receipt:
        (receipt,) = self.receipts.all()
        return receipt


def test_a_delivery_names_the_step_and_the_tools_before_it() -> None:
    bench = Bench()
    bench.put("steer")
    assert bench.only.state is ReceiptState.WAITING
    bench.run_tools("Read", "Grep", "Read")
    bench.deliver(DeliveryPoint.STEP_BOUNDARY, 3)
    receipt = bench.only
    assert receipt.state is ReceiptState.DELIVERED
    assert (receipt.step, receipt.tools, receipt.cut) == (3, ("Read", "Grep"), False)
    assert receipt.waited_seconds == 9


def test_the_tools_of_an_earlier_step_are_not_named() -> None:
    bench = Bench()
    bench.run_tools("Read")
    bench.receipts.observe(StepStarted(2))
    bench.put("urgent", NOW)
    bench.deliver(DeliveryPoint.STREAM_CUT, 2)
    assert (bench.only.state, bench.only.cut, bench.only.tools) == (
        ReceiptState.DELIVERED,
        True,
        (),
    )


def test_an_input_that_kept_the_turn_going_was_absorbed() -> None:
    bench = Bench()
    bench.run_tools("Read")
    bench.put("and this")
    bench.deliver(DeliveryPoint.TURN_END, 2)
    assert (bench.only.state, bench.only.step) == (ReceiptState.ABSORBED, 2)


def test_a_turn_of_its_own_is_told_by_the_turns_start_and_by_a_commands_drain() -> None:
    bench = Bench()
    bench.put("afterwards", LATER)
    items = bench.manager.take_leftovers(MAIN, include_later=True)
    waiting = bench.only
    bench.receipts.observe(TurnStarted(MAIN, "turn", tuple(items)))
    states = (waiting.state, bench.only.state)
    assert states == (ReceiptState.WAITING, ReceiptState.OWN_TURN)
    bench.put("/compact", NEXT, "command")
    bench.manager.take_leftovers(MAIN, include_later=True)
    assert bench.receipts.all()[1].state is ReceiptState.OWN_TURN


def test_what_was_removed_or_taken_elsewhere_was_cancelled() -> None:
    bench = Bench()
    bench.manager.remove(bench.put("wrong"))
    taken = bench.put("taken")
    bench.manager.drain_at_step(STEP)
    bench.receipts.taken_elsewhere([taken])
    assert [r.state for r in bench.receipts.all()] == [ReceiptState.CANCELLED] * 2


def test_an_expired_input_may_still_be_restored_and_no_other() -> None:
    bench = Bench()
    old, wrong = bench.put("old"), bench.put("wrong")
    bench.manager.remove(old, QueueChangeReason.EXPIRED)
    bench.manager.remove(wrong)
    for uuid in (old, wrong, "unknown"):
        bench.receipts.restored(uuid)
    states = [receipt.state for receipt in bench.receipts.all()]
    assert states == [ReceiptState.RESTORED, ReceiptState.CANCELLED]


def test_a_receipt_follows_text_and_tier() -> None:
    bench = Bench()
    uuid = bench.put("tpyo")
    bench.manager.edit(uuid, "typo")
    bench.manager.reprioritise(uuid, LATER)
    assert (bench.only.text, bench.only.priority) == ("typo", LATER)


def test_an_input_of_another_agent_has_no_receipt_here() -> None:
    bench = Bench()
    bench.manager.enqueue(QueuedInput("x", AgentRuntimeId("s1", "sub-1")))
    assert not bench.receipts.all()


def test_the_oldest_that_have_ended_give_way_and_what_waits_stays() -> None:
    bench = Bench()
    waiting = bench.put("still here")
    for number in range(KEPT_RECEIPTS):
        bench.manager.remove(bench.put(str(number)))
    receipts = bench.receipts.all()
    assert len(receipts) == KEPT_RECEIPTS
    assert receipts[0].uuid == waiting
    assert receipts[1].text == "1"


ON_ONE: dict[str, Callable[[Bench, str], object]] = {
    "remove": lambda bench, uuid: bench.manager.remove(uuid),
    "expire": lambda bench, uuid: bench.manager.remove(uuid, QueueChangeReason.EXPIRED),
    "restore": lambda bench, uuid: bench.receipts.restored(uuid),
    "edit": lambda bench, uuid: bench.manager.edit(uuid, "other"),
    "hold": lambda bench, uuid: bench.manager.hold(uuid),
    "begin": lambda bench, uuid: bench.manager.begin_edit(uuid),
    "end": lambda bench, uuid: bench.manager.end_edit(uuid),
    "tier": lambda bench, uuid: bench.manager.reprioritise(uuid, LATER),
}
POINTS = st.sampled_from([DeliveryPoint.STEP_BOUNDARY, DeliveryPoint.TURN_END])
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(list(QueuedInputPriority)), st.booleans()),
    st.tuples(
        st.sampled_from(list(ON_ONE)),
        st.integers(0, 7),
        st.just(None),
    ),
    st.tuples(st.just("deliver"), POINTS, st.just(None)),
    st.tuples(st.sampled_from(["turn", "release", "clear"]), st.just(None), st.just(None)),
)


@given(st.lists(OPERATIONS, max_size=40))
def test_any_course_leaves_each_input_waiting_or_in_exactly_one_state(
    operations: list[tuple[str, object, object]],
) -> None:
    bench = Bench()
    uuids: list[str] = []
    ends: dict[str, ReceiptState] = {}
    for name, argument, flag in operations:
        _apply(bench, uuids, name, argument, flag)
        states = {receipt.uuid: receipt.state for receipt in bench.receipts.all()}
        assert list(states) == uuids
        waiting = {item.uuid for item in bench.manager.snapshot(MAIN)}
        assert waiting == {u for u, state in states.items() if state is ReceiptState.WAITING}
        for uuid, before in ends.items():
            allowed = {before}
            if before is ReceiptState.EXPIRED:
                allowed.add(ReceiptState.RESTORED)
            assert states[uuid] in allowed
        ends = {u: state for u, state in states.items() if state is not ReceiptState.WAITING}


def _apply(bench: Bench, uuids: list[str], name: str, argument: object, flag: object) -> None:
    if isinstance(argument, QueuedInputPriority):
        uuids.append(bench.put("text", argument, "command" if flag else "prompt"))
    elif isinstance(argument, DeliveryPoint):
        bench.deliver(argument)
    elif isinstance(argument, int):
        ON_ONE[name](bench, uuids[argument % len(uuids)] if uuids else "")
    elif name == "turn":
        items = bench.manager.take_leftovers(MAIN, include_later=True)
        bench.receipts.observe(TurnStarted(MAIN, "turn", tuple(items)))
    elif name == "release":
        bench.manager.release(MAIN)
    else:
        bench.manager.clear(MAIN)
