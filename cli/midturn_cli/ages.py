"""How long ago something was, for lists."""

from __future__ import annotations

from datetime import UTC, datetime


def age(since: datetime) -> str:
    """How long ago, coarse: ``12s``, ``3m``, ``2h`` or ``5d``. A clock that was set back: ``0s``."""
    seconds = max(int((datetime.now(UTC) - since).total_seconds()), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
