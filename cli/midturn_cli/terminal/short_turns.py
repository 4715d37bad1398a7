"""Threads that compute give way to the event loop often, so that keys are echoed beside them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

SWITCH_SECONDS = 0.0005
"""A tenth of Python's own: an export in a thread then holds up a key by 20 ms instead of 130."""


@contextmanager
def short_turns_for_threads() -> Generator[None]:
    """As long as the input line is there."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
