"""Permits: first in, first out, never above the limit, never lost."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from midturn_core.dispatch.slots import SlotHold, Slots


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_oldest_waiter_gets_a_returned_permit() -> None:
    slots, order = Slots(1), list[int]()

    async def take(number: int) -> None:
        await slots.acquire()
        order.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(4)]
    await settle()
    assert (order, slots.waiting) == ([0], 3)
    for count in range(2, 5):
        slots.release()
        await settle()
        assert order == list(range(count))
    await asyncio.gather(*tasks)
    assert slots.in_use == 1


async def test_a_newcomer_does_not_overtake_the_line() -> None:
    slots = Slots(1)
    await slots.acquire()
    waiter = asyncio.create_task(slots.acquire())
    await settle()
    slots.release()
    newcomer = asyncio.create_task(slots.acquire())
    await settle()
    assert waiter.done() and not newcomer.done()
    slots.release()
    await newcomer


async def test_a_cancelled_waiter_takes_no_permit_with_it() -> None:
    slots = Slots(1)
    await slots.acquire()
    first = asyncio.create_task(slots.acquire())
    second = asyncio.create_task(slots.acquire())
    await settle()
    slots.release()
    first.cancel()  # granted in the same moment
    await settle()
    assert first.cancelled() and second.done()
    third = asyncio.create_task(slots.acquire())
    await settle()
    third.cancel()
    await settle()
    slots.release()
    assert (slots.in_use, slots.waiting) == (0, 0)


async def test_a_free_permit_is_not_hidden_by_a_cancelled_waiter() -> None:
    slots = Slots(1)
    await slots.acquire()
    waiter = asyncio.create_task(slots.acquire())
    await settle()
    waiter.cancel()
    slots.release()
    await asyncio.wait_for(slots.acquire(), 10)


async def test_a_bigger_limit_lets_waiters_in_and_a_smaller_one_revokes_nothing() -> None:
    slots = Slots(1)
    tasks = [asyncio.create_task(slots.acquire()) for _ in range(4)]
    await settle()
    slots.resize(3)
    await settle()
    assert slots.in_use == 3
    slots.resize(1)
    slots.release()
    await settle()
    assert (slots.in_use, slots.waiting) == (2, 1)
    slots.release()
    slots.release()
    await asyncio.gather(*tasks)
    assert (slots.in_use, slots.limit) == (1, 1)


async def test_a_hold_gives_back_what_it_got_even_when_cut_between_the_tiers() -> None:
    batch, shared = Slots(2), Slots(1)
    await shared.acquire()
    hold = SlotHold((batch, shared))
    task = asyncio.create_task(hold.acquire())
    await settle()
    assert batch.in_use == 1
    task.cancel()
    await settle()
    hold.release()
    hold.release()
    assert (batch.in_use, shared.in_use) == (0, 1)


@given(seed=st.integers(0, 2**32), limit=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_any_course_of_events_keeps_the_count(seed: int, limit: int) -> None:
    asyncio.run(_random_course(random.Random(seed), limit))


async def _random_course(chance: random.Random, limit: int) -> None:
    slots, inside = Slots(limit), 0

    async def user() -> None:
        nonlocal inside
        hold = SlotHold((slots,))
        try:
            await hold.acquire()
            inside += 1
            assert inside <= slots.in_use <= limit
            try:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                inside -= 1
        finally:
            hold.release()

    tasks = [asyncio.create_task(user()) for _ in range(12)]
    while not all(task.done() for task in tasks):
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (slots.in_use, slots.waiting) == (0, 0)
    assert not any(isinstance(task.exception(), AssertionError) for task in _ended(tasks))


def _ended(tasks: list[asyncio.Task[None]]) -> list[asyncio.Task[None]]:
    return [task for task in tasks if not task.cancelled()]
