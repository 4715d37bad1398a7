"""Events from any thread on their way to the one writer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midturn_cli.ui_events import UiEvent


class EventInbox:
    """A queue that wakes the loop of its reader."""

    def __init__(self) -> None:
        self._events: deque[UiEvent] = deque()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def attach(self) -> None:
        """From now on the running loop is woken."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def put(self, event: UiEvent) -> None:
        """Queue an event; safe on any thread, before ``attach`` and after the end."""
        self._events.append(event)
        self.wake()

    def wake(self) -> None:
        """End ``wait``, also without an event; safe on any thread."""
        loop = self._loop
        if loop is None or threading.get_ident() == self._thread:
            self._wake.set()
            return
        # The loop may have closed meanwhile: then there is no screen to show it on.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._wake.set)

    async def wait(self, seconds: float | None) -> None:
        """Until something woke it since ``rest``, for so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def rest(self) -> None:
        """What has woken it so far is dealt with."""
        self._wake.clear()

    def take(self) -> UiEvent:
        """The oldest event; neighbouring pieces of an answer are one, since each costs the same.

        Raises:
            IndexError: there is none.
        """
        # Imported here because this module is loaded long before the first event.
        from midturn_core.events import TextDelta

        event = self._events.popleft()
        if not isinstance(event, TextDelta):
            return event
        texts = [event.text]
        while self._events and isinstance(following := self._events[0], TextDelta):
            texts.append(following.text)
            self._events.popleft()
        return TextDelta("".join(texts))
