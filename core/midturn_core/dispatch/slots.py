"""Permits: the share of one batch, and what a call holds of all tiers (S1.6, S1.15, S3.11).

All of it lives on one event loop and needs no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol


class Permits(Protocol):
    """One tier, as a call sees it."""

    async def acquire(self) -> None: ...

    def release(self) -> None: ...


class Slots:
    """A counted limit with first-in, first-out waiters that can be resized at any time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_use = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def in_use(self) -> int:
        return self._in_use

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    async def acquire(self) -> None:
        """Wait for a permit. A cancelled waiter leaves the line and takes nothing with it."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._waiters.remove(granted)
            else:
                self.release()
            raise

    def release(self) -> None:
        """Give a permit back: the oldest waiter gets it, if there is one."""
        self._in_use -= 1
        self._grant()

    def resize(self, limit: int) -> None:
        """Change the limit. Permits above a smaller one are not revoked, only not renewed."""
        self._limit = limit
        self._grant()

    def _grant(self) -> None:
        while self._in_use < self._limit and (waiter := self._next_waiter()) is not None:
            self._in_use += 1
            waiter.set_result(None)

    def _next_waiter(self) -> asyncio.Future[None] | None:
        # A cancelled waiter stays in line until its own task runs and takes it out.
        live = next((waiter for waiter in self._waiters if not waiter.done()), None)
        if live is not None:
            self._waiters.remove(live)
        return live


class SlotHold:
    """What one call holds: a permit of each tier, taken in order, given back together."""

    def __init__(self, tiers: Sequence[Permits]) -> None:
        self._tiers = tiers
        self._held: list[Permits] = []

    async def acquire(self) -> None:
        for tier in self._tiers:
            await tier.acquire()
            self._held.append(tier)

    def release(self) -> None:
        """Give back whatever is held; may be called again."""
        while self._held:
            self._held.pop().release()
