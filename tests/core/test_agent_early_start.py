"""Turns whose calls start while the model still writes (D24): nobody can tell from the history."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.errors import BadRequestError, TruncatedStreamError
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    MessageEnded,
    MessageSuperseded,
    ToolResultReady,
    ToolUseEndedEarly,
    ToolUseStarted,
    ToolUseStartedEarly,
    TurnEndReason,
)
from midturn_core.model.client import BlockFinished, MessageFinished, ToolUseStarting
from midturn_core.model.messages import (
    Message,
    StopReason,
    TextBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
)
from midturn_core.model.wire import build_request
from tests.core.dispatch.kit import DEADLINE, QUICK, Bench, Latch, reader, safe, writer
from tests.support.agent_kit import AgentKit, until
from tests.support.batch_agent import agent_over
from tests.support.scripted_model import USAGE, ScriptedModel, Step, calls, text, use

LATE = ToolConcurrencyConfig(enabled=True, mixed="segments")
EARLY = ToolConcurrencyConfig(enabled=True, mixed="segments", start="streaming")


async def run(kit: AgentKit, prompt: str = "do it") -> TurnEndReason:
    async with asyncio.timeout(DEADLINE):
        return (await kit.agent.run_turn([kit.item(prompt)], kit.interrupt)).reason


def part(*uses: ToolUse) -> list[Step]:
    """Complete tool uses of a message that goes on."""
    steps: list[Step] = []
    for one in uses:
        steps += [ToolUseStarting(one.id, one.name), BlockFinished(one)]
    return steps


def end(stop: StopReason = StopReason.TOOL_USE) -> Step:
    return MessageFinished(stop, USAGE)


def results(message: Message) -> list[ToolUseResult]:
    assert isinstance(message, UserMessage)
    return [block for block in message.blocks if isinstance(block, ToolUseResult)]


async def test_a_call_runs_while_the_model_still_writes_and_its_result_is_the_batchs() -> None:
    latch, rest = Latch(), asyncio.Event()
    latch.open()
    bench = Bench(reader("Read", latch), writer("Edit"), config=EARLY)
    reply = [*part(use("a", "Read")), rest, *part(use("b", "Edit")), end()]
    kit = agent_over(bench, ScriptedModel(reply, text("done")))
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(ToolUseEndedEarly)))
    assert latch.entered == ["a"]
    assert kit.of(BatchStarted) == []
    rest.set()
    assert await turn is TurnEndReason.DONE
    (report,) = [event.report for event in kit.of(BatchFinished)]
    assert [call.early for call in report.calls] == [True, False]
    assert report.overlap_ms == pytest.approx(report.calls[0].duration_ms)
    kinds = [type(event) for event in kit.events]
    assert kinds.index(MessageEnded) < kinds.index(BatchStarted) < kinds.index(ToolUseStarted)


async def history(config: ToolConcurrencyConfig, reply: Sequence[Step]) -> str:
    bench = Bench(safe("Grep"), reader("Read"), writer("Edit"), config=config)
    kit = agent_over(bench, ScriptedModel(reply, text("done")))
    await run(kit)
    assert bool(kit.of(ToolUseStartedEarly)) is config.starts_early
    return str(build_request(kit.model.requests[-1]))


@pytest.mark.parametrize(
    "reply",
    [
        calls(use("1", "Read"), use("2", "Grep"), use("3", "Edit"), use("4", "Read")),
        calls(use("1", "Grep"), use("1", "Grep"), use("2", "Edit")),
        calls(use("1", "Read"), use("2", "Read", {"bad": 1}), use("3", "Nothing")),
        calls(use("1", "Read"), use("2", "Read"), stop=StopReason.MAX_TOKENS),
    ],
    ids=["mixed", "repeated id", "invalid and unknown", "cut at max_tokens"],
)
async def test_the_history_is_byte_identical_to_that_of_a_late_start(reply: list[Step]) -> None:
    assert await history(EARLY, reply) == await history(LATE, reply)


async def test_a_restart_of_the_message_leaves_no_trace_of_the_calls_before_it() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=EARLY, limits=QUICK)
    broken = asyncio.Event()
    first: list[Step] = [
        *part(use("a", "Grep")),
        broken,
        TruncatedStreamError("the stream broke"),
    ]
    kit = agent_over(bench, ScriptedModel(first, calls(use("b", "Grep")), text("done")))
    turn = asyncio.create_task(run(kit))
    await latch.until_inside(1)
    broken.set()
    await until(lambda: "b" in latch.inside)
    latch.open()
    assert await turn is TurnEndReason.DONE
    answered = results(kit.model.requests[-1].messages[-1])
    assert [result.tool_use_id for result in answered] == ["b"]
    assert [event.result.tool_use_id for event in kit.of(ToolResultReady)] == ["b"]
    kinds = [type(event) for event in kit.events]
    assert kinds.count(MessageSuperseded) == 1
    assert kinds.count(BatchStarted) == 1
    early = [event.tool_use_id for event in kit.of(ToolUseStartedEarly)]
    assert early == ["a", "b"]


async def test_a_message_that_fails_for_good_commits_nothing_and_leaves_nothing_running() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=EARLY, limits=QUICK)
    broken = asyncio.Event()
    reply: list[Step] = [*part(use("a", "Grep")), broken, BadRequestError("no more")]
    kit = agent_over(bench, ScriptedModel(reply))
    turn = asyncio.create_task(run(kit))
    await latch.until_inside(1)
    broken.set()
    assert await turn is TurnEndReason.FAILED
    assert latch.inside == []
    assert bench.dispatcher.slots_in_use == 0
    assert kit.of(BatchStarted) == []
    assert len(kit.conversation) == 1


async def test_a_call_dropped_at_the_output_limit_is_cut_and_dropped() -> None:
    """Its input is empty because the limit fell before any of it."""
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=EARLY, limits=QUICK)
    latched = asyncio.Event()
    reply: list[Step] = [
        *part(use("a", "Grep", {"n": 1}), use("b", "Grep")),
        latched,
        end(StopReason.MAX_TOKENS),
    ]
    kit = agent_over(bench, ScriptedModel(reply, text("done")))
    turn = asyncio.create_task(run(kit))
    await latch.until_inside(2)
    latched.set()
    await until(lambda: latch.inside == ["a"])
    latch.open()
    assert await turn is TurnEndReason.DONE
    answered = results(kit.model.requests[-1].messages[-1])
    assert [result.tool_use_id for result in answered] == ["a"]
    assert [event.result.tool_use_id for event in kit.of(ToolResultReady)] == ["a"]


async def test_a_call_that_alone_is_dropped_leaves_no_batch() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=EARLY, limits=QUICK)
    latched = asyncio.Event()
    reply: list[Step] = [
        BlockFinished(TextBlock("I look.")),
        *part(use("a", "Grep")),
        latched,
        end(StopReason.MAX_TOKENS),
    ]
    kit = agent_over(bench, ScriptedModel(reply, text("done")))
    turn = asyncio.create_task(run(kit))
    await latch.until_inside(1)
    latched.set()
    assert await turn is TurnEndReason.DONE
    assert kit.of(BatchStarted) == []
    assert latch.inside == []


async def test_ids_that_come_again_are_known_early_by_the_id_they_have_in_the_history() -> None:
    bench = Bench(safe("Grep"), config=EARLY)
    again = calls(use("1", "Grep"), use("1", "Grep"), use("2", "Grep"))
    kit = agent_over(bench, ScriptedModel(again, again, text("done")))
    await run(kit)
    early = [event.tool_use_id for event in kit.of(ToolUseStartedEarly)]
    assert early == ["1", "1-2", "2", "1-3", "1-4", "2-2"]
    started = [event.tool_use.id for event in kit.of(ToolUseStarted)]
    assert started == early
    assert sorted(event.result.tool_use_id for event in kit.of(ToolResultReady)) == sorted(early)


async def test_cancelling_the_turn_leaves_no_early_call_running() -> None:
    latch = Latch()
    bench = Bench(safe("Grep", latch), config=EARLY, limits=QUICK)
    kit = agent_over(bench, ScriptedModel([*part(use("a", "Grep")), asyncio.Event()]))
    turn = asyncio.create_task(run(kit))
    await latch.until_inside(1)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert latch.inside == []
    assert bench.dispatcher.slots_in_use == 0
