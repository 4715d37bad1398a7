"""What came from outside of the session: another terminal, a script, another machine."""

from __future__ import annotations

from dataclasses import replace

from midturn_core.queue.types import ORIGIN_KEY, QueuedInput

OUTSIDE = "outside"
SENDER_KEY = "from"
MAX_SENDER = 40
"""Letters of a sender's name."""


def outside_tags(sender: str = "") -> dict[str, str]:
    """The metadata of an input that is sent to a session."""
    name = " ".join(sender.split())[:MAX_SENDER]
    return {ORIGIN_KEY: OUTSIDE, **({SENDER_KEY: name} if name else {})}


def as_from_outside(item: QueuedInput) -> QueuedInput:
    """The same input, marked whatever it says of itself."""
    return replace(item, metadata={**item.metadata, ORIGIN_KEY: OUTSIDE})


def sender_note(item: QueuedInput) -> str:
    """``from outside``, or ``from NAME``; empty for what was typed in the session. The name is
    untrusted.
    """
    if item.metadata.get(ORIGIN_KEY) != OUTSIDE:
        return ""
    return f"from {item.metadata.get(SENDER_KEY) or OUTSIDE}"
