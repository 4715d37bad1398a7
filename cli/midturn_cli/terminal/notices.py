"""Notices of the front end itself.

The event types are imported when the first notice is made: that takes a quarter of the time in
which the input line has to appear, and most sessions start without any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midturn_cli.ui_events import UiEvent


class Notices:
    """Turns sentences into ``Notice`` events; safe on any thread when ``emit`` is."""

    def __init__(self, emit: Callable[[UiEvent], None]) -> None:
        self._emit = emit

    def info(self, text: str) -> None:
        self._send("info", text)

    def warn(self, text: str) -> None:
        self._send("warning", text)

    def error(self, text: str) -> None:
        self._send("error", text)

    def _send(self, level: str, text: str) -> None:
        from midturn_core.events import Notice, NoticeLevel

        self._emit(Notice(NoticeLevel(level), text))


def describe(error: BaseException) -> str:
    """An exception in one line, for a notice."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
