"""What the keyboard does to a question. A module of its own: the first paint needs no other."""

from __future__ import annotations

from enum import Enum


class AskKeyboard(Enum):
    """What keys do to the question on screen (D41)."""

    NOT_YET = "not yet"
    """It was painted, or a key was pressed, a moment ago: keys go to the draft."""
    NEEDS_TAB = "needs tab"
    """There is a draft: keys go to it until Tab gives the question the keyboard."""
    ARMED = "armed"
    """A key answers."""
    REASONING = "reasoning"
    """The reason of a "no" is being typed."""
