"""What becomes of an input that is held, released or edited (D5); None where nothing changes."""

from __future__ import annotations

from datetime import datetime

from midturn_core.queue.types import QueuedInput


def held_back(item: QueuedInput) -> QueuedInput | None:
    """Held, or, while somebody edits it, held afterwards."""
    if item.bars_others:
        return item.to_be(held=True)
    return None if item.held else item.as_held()


def let_go(item: QueuedInput, since: datetime | None) -> QueuedInput | None:
    """On its way, or, while somebody edits it, on its way afterwards. ``since`` begins its time to
    live anew.
    """
    if item.being_edited:
        return None if item.bars_others else item.to_be(held=False)
    return item.as_free(since) if item.held else None


def edit_begun(item: QueuedInput) -> QueuedInput | None:
    """In the hands of somebody who edits it."""
    return None if item.being_edited else item.as_edited()


def edit_ended(item: QueuedInput, since: datetime | None) -> QueuedInput | None:
    """What it was before somebody edited it, or what a hold or a release made of it meanwhile."""
    if not item.being_edited:
        return None
    return item.as_free(since) if item.bars_others else item.as_held()
