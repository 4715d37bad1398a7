"""Interceptors of whole turns: their order, and what a registry of one's own is bridged with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from midturn_core.controller import ControllerParts, SessionController
from midturn_core.execution import InterceptingExecutor
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.metrics import QueueMetricsInterceptor
from midturn_core.queue.types import QueuedInput, QueueFilter
from tests.core.test_controller import Lines
from tests.support.agent_kit import CONTEXT, AgentKit
from tests.support.scripted_model import ScriptedModel, text

T = TypeVar("T")


class Naming:
    """Writes down when it goes in and out."""

    def __init__(self, name: str, order: list[str]) -> None:
        self._name = name
        self._order = order

    async def intercept(self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]) -> T:
        self._order.append(f"{self._name} in")
        try:
            return await turn()
        finally:
            self._order.append(f"{self._name} out")


class Registry:
    """Bridges the totals of the metrics to counters of one's own (S2.23b)."""

    def __init__(self, metrics: QueueMetricsInterceptor) -> None:
        self._metrics = metrics
        self.drained = 0
        self.turns = 0

    async def intercept(self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]) -> T:
        before = self._metrics.get_drained_during_executions()
        try:
            return await self._metrics.intercept(context_id, turn)
        finally:
            self.turns += 1
            self.drained += self._metrics.get_drained_during_executions() - before


async def test_the_first_interceptor_that_was_added_is_the_outermost() -> None:
    order: list[str] = []
    executor = (
        InterceptingExecutor.builder()
        .add_interceptor(Naming("a", order))
        .add_interceptor(Naming("b", order))
        .build()
    )

    async def turn() -> int:
        order.append("turn")
        return 7

    assert await executor.execute(CONTEXT, turn) == 7
    assert order == ["a in", "b in", "turn", "b out", "a out"]


async def test_what_a_turn_raises_passes_through_the_whole_chain() -> None:
    order: list[str] = []
    executor = InterceptingExecutor(Naming("a", order), Naming("b", order))

    async def turn() -> None:
        raise RuntimeError("model down")

    with pytest.raises(RuntimeError, match="model down"):
        await executor.execute(CONTEXT, turn)
    assert order == ["a in", "b in", "b out", "a out"]


async def test_what_is_built_does_not_change_when_the_builder_does() -> None:
    order: list[str] = []
    builder = InterceptingExecutor.builder().add_interceptor(Naming("a", order))
    executor = builder.build()
    builder.add_interceptor(Naming("b", order))

    async def turn() -> None:
        order.append("turn")

    await executor.execute(CONTEXT, turn)
    assert order == ["a in", "turn", "a out"]


@pytest.mark.parametrize("fails", [False, True])
async def test_the_metrics_are_bridged_to_a_registry_by_wrapping_them(fails: bool) -> None:
    manager = MessageQueueManager(InMemoryMessageQueueRepository())
    registry = Registry(QueueMetricsInterceptor(manager))
    executor = InterceptingExecutor(registry)

    async def turn() -> None:
        manager.enqueue(QueuedInput("a", CONTEXT))
        manager.drain_for_injection(QueueFilter(CONTEXT))
        if fails:
            raise RuntimeError("model down")

    try:
        await executor.execute(CONTEXT, turn)
    except RuntimeError:
        assert fails
    assert (registry.turns, registry.drained) == (1, 1)


async def test_in_a_session_the_metrics_are_outside_of_every_other_interceptor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "midturn_core.queue.metrics")
    kit = AgentKit(ScriptedModel(text("hello")))
    lines_seen: list[int] = []

    class Looking:
        async def intercept(
            self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]
        ) -> T:
            kit.queue.enqueue(QueuedInput("from an interceptor", CONTEXT))
            kit.queue.remove(kit.queue.snapshot(CONTEXT)[0].uuid)
            try:
                return await turn()
            finally:
                lines_seen.append(len(caplog.records))

    session = SessionController(
        ControllerParts(
            context_id=CONTEXT,
            agent=kit.agent,
            queue=kit.queue,
            lines=Lines(),
            emit=kit.emit,
            cancel_awaited_call=lambda: False,
            interceptors=(Looking(),),
        )
    )
    session.submit("hi")
    await session.wait_idle()
    assert lines_seen == [0]
    assert session.metrics.get_enqueued_during_executions() == 1
    assert "enqueuedInTurn=1" in caplog.records[-1].getMessage()
