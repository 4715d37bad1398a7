"""When each tier is delivered, in words, as the configuration has it (D1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midturn_core.config import QueueConfig

NEXT_WORDS = {"step": "after this step", "turn_end": "when the turn ends"}
"""By ``next_delivery``."""
LATER_WORDS = {"idle": "after this turn", "manual": "on /later run"}
"""By ``later``."""
BEING_EDITED = "being edited"
BEHIND_EDITED = "after the line being edited"
NOW_WITHOUT_HASTE = "first after this step"


def tier_words(tier: str, queue: QueueConfig) -> str:
    """What the name of a tier (``now``, ``next``, ``later``) means for a line that is written."""
    if tier == "now":
        return "redirects at once" if queue.now_hastens else NOW_WITHOUT_HASTE
    return NEXT_WORDS[queue.next_delivery] if tier == "next" else LATER_WORDS[queue.later]
