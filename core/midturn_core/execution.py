"""``InterceptingExecutor``: runs whole turns inside ``AgentExecutionInterceptor``s (S2.25).

An interceptor controls an execution: it may measure it, delay it or end it with an error of its
own. Who only wants to know what the queue does is a ``MessageQueueListener``; the roles do not mix
(S2.26). What looks at single tool calls is a ``ToolInterceptor``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from midturn_core.ids import AgentRuntimeId

T = TypeVar("T")


class AgentExecutionInterceptor(Protocol):
    """Around one turn. Turns of several contexts may run at the same time (S1.34)."""

    async def intercept(self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]) -> T:
        """Run the turn once and return what it returns; what it raises is passed on."""
        ...


class InterceptingExecutor:
    """Runs turns inside a fixed chain; the first interceptor is the outermost."""

    def __init__(self, *interceptors: AgentExecutionInterceptor) -> None:
        self._interceptors = interceptors

    @staticmethod
    def builder() -> InterceptingExecutorBuilder:
        return InterceptingExecutorBuilder()

    async def execute(self, context_id: AgentRuntimeId, turn: Callable[[], Awaitable[T]]) -> T:
        for interceptor in reversed(self._interceptors):
            turn = partial(interceptor.intercept, context_id, turn)
        return await turn()


class InterceptingExecutorBuilder:
    def __init__(self) -> None:
        self._interceptors: list[AgentExecutionInterceptor] = []

    def add_interceptor(
        self, *interceptors: AgentExecutionInterceptor
    ) -> InterceptingExecutorBuilder:
        """Add inside of those that were added before; returns the builder."""
        self._interceptors += interceptors
        return self

    def build(self) -> InterceptingExecutor:
        return InterceptingExecutor(*self._interceptors)
