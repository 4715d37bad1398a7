"""The part of an event loop's timers that is needed, so that tests can stand in for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias


class Timer(Protocol):
    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Timer]
"""Calls something after so many seconds, on the loop's thread."""
