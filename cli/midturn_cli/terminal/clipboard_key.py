"""The key that attaches the picture on the clipboard to the draft."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.timers import CallLater

if TYPE_CHECKING:
    from midturn_cli.ports import SessionPort

NO_PICTURE_HERE = "A command or a ! line takes no picture."
READING = "Reading the clipboard…"
STILL_READING = "The picture on the clipboard is still being read; press Enter again then."
QUICK_SECONDS = 0.3
"""What takes longer is said."""
HINT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ClipboardKeyParts:
    """What the key acts on."""

    draft: Draft
    session: SessionPort
    warn: Callable[[str], None]
    hint: Callable[[str, float], None]
    """Shows a sentence for so many seconds."""
    call_later: CallLater
    start: Callable[[Coroutine[None, None, None]], object]
    """Runs something beside the keys, at most until the session is left."""
    changed: Callable[[], None]


class ClipboardKey:
    """Reads beside the keys: typing goes on, and the picture comes where the cursor was."""

    def __init__(self, parts: ClipboardKeyParts) -> None:
        self._parts = parts
        self._reading = False

    def press(self) -> None:
        if self._reading:
            return
        if not self._parts.draft.takes_pictures:
            self._parts.warn(NO_PICTURE_HERE)
            return
        self._reading = True
        self._parts.call_later(QUICK_SECONDS, self._say_that_it_takes_long)
        before = self._parts.draft.buffer.document.text_before_cursor
        self._parts.start(self._attach(before))

    def holds_enter(self) -> bool:
        """Whether the draft must wait for its picture; if so, that is said."""
        if self._reading:
            self._parts.hint(STILL_READING, HINT_SECONDS)
        return self._reading

    async def _attach(self, before: str) -> None:
        try:
            found = await self._parts.session.clipboard_picture()
        finally:
            self._reading = False
        if isinstance(found, str):
            self._parts.warn(found)
        elif not self._parts.draft.attach(found, before):
            self._parts.warn(NO_PICTURE_HERE)
        self._parts.changed()

    def _say_that_it_takes_long(self) -> None:
        if self._reading:
            self._parts.hint(READING, HINT_SECONDS)
