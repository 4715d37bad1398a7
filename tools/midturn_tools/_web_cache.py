"""Pages that were fetched, and fetches under way: the same page is never fetched twice at once.

S1.55. Shared by all calls, safe on any thread and with any event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from midturn_tools._web_page import Answer, Page

KEEP_SECONDS = 300.0
MAX_BYTES = 32_000_000
_ENTRY_BYTES = 2_000
"""What an entry costs beside its body."""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer, and how many seconds ago it was fetched for another call (0: just now)."""

    answer: Answer
    age: float = 0.0


@dataclass(frozen=True, slots=True)
class _Entry:
    answer: Answer
    stored: float

    @property
    def size(self) -> int:
        return _ENTRY_BYTES + (len(self.answer.body) if isinstance(self.answer, Page) else 0)


@dataclass(slots=True, eq=False)
class _Flight:
    """A fetch under way. It ends with its last waiter."""

    task: asyncio.Task[Answer]
    waiters: int = 0


class WebCache:
    """Keeps good answers for ``keep_seconds``, within ``max_bytes``; the oldest leave first."""

    def __init__(
        self,
        keep_seconds: float = KEEP_SECONDS,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_seconds = keep_seconds
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._bytes = 0
        # A task belongs to its loop, so only calls on the same loop share one.
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}

    async def get(
        self, url: str, fetch: Callable[[], Awaitable[Answer]], *, fresh: bool = False
    ) -> Found:
        """The answer for ``url``: kept, or from a fetch under way, or from ``fetch``.

        ``fresh`` passes over what was kept. A waiter that is cancelled does not end the fetch
        of the others. Whatever ``fetch`` raises reaches every waiter and is not kept.
        """
        found = None if fresh else self._kept(url)
        return found or Found(await self._join(url, fetch))

    async def _join(self, url: str, fetch: Callable[[], Awaitable[Answer]]) -> Answer:
        place = (asyncio.get_running_loop(), url)
        flight = self._flights.get(place)
        if flight is None:
            flight = _Flight(asyncio.create_task(self._fly(url, fetch)))
            self._flights[place] = flight
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if flight.waiters == 0:
                del self._flights[place]
                flight.task.cancel()
                # Its connection is closed before the call counts as over.
                await asyncio.wait({flight.task})

    async def _fly(self, url: str, fetch: Callable[[], Awaitable[Answer]]) -> Answer:
        answer = await fetch()
        if _may_be_kept(answer):
            self._keep(url, _Entry(answer, self._clock()))
        return answer

    def _kept(self, url: str) -> Found | None:
        with self._lock:
            entry = self._entries.get(url)
            if entry is None:
                return None
            age = self._clock() - entry.stored
            if age >= self._keep_seconds:
                self._drop(url)
                return None
            return Found(entry.answer, age)

    def _keep(self, url: str, entry: _Entry) -> None:
        with self._lock:
            if url in self._entries:
                self._drop(url)
            self._entries[url] = entry
            self._bytes += entry.size
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._entries)))

    def _drop(self, url: str) -> None:
        self._bytes -= self._entries.pop(url).size


def _may_be_kept(answer: Answer) -> bool:
    return not isinstance(answer, Page) or (answer.status < 400 and answer.may_be_kept)
