"""Whatever happens to a batch: one result per call, in call order, within the caps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch.config import CallStart, MixedBatches, ToolConcurrencyConfig
from midturn_core.dispatch.early import EarlyBatch
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.events import ToolPhaseChanged
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, Outcome, ToolUse, ToolUseResult
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import QUICK, Bench, ids, reader, result_ids, safe, writer

FATES = ("done", "error", "raise", "hang", "cancelled", "blocking")


@dataclass(frozen=True)
class Plan:
    """Tool, fate and number of loop rounds of each call; what happens after how many rounds."""

    config: ToolConcurrencyConfig
    calls: tuple[tuple[str, str, int], ...]
    denied: frozenset[int]
    cut: CancelReason | None
    cut_after: int
    cancel: int | None
    pause: int
    """Rounds between the last call of the message and its end, where calls may start early."""
    restarts: bool
    """A first try of the message fails at its end."""
    dropped: int
    """Calls that the message takes back at its end."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cap = draw(st.integers(1, 5))
    mixed: MixedBatches = draw(st.sampled_from(["sequential", "segments"]))
    start: CallStart = "complete"
    if mixed == "segments":
        start = draw(st.sampled_from(["complete", "streaming"]))
    config = ToolConcurrencyConfig(
        mixed=mixed,
        start=start,
        enabled=draw(st.booleans()),
        max_concurrency=cap,
        per_batch_max=draw(st.none() | st.integers(1, cap)),
        fail_fast=draw(st.booleans()),
        retry_failed=draw(st.booleans()),
        timeout_per_call=0.05,
        timeout_per_batch=draw(st.sampled_from([0.03, 10.0])),
    )
    tools = st.sampled_from(["Grep", "Read"] if draw(st.booleans()) else ["Grep", "Read", "Edit"])
    call = st.tuples(tools, st.sampled_from(FATES), st.integers(0, 6))
    calls = draw(st.lists(call, max_size=7))
    return Plan(
        config,
        tuple(calls),
        draw(st.frozensets(st.integers(0, 6), max_size=2)),
        draw(st.none() | st.sampled_from(list(CancelReason))),
        draw(st.integers(0, 12)),
        draw(st.none() | st.integers(0, 6)),
        draw(st.integers(0, 6)),
        draw(st.booleans()),
        draw(st.integers(0, 1)),
    )


@given(plan=plans())
@settings(max_examples=100, deadline=None)
def test_any_batch_gives_one_result_per_call_in_order_within_the_caps(plan: Plan) -> None:
    asyncio.run(_run(plan))


async def _run(plan: Plan) -> None:
    inside, peak = 0, 0

    async def live(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        nonlocal inside, peak
        inside += 1
        peak = max(peak, inside)
        try:
            _, fate, rounds = plan.calls[int(context.tool_use_id.removeprefix("call-"))]
            return await _meet(fate, rounds, context)
        finally:
            inside -= 1

    async def decide(pending: PendingCall) -> ToolUseResult | None:
        await asyncio.sleep(0)
        refused = pending.call.index in plan.denied
        return denied(pending.call.tool_use, "no") if refused else None

    bench = Bench(
        safe("Grep", live),
        reader("Read", live),
        writer("Edit", live),
        config=plan.config,
        limits=QUICK,
        authorize=decide,
    )
    batch = asyncio.create_task(_message(plan, bench))
    for _ in range(plan.cut_after):
        await asyncio.sleep(0)
    if plan.cancel is not None:
        bench.dispatcher.cancel_call(f"call-{plan.cancel}")
    if plan.cut is not None:
        bench.signals.batch.trip(plan.cut)
    outcome = await batch
    await bench.dispatcher.close()

    expected = ids(len(outcome.report.calls))
    assert len(expected) == len(plan.calls) or plan.config.starts_early
    assert result_ids(outcome) == expected
    assert bench.started() == expected
    assert sorted(bench.ready()) == sorted(expected)
    together = outcome.report.verdict.parallel or plan.config.starts_early
    width = plan.config.batch_slots if together else 1
    assert peak <= width
    assert inside == 0
    for result in outcome.results:
        ran = "running" in bench.phases(result.tool_use_id)
        assert not (result.outcome is Outcome.SKIPPED and ran)
        assert not (result.outcome in (Outcome.SUCCEEDED, Outcome.STOPPED) and not ran)
    assert bench.of(ToolPhaseChanged) or not expected


async def _message(plan: Plan, bench: Bench) -> BatchOutcome:
    """A message as the agent takes it: streamed where calls start early, else at once."""
    names = [tool for tool, _, _ in plan.calls]
    early = bench.dispatcher.begin(bench.batch(), bench.runner, bench.emit)
    if early is None:
        return await bench.run(*names)
    if plan.restarts:
        await _hear(early, plan, bench.batch(*names).uses)
        await early.drop()
        assert bench.of(ToolPhaseChanged) == []
        early = bench.dispatcher.begin(bench.batch(), bench.runner, bench.emit)
        assert early is not None
    uses = bench.batch(*names).uses
    await _hear(early, plan, uses)
    return await early.finish(uses[: max(len(uses) - plan.dropped, 0)], bench.signals)


async def _hear(early: EarlyBatch, plan: Plan, uses: Sequence[ToolUse]) -> None:
    for use in uses:
        early.hear(use)
    for _ in range(plan.pause):
        await asyncio.sleep(0)


async def _meet(fate: str, rounds: int, context: ToolContext) -> ToolResult:
    for _ in range(rounds):
        await asyncio.sleep(0)
    match fate:
        case "error":
            return ToolResult(error="failed")
        case "raise":
            raise LookupError("nothing here")
        case "hang":
            await asyncio.Event().wait()
        case "cancelled":
            raise asyncio.CancelledError
        case "blocking":
            return ToolResult(await context.run_blocking(lambda: "worked"))
        case _:
            pass
    return ToolResult("done")
