"""Several conversations and subagents on one dispatcher: capped together, and nobody starves."""

from __future__ import annotations

import asyncio
import threading

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, ToolUse
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import DEADLINE, QUICK, Bench, Latch, outcomes, safe, shell

ONE, OTHER = AgentRuntimeId("one"), AgentRuntimeId("other")
SUB = AgentRuntimeId("one", "sub-1")


def batch(bench: Bench, context: AgentRuntimeId, count: int, prefix: str = "") -> ToolBatch:
    prefix = prefix or context.session
    uses = tuple(ToolUse(f"{prefix}-{n}", "Hold", {"n": n}) for n in range(count))
    return ToolBatch(uses, bench.registry, context)


def start(bench: Bench, of: ToolBatch) -> asyncio.Task[BatchOutcome]:
    return asyncio.create_task(bench.run_batch(of))


async def until_waiting(bench: Bench, count: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while bench.dispatcher.waiting_for_slots < count:  # noqa: ASYNC110 nothing tells of it
            await asyncio.sleep(0)


class Doors:
    """A tool body that lets single calls out, in the order the test wants."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self._doors: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Condition()

    async def __call__(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        self.entered.append(context.tool_use_id)
        async with self._changed:
            self._changed.notify_all()
        await self._door(context.tool_use_id).wait()
        return ToolResult("out")

    def open(self, *tool_use_ids: str) -> None:
        for tool_use_id in tool_use_ids:
            self._door(tool_use_id).set()

    async def until_entered(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.entered) >= count)

    def _door(self, tool_use_id: str) -> asyncio.Event:
        return self._doors.setdefault(tool_use_id, asyncio.Event())


async def test_two_conversations_share_the_cap_and_use_it_up() -> None:
    latch = Latch()
    bench = Bench(safe("Hold", latch), config=ToolConcurrencyConfig.on(2))
    both = [start(bench, batch(bench, context, 3)) for context in (ONE, OTHER)]
    await latch.until_inside(2)
    assert bench.dispatcher.slots_in_use == 2
    latch.open()
    for outcome in await asyncio.gather(*both):
        assert outcomes(outcome) == ["succeeded"] * 3
    assert (latch.peak, len(latch.entered)) == (2, 6)
    assert bench.dispatcher.slots_in_use == 0


async def test_with_a_share_per_batch_another_conversation_starts_at_once() -> None:
    doors = Doors()
    bench = Bench(safe("Hold", doors), config=ToolConcurrencyConfig.on(2, 1))
    first = start(bench, batch(bench, ONE, 3))
    await doors.until_entered(1)
    second = start(bench, batch(bench, OTHER, 3))
    await doors.until_entered(2)
    assert doors.entered == ["one-0", "other-0"]
    assert bench.ready() == []
    assert bench.dispatcher.in_use_by_context == {ONE: 1, OTHER: 1}
    doors.open(*(f"{name}-{n}" for name in ("one", "other") for n in range(3)))
    await asyncio.gather(first, second)


async def test_one_that_comes_late_waits_for_one_call_of_each_before_it() -> None:
    doors = Doors()
    bench = Bench(safe("Hold", doors), config=ToolConcurrencyConfig.on(1))
    busy = [start(bench, batch(bench, ONE, 2, f"{turn}")) for turn in "abc"]
    await doors.until_entered(1)
    await until_waiting(bench, 2)
    late = start(bench, batch(bench, OTHER, 2, "late"))
    await until_waiting(bench, 3)
    order = ["a-0", "b-0", "late-0", "c-0", "a-1", "late-1", "b-1", "c-1"]
    for count, tool_use_id in enumerate(order, 1):
        await doors.until_entered(count)
        doors.open(tool_use_id)
    await asyncio.gather(late, *busy)
    assert doors.entered == order


async def test_a_chatty_conversation_does_not_starve_another() -> None:
    entered = list[str]()

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        entered.append(context.tool_use_id.partition("-")[0])
        await asyncio.sleep(0)
        return ToolResult("out")

    bench = Bench(safe("Hold", body), config=ToolConcurrencyConfig.on(2))
    quiet: asyncio.Task[BatchOutcome] | None = None
    before = 0

    async def chatter() -> None:
        nonlocal quiet, before
        while quiet is None or not quiet.done():
            await bench.run_batch(batch(bench, ONE, 4))
            if quiet is None:
                before = len(entered)
                quiet = start(bench, batch(bench, OTHER, 6))

    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(chatter() for _ in range(20)))
    places = [place for place, name in enumerate(entered) if name == "other"]
    assert len(places) == 6
    # The chatty one has some 40 calls in line all the time, but only every second slot is its.
    assert places[-1] - before <= 30


async def test_a_context_holds_at_most_its_share_over_all_its_batches() -> None:
    latch = Latch()
    config = ToolConcurrencyConfig(enabled=True, max_concurrency=4, per_context_max=2)
    bench = Bench(safe("Hold", latch), config=config)
    first = start(bench, batch(bench, ONE, 3))
    second = start(bench, batch(bench, ONE, 3))
    await latch.until_inside(2)
    third = start(bench, batch(bench, OTHER, 3))
    await latch.until_inside(4)
    assert bench.dispatcher.in_use_by_context == {ONE: 2, OTHER: 2}
    latch.open()
    await asyncio.gather(first, second, third)
    assert latch.peak == 4


async def test_a_cut_batch_leaves_every_slot_to_the_others() -> None:
    latch = Latch()
    bench = Bench(safe("Hold", latch), config=ToolConcurrencyConfig.on(2), limits=QUICK)
    cut = start(bench, batch(bench, ONE, 5))
    await latch.until_inside(2)
    bench.turn.trip(CancelReason.INTERRUPT)
    await cut
    assert bench.dispatcher.in_use_by_context == {}
    fresh = Bench(safe("Hold", latch))
    fresh.dispatcher = bench.dispatcher
    going_on = start(fresh, batch(fresh, OTHER, 2))
    await latch.until_inside(2)
    latch.open()
    assert outcomes(await going_on) == ["succeeded"] * 2


async def test_an_agent_inside_a_call_gets_slots_although_its_parent_waits_for_it() -> None:
    latch = Latch()

    async def subagent(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await bench.run_batch(batch(bench, SUB, 3))
        return ToolResult("the subagent is done")

    bench = Bench(safe("Hold", latch), shell("Task", subagent), config=ToolConcurrencyConfig.on(1))
    parent = start(bench, ToolBatch((ToolUse("task", "Task", {}),), bench.registry, ONE))
    await latch.until_inside(1)
    assert bench.dispatcher.in_use_by_context == {SUB: 1}
    latch.open()
    assert outcomes(await parent) == ["succeeded"]
    assert (latch.peak, len(latch.entered)) == (1, 3)


async def test_more_contexts_than_slots_never_have_more_threads_than_slots() -> None:
    working = most = 0
    lock, all_working = threading.Lock(), threading.Barrier(2, timeout=DEADLINE)

    def block() -> None:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        all_working.wait()
        with lock:
            working -= 1

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(block)
        return ToolResult("out")

    bench = Bench(safe("Hold", body), config=ToolConcurrencyConfig.on(2))
    contexts = [AgentRuntimeId("session", f"sub-{n}") for n in range(8)]
    async with bench.dispatcher:
        both = [start(bench, batch(bench, context, 4, context.agent)) for context in contexts]
        await asyncio.gather(*both)
        assert (most, bench.dispatcher.workers) == (2, 2)
