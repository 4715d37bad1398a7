"""An event loop whose time passes only while nothing is ready, and then at once.

Limits of seconds are reached in microseconds, in the same order as on a real clock. Threads and
child processes live in real time: while there are threads beside the loop's, it gives them a
moment before it jumps.
"""

from __future__ import annotations

import asyncio
import selectors
import threading

PATIENCE = 0.0005
"""Real seconds for threads before a short jump."""
LONG = 100.0
"""Virtual seconds; nothing but the end of a test is that far away."""
LAST_PATIENCE = 10.0
"""Real seconds before such a jump."""


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._threads = threading.active_count()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        patience = LAST_PATIENCE if timeout > LONG else PATIENCE
        ready = super().select(patience if threading.active_count() > self._threads else 0)
        if not ready:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For ``asyncio.Runner(loop_factory=VirtualTimeLoop)``."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
