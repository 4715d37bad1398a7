"""A number on screen that changes in bursts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


class ShownNumber:
    """Has a number shown when it has changed: once per round of the event loop however often it
    was told to have changed, and not at all when it is back at what is on screen.
    """

    def __init__(self, number: Callable[[], int], show: Callable[[], None]) -> None:
        self._number = number
        self._show = show
        self._shown = 0
        self._due = False

    def changed(self) -> None:
        """Look at the number soon. Never raises; without a running loop nothing is shown."""
        if self._due:
            return
        # A call that is abandoned may give its slot back after the loop has ended.
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().call_soon(self._look)
            self._due = True

    def _look(self) -> None:
        self._due = False
        number = self._number()
        if number != self._shown:
            self._shown = number
            self._show()
