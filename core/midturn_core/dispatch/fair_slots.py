"""The global tier: permits shared by the main turn, its subagents and other conversations (S1.16).

A chatty context that fires batch after batch must not keep the others waiting, so permits go round
the contexts, one each.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from midturn_core.ids import AgentRuntimeId


class FairSlots:
    """A counted limit: round robin between the contexts that wait, first come first served within
    one.

    A context that has just been served stands behind all others that wait, so with k of them the
    next permit of each is at most k grants away. One that holds its share already is passed over.
    All of it lives on one event loop and needs no lock. ``on_change`` is called whenever the
    number of permits in use has changed; it must not raise.
    """

    def __init__(
        self,
        limit: int,
        per_context_max: int | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit = limit
        self._share = per_context_max
        self._on_change = on_change
        self._held: Counter[AgentRuntimeId] = Counter()
        self._lines: OrderedDict[AgentRuntimeId, dict[asyncio.Future[None], None]] = OrderedDict()
        """The contexts that wait, in the order of their turns, each with its waiters in order."""

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def in_use(self) -> int:
        return self._held.total()

    @property
    def in_use_by_context(self) -> Counter[AgentRuntimeId]:
        """The contexts that hold permits, and how many."""
        return self._held.copy()

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def of(self, context_id: AgentRuntimeId) -> ContextSlots:
        """These permits as one context sees them."""
        return ContextSlots(self, context_id)

    async def acquire(self, context_id: AgentRuntimeId) -> None:
        """Wait for a permit. A cancelled waiter leaves the line and takes nothing with it."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(context_id, {})[granted] = None
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._leave(context_id, granted)
            else:
                self.release(context_id)
            raise

    def release(self, context_id: AgentRuntimeId) -> None:
        """Give a permit of this context back: whose turn it is gets it, if anyone waits."""
        self._held[context_id] -= 1
        if not self._held[context_id]:
            del self._held[context_id]
        self._grant()
        self._on_change()

    def resize(self, limit: int, per_context_max: int | None = None) -> None:
        """Change the limits. Permits above a smaller one are not revoked, only not renewed."""
        self._limit = limit
        self._share = per_context_max
        self._grant()

    def _grant(self) -> None:
        while self.in_use < self._limit and (chosen := self._next()) is not None:
            context_id, waiter = chosen
            self._held[context_id] += 1
            self._lines.move_to_end(context_id)
            self._leave(context_id, waiter)
            waiter.set_result(None)
            self._on_change()

    def _next(self) -> tuple[AgentRuntimeId, asyncio.Future[None]] | None:
        # Whoever has its share holds permits, so at most ``limit`` contexts are passed over.
        for context_id, line in self._lines.items():
            if self._share is not None and self._held[context_id] >= self._share:
                continue
            # A cancelled waiter stays in line until its own task runs and takes it out.
            live = next((waiter for waiter in line if not waiter.done()), None)
            if live is not None:
                return context_id, live
        return None

    def _leave(self, context_id: AgentRuntimeId, waiter: asyncio.Future[None]) -> None:
        line = self._lines[context_id]
        del line[waiter]
        if not line:
            del self._lines[context_id]


@dataclass(frozen=True, slots=True)
class ContextSlots:
    """The permits of one context, as a tier of ``SlotHold``."""

    slots: FairSlots
    context_id: AgentRuntimeId

    async def acquire(self) -> None:
        await self.slots.acquire(self.context_id)

    def release(self) -> None:
        self.slots.release(self.context_id)
