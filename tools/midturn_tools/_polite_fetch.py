"""How a host is treated: few fetches at once, and a wish to be asked later is respected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from midturn_core.dispatch.slots import Slots
from midturn_tools._web_address import WebAddress
from midturn_tools._web_page import Answer, FetchError, Page

MAX_TRIES = 3
_LATER = frozenset({429, 503})
_FIRST_PAUSE = 1.0
_TIME_TO_ANSWER = 1.0
"""Seconds that must be left after a pause, else asking again is of no use."""
_WORTH_TELLING = 0.1

Fetch: TypeAlias = Callable[[WebAddress], Awaitable[Answer]]
Progress: TypeAlias = Callable[[str], None]


def pause_before_next_try(page: Page, tries: int, seconds_left: float) -> float | None:
    """Seconds to wait before a page is asked for once more; None: this answer is the last.

    Without a wish of the server it is 1 s, then 2 s.
    """
    if page.status not in _LATER or tries >= MAX_TRIES:
        return None
    own = _FIRST_PAUSE * 2 ** (tries - 1)
    pause = own if page.retry_after is None else page.retry_after
    return pause if pause + _TIME_TO_ANSWER <= seconds_left else None


@dataclass(slots=True)
class _Course:
    """How far a fetch has come, for the sentence of one that ran out of time."""

    waited: float = 0.0
    asked: bool = False
    refused: int = 0
    """The last status that asked to come later."""


class PoliteFetcher:
    """Fetches within ``seconds`` for everything together, ``per_host`` of one host at a time.

    The others wait, first come, first served. A host that answers 429 or 503 is asked again, at
    most twice, after what it asks for with ``retry-after`` if the time allows that; meanwhile the
    fetch keeps its place, so that the host is spared.
    """

    def __init__(
        self,
        fetch: Fetch,
        seconds: float,
        per_host: int,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._per_host = per_host
        self._pause = pause
        # Slots belong to their loop, as the flights of ``WebCache`` do.
        self._places: dict[tuple[asyncio.AbstractEventLoop, str], Slots] = {}

    async def fetch(self, address: WebAddress, progress: Progress = lambda _: None) -> Answer:
        """
        Raises:
            AddressRefusedError: the guard refused the address or the one of a redirect.
            FetchError: there was no usable answer, or none in time.
        """
        course, started = _Course(), asyncio.get_running_loop().time()
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._place(address.host, progress),
            ):
                course.waited = asyncio.get_running_loop().time() - started
                return await self._ask(address, course, started + self._seconds, progress)
        except TimeoutError:
            raise FetchError(self._too_late(address.host, course)) from None

    @asynccontextmanager
    async def _place(self, host: str, progress: Progress) -> AsyncGenerator[None]:
        key = (asyncio.get_running_loop(), host)
        places = self._places.setdefault(key, Slots(self._per_host))
        if places.in_use >= self._per_host:
            progress(f"waits for {_fetches(places.in_use)} of {host}")
        try:
            await places.acquire()
            try:
                yield
            finally:
                places.release()
        finally:
            if not places.in_use and not places.waiting:
                self._places.pop(key, None)

    async def _ask(
        self, address: WebAddress, course: _Course, deadline: float, progress: Progress
    ) -> Answer:
        tries = 0
        while True:
            tries += 1
            course.asked = True
            answer = await self._fetch(address)
            if not isinstance(answer, Page):
                return answer
            left = deadline - asyncio.get_running_loop().time()
            pause = pause_before_next_try(answer, tries, left)
            if pause is None:
                return replace(answer, tries=tries)
            course.refused = answer.status
            progress(f"{address.host} answered {answer.status}; asked again in {pause:g} s")
            await self._pause(pause)
            course.waited += pause

    def _too_late(self, host: str, course: _Course) -> str:
        if not course.asked:
            return (
                f"{host} was not asked: {_fetches(self._per_host)} of it went on for the whole "
                f"{self._seconds:g} s. Ask again when they are done."
            )
        waiting = (
            f", {course.waited:.1f} s of which went by waiting"
            if course.waited >= _WORTH_TELLING
            else ""
        )
        before = f" Before that it answered {course.refused}." if course.refused else ""
        return f"{host} did not deliver the page within {self._seconds:g} s{waiting}.{before}"


def _fetches(number: int) -> str:
    return "1 other fetch" if number == 1 else f"{number} other fetches"
