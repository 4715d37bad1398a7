"""The batch's time limit: a countdown that stands still while time does not count (D22)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class BatchClock:
    """Counts down on the running loop and calls ``expired`` once, unless stopped before.

    It is paused while at least one holder pauses it: a question is open, or a call that is not
    under the batch limit runs.
    """

    def __init__(self, seconds: float, expired: Callable[[], None]) -> None:
        self._left = seconds
        self._expired = expired
        self._pauses = 0
        self._since = 0.0
        self._started = False
        self._alarm: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """A pause from before the start holds."""
        self._started = True
        self._count_down()

    def pause(self) -> None:
        self._pauses += 1
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._left -= asyncio.get_running_loop().time() - self._since

    def resume(self) -> None:
        self._pauses -= 1
        self._count_down()

    def stop(self) -> None:
        self._started = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _count_down(self) -> None:
        if self._started and not self._pauses:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._alarm = loop.call_later(self._left, self._expire)

    def _expire(self) -> None:
        self._started = False
        self._alarm = None
        self._expired()
