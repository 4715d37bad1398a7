"""How much text one frame may carry, so that keys are echoed between frames."""

from __future__ import annotations

TARGET_SECONDS = 0.04
SMALLEST = 300
LARGEST = 1 << 20
_FIRST = 1 << 14


class FrameBudget:
    """Characters per frame: what is rendered and accepted by the terminal in about 40 ms."""

    def __init__(self) -> None:
        self.chars = _FIRST

    def record(self, written: int, seconds: float) -> None:
        """A frame of ``written`` characters kept the loop busy for ``seconds``."""
        if seconds > TARGET_SECONDS:
            self.chars = max(SMALLEST, int(written / seconds * TARGET_SECONDS))
        elif seconds < TARGET_SECONDS / 2:
            self.chars = min(LARGEST, self.chars * 2)
