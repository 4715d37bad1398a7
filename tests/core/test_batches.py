"""An agent with a ready dispatcher: without one switched on nothing runs together (S1.8-S1.11)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from midturn_core.batches import ToolBatches
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.model.messages import JsonObject, ToolUseResult, UserMessage
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import CONTEXT, Bench, Latch, safe
from tests.support.agent_kit import DEADLINE, AgentKit
from tests.support.scripted_model import ScriptedModel, calls, text, use


def agent_with(dispatcher: DefaultParallelToolDispatcher, latch: Latch) -> AgentKit:
    """An agent whose ``Hold`` calls meet at the latch."""
    kit = AgentKit(ScriptedModel(calls(use("a", "Hold"), use("b", "Hold")), text("done")))
    bench = Bench(safe("Hold", latch))
    batches = ToolBatches(CONTEXT, bench.registry, dispatcher, bench.runner, kit.emit)
    return kit.rewired(batches=batches)


@pytest.mark.parametrize(
    ("dispatcher", "together"),
    [
        (DefaultParallelToolDispatcher(ToolConcurrencyConfig.on(4)), 2),
        (DefaultParallelToolDispatcher(ToolConcurrencyConfig.off()), 1),
        (DefaultParallelToolDispatcher.sequential(), 1),
        (DefaultParallelToolDispatcher(), 1),
    ],
    ids=["on", "off", "sequential", "unset"],
)
async def test_an_agent_runs_its_batches_by_the_dispatcher_it_was_given(
    dispatcher: DefaultParallelToolDispatcher, together: int
) -> None:
    latch = Latch()
    kit = agent_with(dispatcher, latch)
    turn = asyncio.create_task(kit.agent.run_turn([kit.item("go")], kit.interrupt))
    await latch.until_inside(together)
    latch.open()
    await asyncio.wait_for(turn, DEADLINE)
    assert latch.peak == together
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    answered = [block.tool_use_id for block in last.blocks if isinstance(block, ToolUseResult)]
    assert answered == ["a", "b"]
    await dispatcher.close()


async def test_batches_made_from_a_configuration_own_their_dispatcher_and_end_its_workers() -> None:
    """S1.8, S1.49."""

    async def name_of_thread(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(await context.run_blocking(lambda: threading.current_thread().name))

    before = set(threading.enumerate())
    kit = AgentKit(ScriptedModel(calls(use("a", "Look"), use("b", "Look")), text("done")))
    bench = Bench(safe("Look", name_of_thread))
    config = ToolConcurrencyConfig.on(4)
    batches = ToolBatches(CONTEXT, bench.registry, config, bench.runner, kit.emit)
    await kit.rewired(batches=batches).agent.run_turn([kit.item("go")], kit.interrupt)
    assert batches.last is not None
    assert batches.last.report.config == config
    assert all("tool-dispatch-worker-" in result.content for result in batches.last.results)
    assert set(threading.enumerate()) > before
    await batches.close()
    await batches.close()
    assert set(threading.enumerate()) == before


async def test_closing_batches_leaves_a_dispatcher_that_is_not_theirs() -> None:
    bench = Bench(safe("Look"))
    batches = ToolBatches(CONTEXT, bench.registry, bench.dispatcher, bench.runner, bench.emit)
    await batches.close()
    assert not bench.dispatcher.closed
