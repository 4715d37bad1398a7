"""Watching one running tool: its limit, the reasons to stop it, and when to give it up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from midturn_core.dispatch.reaction import Reaction, StopLimits, StopPlan, plan_stop, react
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.tool import InterruptBehavior

T = TypeVar("T")


class StopRequests:
    """The reasons to stop one call, in the order they came; on the loop's thread only."""

    def __init__(self) -> None:
        self._reasons: deque[CancelReason] = deque()
        self._came = asyncio.Event()

    @property
    def first(self) -> CancelReason | None:
        """The oldest one that nobody took; None when there is none."""
        return self._reasons[0] if self._reasons else None

    def put(self, reason: CancelReason) -> None:
        self._reasons.append(reason)
        self._came.set()

    def take(self) -> CancelReason | None:
        return self._reasons.popleft() if self._reasons else None

    async def wait_beside(self, task: asyncio.Future[T], seconds: float | None = None) -> None:
        """Until the task is done, there is a reason, or the time is up."""
        if self._reasons:
            return
        self._came.clear()
        came = asyncio.create_task(self._came.wait())
        try:
            await asyncio.wait((task, came), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            came.cancel()


@dataclass(frozen=True, slots=True)
class RunTerms:
    """The terms under which a tool runs; ``limit`` is in seconds."""

    limit: float
    safe: bool
    interrupt: InterruptBehavior
    stop_limits: StopLimits


class Supervision:
    """Obeys the reasons to stop by the tool's declared behaviour."""

    def __init__(
        self,
        terms: RunTerms,
        requests: StopRequests,
        signal: SignalSource,
        on_timeout: Callable[[], None],
    ) -> None:
        self._terms = terms
        self._requests = requests
        self._signal = signal
        self._on_timeout = on_timeout
        self.plan: StopPlan | None = None
        """Set once the call must end."""

    async def watch(self, task: asyncio.Task[T]) -> None:
        """Returns when the task is done, or when the plan gives it up."""
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(self._terms.limit, self._requests.put, CancelReason.TIMEOUT)
        cancelled = False
        try:
            while not task.done():
                self._obey_all()
                plan, now = self.plan, loop.time()
                if plan is not None and not cancelled and now >= plan.cancel_at:
                    cancelled = task.cancel()
                if plan is not None and now >= plan.give_up_at:
                    # One round of the loop, in which a task that was just cancelled ends.
                    await asyncio.sleep(0)
                    return
                await self._requests.wait_beside(task, _seconds_left(plan, cancelled, now))
        finally:
            alarm.cancel()

    def join_time(self) -> float:
        """Seconds for which what is left of the call may still be waited for (D28)."""
        if self.plan is None:
            return self._terms.stop_limits.join
        return max(0.0, self.plan.give_up_at - asyncio.get_running_loop().time())

    def _obey_all(self) -> None:
        while (reason := self._requests.take()) is not None:
            self._obey(reason)

    def _obey(self, reason: CancelReason) -> None:
        reaction = react(reason, self._terms.safe, self._terms.interrupt)
        if reaction is Reaction.CONTINUE:
            return
        self._signal.trip(reason)
        if self.plan is not None:
            return
        now = asyncio.get_running_loop().time()
        self.plan = plan_stop(reaction, reason, now, self._terms.stop_limits)
        if reason is CancelReason.TIMEOUT:
            self._on_timeout()


def _seconds_left(plan: StopPlan | None, cancelled: bool, now: float) -> float | None:
    if plan is None:
        return None
    return max(0.0, (plan.give_up_at if cancelled else plan.cancel_at) - now)
