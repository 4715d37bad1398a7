"""Where a permit is taken, and what an interrupt leaves of the pool (S1.15, S1.47, S1.48)."""

from __future__ import annotations

import inspect

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.dispatch.runner import BatchSignals
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonObject
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import Bench, Latch, outcomes, reader, safe


async def test_a_call_that_waits_for_its_batch_occupies_no_shared_worker() -> None:
    latch = Latch()

    async def work_and_wait(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(lambda: None)
        return await latch(tool_input, context)

    bench = Bench(reader("Read", work_and_wait), config=ToolConcurrencyConfig.on(4, 1))
    batch = bench.start("Read", "Read", "Read")
    await latch.until_inside(1)
    assert bench.dispatcher.workers == 1
    assert [bench.phases(f"call-{n}")[-1] for n in range(3)] == ["running", "waiting", "waiting"]
    latch.open()
    assert outcomes(await batch) == ["succeeded"] * 3
    assert latch.peak == 1
    await bench.dispatcher.close()


async def test_an_interrupted_turn_leaves_the_pool_as_it_was() -> None:
    latch = Latch()
    bench = Bench(safe("Hold", latch), config=ToolConcurrencyConfig.on(2))
    batch = bench.start(*["Hold"] * 4)
    await latch.until_inside(2)
    bench.turn.trip(CancelReason.INTERRUPT)
    assert set(outcomes(await batch)) == {"stopped", "skipped"}
    bench.signals = BatchSignals.under(SignalSource())
    batch = bench.start("Hold", "Hold")
    await latch.until_inside(2)
    latch.open()
    outcome = await batch
    assert outcome.report.verdict.parallel
    assert outcomes(outcome) == ["succeeded"] * 2
    await bench.dispatcher.close()


def test_a_close_waits_for_thirty_seconds_unless_told_otherwise() -> None:
    assert (
        inspect.signature(DefaultParallelToolDispatcher.close).parameters["seconds"].default == 30
    )


def test_the_settings_are_those_of_the_specification_unless_set() -> None:
    """S3.5, D21, D22, D26, D33."""
    config = ToolConcurrencyConfig()
    assert (config.enabled, config.max_concurrency, config.batch_slots) == (False, 4, 4)
    assert (config.timeout_per_call, config.timeout_per_batch) == (30.0, 120.0)
    assert (config.fail_fast, config.retry_failed) == (False, False)
    assert (config.max_calls, config.mixed, config.start) == (50, "sequential", "complete")
