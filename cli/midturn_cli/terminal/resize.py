"""Repairing the live region after the terminal changed its size.

A terminal that re-wraps its rows turns one painted row into several when it gets narrower, so the
renderer's own row count is too small and leaves ghosts. Painting stops until the size has been
stable for a moment; then the region is erased by the height it has now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from midturn_cli.terminal.timers import CallLater, Timer

DEBOUNCE_SECONDS = 0.3
"""tmux tells a program about a drag only every 250 ms."""

_REWRAPPING_TERMINALS = (
    "TMUX",
    "VTE_VERSION",
    "TERM_PROGRAM",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "ALACRITTY_WINDOW_ID",
)


def terminal_rewraps(environ: Mapping[str, str]) -> bool:
    """Whether rows are wrapped anew when the width changes; plain xterm cuts them instead."""
    if not environ.get("TERM", "").startswith("xterm"):
        return True
    return any(name in environ for name in _REWRAPPING_TERMINALS)


def rows_above_cursor(used_cells: Sequence[int], cursor_x: int, columns: int) -> int:
    """How many rows the painted rows above the cursor take at the new width.

    ``used_cells`` holds, for each of them, the number of cells up to the last painted one.
    """
    wrapped = sum(max(1, math.ceil(used / columns)) for used in used_cells)
    return wrapped + cursor_x // columns


class ResizeDebounce:
    """Calls ``settled`` once the size has not changed for ``DEBOUNCE_SECONDS``."""

    def __init__(
        self,
        call_later: CallLater,
        settled: Callable[[], None],
    ) -> None:
        self._call_later = call_later
        self._settled = settled
        self._timer: Timer | None = None

    @property
    def pending(self) -> bool:
        """The size is still changing: nothing may be painted."""
        return self._timer is not None

    def changed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_later(DEBOUNCE_SECONDS, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._settled()
