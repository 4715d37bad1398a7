"""What a server asks for with ``retry-after``: seconds, or a date (RFC 9110, 10.2.3)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_seconds(value: str, date: str, now: datetime) -> float | None:
    """How long to wait; None when nothing that can be read was asked for.

    A date counts from ``date``, the server's own clock, and from ``now`` without it.
    """
    value = value.strip()
    if value.isascii() and value.isdecimal():
        seconds = float(value)
        return seconds if math.isfinite(seconds) else None
    until = _read_date(value)
    if until is None:
        return None
    return max(0.0, (until - (_read_date(date) or now)).total_seconds())


def _read_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
