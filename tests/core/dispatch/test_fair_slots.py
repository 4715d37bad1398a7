"""Permits that go round the contexts: nobody starves, nothing is lost, no limit is passed."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from midturn_core.dispatch.fair_slots import FairSlots
from midturn_core.dispatch.slots import SlotHold
from midturn_core.ids import AgentRuntimeId

MAIN, SUB, OTHER = (
    AgentRuntimeId("s"),
    AgentRuntimeId("s", "sub-1"),
    AgentRuntimeId("t"),
)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """Waiters of several contexts, and who got a permit in which order."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.got: list[AgentRuntimeId] = []

    async def take(self, *contexts: AgentRuntimeId) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self._take(context)) for context in contexts]
        await settle()
        return tasks

    async def give(self, *contexts: AgentRuntimeId) -> None:
        for context in contexts:
            self.slots.release(context)
            await settle()

    async def _take(self, context: AgentRuntimeId) -> None:
        await self.slots.acquire(context)
        self.got.append(context)


async def test_permits_go_round_the_contexts_that_wait() -> None:
    line = Line(FairSlots(1))
    await line.take(MAIN, MAIN, MAIN, SUB, SUB, OTHER)
    for _ in range(5):
        await line.give(line.got[-1])
    assert line.got == [MAIN, MAIN, SUB, OTHER, MAIN, SUB]


async def test_within_a_context_the_oldest_waiter_is_next() -> None:
    slots, order = FairSlots(1), list[int]()

    async def take(number: int) -> None:
        await slots.acquire(MAIN)
        order.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(4)]
    await settle()
    for _ in range(3):
        slots.release(MAIN)
        await settle()
    assert order == [0, 1, 2, 3]
    await asyncio.gather(*tasks)


async def test_one_that_comes_back_at_once_stands_behind_the_others() -> None:
    line = Line(FairSlots(1))
    await line.take(MAIN, OTHER)
    line.slots.release(MAIN)
    await line.take(MAIN)
    assert line.got == [MAIN, OTHER]
    await line.give(OTHER)
    assert line.got == [MAIN, OTHER, MAIN]


async def test_a_context_holds_no_more_than_its_share_and_hinders_nobody() -> None:
    line = Line(FairSlots(3, per_context_max=2))
    await line.take(MAIN, MAIN, MAIN, OTHER)
    assert line.got == [MAIN, MAIN, OTHER]
    assert line.slots.in_use_by_context == {MAIN: 2, OTHER: 1}
    await line.give(OTHER)
    assert (line.slots.in_use, line.slots.waiting) == (2, 1)
    await line.give(MAIN)
    assert line.slots.in_use_by_context == {MAIN: 2}


async def test_a_bigger_share_lets_waiters_in_and_a_smaller_one_revokes_nothing() -> None:
    line = Line(FairSlots(3, per_context_max=1))
    await line.take(MAIN, MAIN, MAIN)
    assert line.slots.in_use == 1
    line.slots.resize(3)
    await settle()
    assert line.slots.in_use == 3
    line.slots.resize(2, 1)
    await line.take(MAIN)
    await line.give(MAIN, MAIN)
    assert (line.slots.in_use, line.slots.waiting, line.slots.limit) == (1, 1, 2)
    await line.give(MAIN)
    assert (line.slots.in_use, line.slots.waiting) == (1, 0)


async def test_a_cancelled_waiter_takes_no_permit_with_it() -> None:
    line = Line(FairSlots(1))
    _, first, second = await line.take(MAIN, SUB, OTHER)
    line.slots.release(MAIN)
    first.cancel()  # granted in the same moment
    await settle()
    assert first.cancelled() and second.done()
    (third,) = await line.take(MAIN)
    third.cancel()
    line.slots.release(OTHER)  # before the cancelled waiter has left the line
    await settle()
    assert (line.slots.in_use, line.slots.waiting) == (0, 0)
    assert line.slots.in_use_by_context == {}


async def test_every_change_of_the_number_in_use_is_told() -> None:
    told = list[int]()
    slots = FairSlots(2, on_change=lambda: told.append(slots.in_use))
    hold = SlotHold((slots.of(MAIN), slots.of(OTHER)))
    await hold.acquire()
    hold.release()
    assert told == [1, 2, 1, 0]


CONTEXTS = st.sampled_from([MAIN, SUB, OTHER])


class FairSlotsMachine(RuleBasedStateMachine):
    """Against a plain model: lists of waiters, and the order in which contexts have their turns."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.slots = FairSlots(2)
        self.limit, self.share = 2, 10
        self.number = 0
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.waiting: list[tuple[AgentRuntimeId, int]] = []
        self.turns: list[AgentRuntimeId] = []
        self.holders: list[tuple[AgentRuntimeId, int]] = []

    @rule(context=CONTEXTS)
    def acquire(self, context: AgentRuntimeId) -> None:
        self.number += 1
        self._start(context, self.number)
        self._join_line(context, self.number)
        self._settle()

    @rule(context=CONTEXTS, other=CONTEXTS, data=st.data())
    @precondition(lambda self: self.holders)
    def release(self, context: AgentRuntimeId, other: AgentRuntimeId, data: st.DataObject) -> None:
        self.slots.release(self._let_go(data))
        self._settle()

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def cancel(self, data: st.DataObject) -> None:
        self._leave_line(data)
        self._settle()

    @rule(data=st.data(), cancel_first=st.booleans())
    @precondition(lambda self: self.waiting and self.holders)
    def cancel_and_release_in_the_same_moment(
        self, data: st.DataObject, cancel_first: bool
    ) -> None:
        if cancel_first:
            self._leave_line(data)
            self.slots.release(self._let_go(data))
        else:
            self.slots.release(self._let_go(data))
            granted = self._grant()
            if granted:
                self.tasks[granted[0][1]].cancel()
                self.holders.remove(granted[0])
        self._settle()

    @rule(limit=st.integers(1, 5), share=st.integers(1, 5))
    def resize(self, limit: int, share: int) -> None:
        self.limit, self.share = limit, share
        self.slots.resize(limit, share)
        self._settle()

    @invariant()
    def the_model_and_the_slots_agree(self) -> None:
        done = {number for number, task in self.tasks.items() if _succeeded(task)}
        assert {number for _, number in self.holders} <= done
        assert not {number for _, number in self.waiting} & done
        assert self.slots.in_use_by_context == Counter(context for context, _ in self.holders)
        assert (self.slots.in_use, self.slots.waiting) == (len(self.holders), len(self.waiting))

    def teardown(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        self._turn_the_loop()
        self.runner.close()

    def _start(self, context: AgentRuntimeId, number: int) -> None:
        async def start() -> asyncio.Task[None]:
            return asyncio.create_task(self.slots.acquire(context))

        self.tasks[number] = self.runner.run(start())

    def _join_line(self, context: AgentRuntimeId, number: int) -> None:
        if context not in self.turns:
            self.turns.append(context)
        self.waiting.append((context, number))

    def _leave_line(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.waiting))
        self.tasks[gone[1]].cancel()
        self.waiting.remove(gone)
        self._forget_turn(gone[0])

    def _let_go(self, data: st.DataObject) -> AgentRuntimeId:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders.remove(holder)
        return holder[0]

    def _settle(self) -> None:
        self._grant()
        self._turn_the_loop()

    def _turn_the_loop(self) -> None:
        self.runner.run(settle())

    def _grant(self) -> list[tuple[AgentRuntimeId, int]]:
        granted = list[tuple[AgentRuntimeId, int]]()
        while len(self.holders) < self.limit and (context := self._whose_turn()) is not None:
            waiter = next(waiter for waiter in self.waiting if waiter[0] == context)
            self.waiting.remove(waiter)
            self.holders.append(waiter)
            granted.append(waiter)
            self.turns.remove(context)
            self.turns.append(context)
            self._forget_turn(context)
        return granted

    def _whose_turn(self) -> AgentRuntimeId | None:
        held = Counter(context for context, _ in self.holders)
        return next((context for context in self.turns if held[context] < self.share), None)

    def _forget_turn(self, context: AgentRuntimeId) -> None:
        if not any(waiting == context for waiting, _ in self.waiting):
            self.turns.remove(context)


def _succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled()


FairSlotsMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
TestFairSlotsMachine = FairSlotsMachine.TestCase
