"""Repairing the live region after the terminal changed its size.

A terminal that re-wraps its rows turns one painted row into several when it gets narrower, so the
renderer's own row count is too small and leaves ghosts. Painting stops until the size has been
stable for a moment; then the region is erased by the height it has now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from midturn_cli.terminal.timers import CallLater, Timer

DEBOUNCE_SECONDS = 0.3
"""tmux tells a program about a drag only every 250 ms."""

NARROWEST = 20
"""Columns; in a narrower window rows of the live region may stay behind."""

_REWRAPPING_TERMINALS = (
    "VTE_VERSION",
    "TERM_PROGRAM",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "ALACRITTY_WINDOW_ID",
)


class Rewrap(Enum):
    """What happens to a row when the window gets too narrow for it."""

    NEVER = "it is cut, as xterm does"
    BREAKS = "it breaks by the cells that it shows"
    FINDABLE = "it breaks, and its beginning is found by going backwards, as in tmux"


def terminal_rewrap(environ: Mapping[str, str]) -> Rewrap:
    """How the terminal of this environment treats rows that have become too long."""
    if "TMUX" in environ:
        return Rewrap.FINDABLE
    if not environ.get("TERM", "").startswith("xterm"):
        return Rewrap.BREAKS
    known = any(name in environ for name in _REWRAPPING_TERMINALS)
    return Rewrap.BREAKS if known else Rewrap.NEVER


def rows_above_cursor(used_cells: Sequence[int], cursor_x: int, columns: int) -> int:
    """How many rows the painted rows down to the cursor take above it at the new width.

    ``used_cells`` holds, for each of them, the number of cells up to the last painted one; the
    last is the cursor's own row. A cursor behind the end of its row stays in the last row that
    this one breaks into.
    """
    *above, own = used_cells
    wrapped = sum(max(1, math.ceil(used / columns)) for used in above)
    return wrapped + min(cursor_x, max(own - 1, 0)) // columns


def way_up(rows: int, columns: int) -> str:
    """The way from anywhere in a row to the beginning of the one so many rows above it.

    It holds at any width: in the first column a backspace goes back into the row before, but only
    if this one is what broke off from it. So it finds the beginning of a row that has broken, and
    does nothing at the beginning of one that has not. ``columns`` is the width that the rows were
    painted for.
    """
    to_beginning = "\r" + "\b\r" * math.ceil(columns / NARROWEST)
    return to_beginning + f"\x1b[A{to_beginning[1:]}" * rows


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
