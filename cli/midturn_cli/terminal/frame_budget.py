"""How much text one frame may carry, so that keys are echoed between frames."""

from __future__ import annotations

COMPUTING_SECONDS = 0.018
"""A key waits as long as the frame before it; what is left over soon has a frame of its own."""
WRITING_SECONDS = 0.04
"""More, because a slow terminal would spend a larger share on repeating the live region."""
SMALLEST = 300
LARGEST = 1 << 20
_FIRST = 1 << 13


class FrameBudget:
    """Characters per frame: what is rendered, and accepted by the terminal, in a short time."""

    def __init__(self) -> None:
        self.chars = _FIRST

    def record(self, written: int, computing: float, writing: float) -> None:
        """A frame of ``written`` characters took these seconds to make and to write."""
        excess = max(computing / COMPUTING_SECONDS, writing / WRITING_SECONDS)
        if excess > 1:
            self.chars = max(SMALLEST, int(written / excess))
        elif excess < 0.5:
            self.chars = min(LARGEST, self.chars * 2)
