"""How long ago something was, and how far ahead it is, for lists."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from midturn_core.queue.types import QueuedInput


def age(since: datetime) -> str:
    """How long ago, coarse: ``12s``, ``3m``, ``2h`` or ``5d``. A clock that was set back: ``0s``."""
    seconds = max(int((datetime.now(UTC) - since).total_seconds()), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def due_in(item: QueuedInput) -> str:
    """When a scheduled input is queued, such as ``in 9 min (14:30)``; with the day if it is not
    today's.
    """
    if item.due is None:
        return "held"
    due = item.due.astimezone()
    today = due.date() == datetime.now().astimezone().date()
    return (
        f"in {_coarse(item.due - datetime.now(UTC))} ({due:{'%H:%M' if today else '%d %b %H:%M'}})"
    )


def _coarse(span: timedelta) -> str:
    """At most two units, rounded up: what has a minute left is not shown as none."""
    seconds = max(math.ceil(span.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    minutes = math.ceil(seconds / 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join([f"{count} {unit}" for count, unit in parts if count][:2])
