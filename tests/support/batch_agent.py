"""An agent whose batches are run by the real dispatcher, over probe tools of a test."""

from __future__ import annotations

from collections.abc import Callable

from midturn_core.batches import ToolBatches
from midturn_core.events import Emit, Event
from tests.core.dispatch.kit import CONTEXT, Bench
from tests.support.agent_kit import AgentKit
from tests.support.scripted_model import ScriptedModel


def agent_over(
    bench: Bench, model: ScriptedModel, on_event: Callable[[Event], None] | None = None
) -> AgentKit:
    """The bench gives dispatcher, tools and permission; events are the kit's."""

    def make(emit: Emit) -> ToolBatches:
        return ToolBatches(CONTEXT, bench.registry, bench.dispatcher, bench.runner, emit)

    return AgentKit(model, on_event=on_event, make_batches=make)
