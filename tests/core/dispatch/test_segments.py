"""Mixed batches in segments (D23): partly together, and nobody can tell from the history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midturn_core.dispatch.config import MixedBatches, ToolConcurrencyConfig
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.events import ToolPhaseChanged, ToolResultReady
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, ToolUse
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import (
    CONTEXT,
    QUICK,
    Bench,
    Latch,
    contents,
    ids,
    outcomes,
    reader,
    result_ids,
    safe,
    shell,
    writer,
)

SEGMENTS = ToolConcurrencyConfig(enabled=True, mixed="segments")
FILES = ("a", "b", "c")

Kind: TypeAlias = Literal["Read", "Count", "Write", "Move"]


@dataclass
class ModelFiles:
    """Files in memory, and tools on them whose steps other calls may come between."""

    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(FILES, "0"))

    async def read(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        name = await self._arrive(tool_input)
        return ToolResult(self.texts[name])

    async def count(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        """All files at one moment, seen in two looks."""
        await self._arrive(tool_input)
        before = dict(self.texts)
        await _rounds(2)
        return ToolResult(f"{before} then {self.texts}")

    async def write(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        name = await self._arrive(tool_input)
        text = self.texts[name]
        await _rounds(1)
        self.texts[name] = f"{text}+{context.tool_use_id}"
        return ToolResult(f"was {text}")

    async def move(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        name = await self._arrive(tool_input)
        taken, self.texts[name] = self.texts[name], "moved"
        await _rounds(1)
        self.texts[FILES[0]] += taken
        return ToolResult(error="the place is taken") if len(taken) > 12 else ToolResult(taken)

    async def _arrive(self, tool_input: JsonObject) -> str:
        rounds, name = tool_input["rounds"], tool_input["file"]
        assert isinstance(rounds, int)
        assert isinstance(name, str)
        await _rounds(rounds)
        return name


async def _rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


uses = st.lists(
    st.tuples(
        st.sampled_from(["Read", "Read", "Count", "Write", "Move"]),
        st.sampled_from(FILES),
        st.integers(0, 6),
    ),
    max_size=8,
)


async def history(
    plan: list[tuple[str, str, int]], mixed: MixedBatches, cap: int
) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """What the model gets back, and the files afterwards."""
    files = ModelFiles()
    config = ToolConcurrencyConfig(enabled=True, max_concurrency=cap, mixed=mixed)
    bench = Bench(
        reader("Read", files.read),
        safe("Count", files.count),
        writer("Write", files.write),
        shell("Move", files.move),
        config=config,
    )
    batch = tuple(
        ToolUse(f"call-{n}", tool, {"file": file, "rounds": rounds})
        for n, (tool, file, rounds) in enumerate(plan)
    )
    outcome = await bench.run_batch(ToolBatch(batch, bench.registry, CONTEXT))
    return [(r.tool_use_id, r.outcome.value, r.content) for r in outcome.results], files.texts


@given(plan=uses, cap=st.integers(1, 5))
@settings(max_examples=120, deadline=None)
def test_the_history_of_segments_is_that_of_a_sequential_run(
    plan: list[tuple[str, str, int]], cap: int
) -> None:
    in_segments = asyncio.run(history(plan, "segments", cap))
    assert in_segments == asyncio.run(history(plan, "sequential", cap))


async def test_neighbours_are_inside_together_and_the_barrier_waits_for_both() -> None:
    together, alone, after = Latch(), Latch(), Latch()
    bench = Bench(
        reader("Read", together), writer("Edit", alone), safe("Grep", after), config=SEGMENTS
    )
    batch = bench.start("Read", "Read", "Edit", "Grep", "Grep")
    await together.until_inside(2)
    assert alone.entered == []
    together.open()
    await alone.until_inside(1)
    assert bench.ready() == ids(2)
    assert after.entered == []
    alone.open()
    await after.until_inside(2)
    after.open()
    outcome = await batch
    assert result_ids(outcome) == ids(5)
    assert outcomes(outcome) == ["succeeded"] * 5
    assert outcome.report.verdict.segments == (range(2), range(2, 3), range(3, 5))


async def test_calls_that_run_together_hold_slots_and_a_barrier_holds_none() -> None:
    """A barrier may run a subagent whose own batches need the slots."""
    seen: dict[str, int] = {}

    async def look(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        seen[context.tool_use_id] = bench.dispatcher.slots_in_use
        return ToolResult()

    bench = Bench(
        safe("Grep", look),
        shell("Task", look),
        config=ToolConcurrencyConfig(enabled=True, max_concurrency=1, mixed="segments"),
    )
    await bench.run("Grep", "Grep", "Task", "Grep")
    assert seen == {"call-0": 1, "call-1": 1, "call-2": 0, "call-3": 1}
    assert bench.dispatcher.slots_in_use == 0


async def test_a_question_of_a_later_segment_is_not_asked_before_its_turn() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), writer("Edit"), config=SEGMENTS)
    batch = bench.start("Grep", "Grep", "Edit")
    await latch.until_inside(2)
    assert bench.phases("call-2") == ["waiting"]
    latch.open()
    await batch
    changes = [e for e in bench.events if isinstance(e, ToolPhaseChanged | ToolResultReady)]
    running = next(
        n
        for n, e in enumerate(changes)
        if isinstance(e, ToolPhaseChanged)
        and e.tool_use_id == "call-2"
        and e.phase.value == "running"
    )
    assert sum(isinstance(e, ToolResultReady) for e in changes[:running]) == 2


@pytest.mark.parametrize("reason", [CancelReason.USER_MESSAGE, CancelReason.INTERRUPT])
async def test_cut_calls_of_later_segments_get_their_result_at_once(reason: CancelReason) -> None:
    latch = Latch()
    bench = Bench(safe("Grep"), writer("Edit", latch), config=SEGMENTS, limits=QUICK)
    batch = bench.start("Grep", "Grep", "Edit", "Grep", "Grep", "Edit")
    await latch.until_inside(1)
    bench.signals.batch.trip(reason)
    await bench.until(lambda: sorted(bench.ready())[-3:] == ["call-3", "call-4", "call-5"])
    latch.open()
    outcome = await batch
    assert result_ids(outcome) == ids(6)
    assert contents(outcome)[3:] == [f"skipped: {reason.value}"] * 3


async def test_a_call_cancelled_in_a_later_segment_holds_nobody_up() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), writer("Edit"), config=SEGMENTS)
    batch = bench.start("Grep", "Grep", "Edit", "Edit")
    await latch.until_inside(2)
    assert bench.dispatcher.cancel_call("call-2")
    await bench.until(lambda: bench.ready() == ["call-2"])
    latch.open()
    assert outcomes(await batch) == ["succeeded", "succeeded", "skipped", "succeeded"]


async def test_calls_above_the_configured_number_are_told_at_once_and_the_others_run() -> None:
    latch = Latch()
    config = ToolConcurrencyConfig(enabled=True, max_calls=3, mixed="segments")
    bench = Bench(safe("Grep", latch), writer("Edit"), config=config)
    batch = bench.start("Grep", "Grep", "Edit", "Edit", "Grep")
    await latch.until_inside(2)
    await bench.until(lambda: bench.ready() == ["call-3", "call-4"])
    latch.open()
    outcome = await batch
    assert outcomes(outcome)[:3] == ["succeeded"] * 3
    assert all("at most 3 calls run" in text for text in contents(outcome)[3:])
    assert outcome.report.verdict.segments == (range(2), range(2, 3))


async def test_the_report_of_a_batch_that_ran_in_order_says_what_segments_would_have_taken() -> (
    None
):
    bench = Bench(
        safe("Grep"), writer("Edit"), config=ToolConcurrencyConfig(enabled=False, mixed="segments")
    )
    report = (await bench.run("Grep", "Grep", "Edit")).report
    first, second, third = (call.duration_ms for call in report.calls)
    assert report.verdict.would_pass
    assert report.parallel_ms == pytest.approx(max(first, second) + third)
