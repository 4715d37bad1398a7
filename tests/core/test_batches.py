"""An agent with a ready dispatcher: without one switched on nothing runs together (S1.8-S1.11)."""

from __future__ import annotations

import asyncio

import pytest

from midturn_core.batches import ToolBatches
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.model.messages import ToolUseResult, UserMessage
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
