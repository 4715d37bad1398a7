"""Workers: none while off, daemons, bounded, gone after close; and nothing leaks out of a batch."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.dispatch.pool import CallWorker, WorkerPool
from midturn_core.dispatch.types import SequentialCause
from midturn_core.model.messages import JsonObject
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import (
    QUICK,
    Bench,
    Latch,
    contents,
    outcomes,
    reader,
    safe,
)


async def thread_name(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult(await context.run_blocking(lambda: threading.current_thread().name))


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tool-")]


def new_workers(before: list[threading.Thread]) -> list[str]:
    """Other tests of this process may have left workers; only a test's own count."""
    return sorted(thread.name for thread in workers() if thread not in before)


async def test_while_off_there_is_no_pool_and_one_io_worker_only_when_needed() -> None:
    before = workers()
    bench = Bench(reader("Read", thread_name), safe("Grep"), config=ToolConcurrencyConfig.off())
    await bench.run("Grep", "Grep")
    assert new_workers(before) == []
    outcome = await bench.run("Read", "Read", "Read")
    assert contents(outcome) == ["tool-io-worker"] * 3
    assert new_workers(before) == ["tool-io-worker"]
    await bench.dispatcher.close()
    assert new_workers(before) == []


async def test_while_on_workers_start_with_the_first_blocking_work_and_are_daemons() -> None:
    before = workers()
    bench = Bench(reader("Read", thread_name), safe("Grep"), config=ToolConcurrencyConfig.on(3))
    await bench.run("Grep", "Grep")
    assert new_workers(before) == []
    outcome = await bench.run("Read", "Read")
    assert all(name.startswith("tool-dispatch-worker-") for name in contents(outcome))
    assert all(thread.daemon for thread in workers())
    await bench.dispatcher.close()


async def test_many_batches_leave_no_more_workers_than_the_cap() -> None:
    before = workers()
    bench = Bench(reader("Read", thread_name), config=ToolConcurrencyConfig.on(3))
    for _ in range(40):
        await bench.run(*["Read"] * 6)
    assert len(new_workers(before)) <= 3
    assert len(asyncio.all_tasks()) == 1
    await bench.dispatcher.close()
    assert new_workers(before) == []


async def test_many_dispatchers_leave_no_workers_once_closed() -> None:
    before = workers()
    for _ in range(20):
        bench = Bench(reader("Read", thread_name))
        async with bench.dispatcher:
            await bench.run("Read", "Read")
    assert new_workers(before) == []


async def test_switching_off_ends_the_pool_after_the_batches_on_their_way() -> None:
    before = workers()
    latch = Latch()
    bench = Bench(reader("Read", thread_name), safe("Hold", latch))
    batch = bench.start("Hold", "Read")
    await latch.until_inside(1)
    await bench.until(lambda: bench.ready() == ["call-1"])
    bench.dispatcher.configure(ToolConcurrencyConfig.off())
    assert new_workers(before) == ["tool-dispatch-worker-1"]
    latch.open()
    await batch
    assert new_workers(before) == []
    assert contents(await bench.run("Read", "Read")) == ["tool-io-worker"] * 2
    await bench.dispatcher.close()


async def test_a_closed_dispatcher_runs_batches_in_order() -> None:
    bench = Bench(reader("Read", thread_name))
    await bench.dispatcher.close()
    await bench.dispatcher.close()
    outcome = await bench.run("Read", "Read")
    assert contents(outcome) == ["tool-io-worker"] * 2
    assert outcome.report.verdict.cause is SequentialCause.CLOSED
    await bench.dispatcher.close()


async def test_a_batch_after_the_close_leaves_no_worker_behind() -> None:
    before = workers()
    bench = Bench(reader("Read", thread_name))
    await bench.dispatcher.close()
    await bench.run("Read", "Read")
    assert new_workers(before) == []


async def test_a_close_that_is_cut_short_ends_the_workers_too() -> None:
    before = workers()
    latch = Latch()
    bench = Bench(reader("Read", thread_name), safe("Hold", latch))
    batch = bench.start("Read", "Hold")
    await latch.until_inside(1)
    await bench.until(lambda: bench.ready() == ["call-0"])
    closing = asyncio.create_task(bench.dispatcher.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert new_workers(before) == []
    latch.open()
    assert outcomes(await batch) == ["succeeded"] * 2


async def test_close_lets_a_batch_on_its_way_finish() -> None:
    latch = Latch()

    async def hold(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await latch(tool_input, context)
        return ToolResult("cut" if context.signal.tripped else "whole")

    bench = Bench(safe("Hold", hold))
    batch = bench.start("Hold", "Hold")
    await latch.until_inside(2)
    closing = asyncio.create_task(bench.dispatcher.close())
    for _ in range(10):
        await asyncio.sleep(0)
    assert bench.dispatcher.closed and not closing.done()
    latch.open()
    await closing
    assert contents(await batch) == ["whole"] * 2


async def test_close_cuts_what_is_not_done_in_time() -> None:
    latch = Latch()
    bench = Bench(safe("Hold", latch), config=ToolConcurrencyConfig.on(1), limits=QUICK)
    batch = bench.start("Hold", "Hold")
    await latch.until_inside(1)
    await bench.dispatcher.close(seconds=0.01)
    outcome = await batch
    assert outcomes(outcome) == ["stopped", "skipped"]
    assert "the program is closing" in contents(outcome)[1]


async def test_the_sequential_dispatcher_has_no_pool() -> None:
    dispatcher = DefaultParallelToolDispatcher.sequential()
    assert not dispatcher.config.enabled
    assert DefaultParallelToolDispatcher().config == ToolConcurrencyConfig.off()


async def test_blocking_functions_of_one_call_run_one_after_another() -> None:
    running, peak = 0, 0

    def count() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        running -= 1

    pool = WorkerPool.for_dispatch(4)
    worker = CallWorker(pool)
    await asyncio.gather(*(worker.run_blocking(count) for _ in range(20)))
    assert peak == 1
    assert pool.size == 1
    pool.stop()


async def test_cleaning_up_after_a_cancelled_function_waits_for_its_end() -> None:
    entered, free, order = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        entered.set()
        free.wait()
        order.append("work")

    pool = WorkerPool.for_dispatch(4)
    worker = CallWorker(pool)
    first = asyncio.create_task(worker.run_blocking(work))
    await asyncio.to_thread(entered.wait)
    first.cancel()
    second = asyncio.create_task(worker.run_blocking(lambda: order.append("clean up")))
    await asyncio.sleep(0)
    free.set()
    await second
    assert order == ["work", "clean up"]
    pool.stop()


async def test_a_call_that_is_over_runs_nothing_more() -> None:
    pool = WorkerPool.for_dispatch(1)
    worker = CallWorker(pool)
    assert worker.close() is False
    with pytest.raises(RuntimeError, match="the call is over"):
        await worker.run_blocking(lambda: None)
    pool.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        await CallWorker(pool).run_blocking(lambda: None)


async def test_a_raised_stop_iteration_reaches_the_caller_instead_of_hanging_it() -> None:
    def stop() -> None:
        raise StopIteration

    pool = WorkerPool.for_io()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await CallWorker(pool).run_blocking(stop)
    pool.stop()


async def test_context_variables_reach_the_worker() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    pool = WorkerPool.for_io()
    assert await CallWorker(pool).run_blocking(variable.get) == "set"
    pool.stop()


async def test_an_idle_worker_keeps_no_finished_value_alive() -> None:
    class Value:
        pass

    pool = WorkerPool.for_io()
    worker = CallWorker(pool)
    value = await worker.run_blocking(Value)
    alive = weakref.ref(value)
    del value, worker
    await CallWorker(pool).run_blocking(lambda: None)
    gc.collect()
    assert alive() is None
    pool.stop()


async def test_a_smaller_limit_ends_surplus_workers() -> None:
    barrier = threading.Barrier(3, timeout=20)
    pool = WorkerPool.for_dispatch(3)
    await asyncio.gather(*(CallWorker(pool).run_blocking(barrier.wait) for _ in range(3)))
    assert pool.size == 3
    pool.resize(1)
    names = [
        await CallWorker(pool).run_blocking(lambda: threading.current_thread().name)
        for _ in range(5)
    ]
    assert len(set(names)) == 1
    pool.stop()
    assert pool.size == 0
