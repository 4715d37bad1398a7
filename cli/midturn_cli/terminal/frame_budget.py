"""How much text one frame may carry, so that a slow terminal keeps echoing keys."""

from __future__ import annotations

TARGET_SECONDS = 0.04
SMALLEST = 300
LARGEST = 1 << 20
_FIRST = 1 << 14


class FrameBudget:
    """Characters per frame: shrinks to what the terminal accepts in 40 ms, doubles otherwise."""

    def __init__(self) -> None:
        self.chars = _FIRST

    def record(self, written: int, seconds: float) -> None:
        """A frame of ``written`` characters blocked for ``seconds``."""
        if seconds > TARGET_SECONDS:
            self.chars = max(SMALLEST, int(written / seconds * TARGET_SECONDS))
        else:
            self.chars = min(LARGEST, self.chars * 2)
