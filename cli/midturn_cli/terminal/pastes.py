"""Pasted text: large pastes are shown as a placeholder and expanded when they leave the draft."""

from __future__ import annotations

import re

FOLD_CHARS = 2000
FOLD_LINES = 20

_PLACEHOLDER = re.compile(r"\[Pasted #\d+ \d+ (?:lines|chars)\]")


def normalize_line_ends(text: str) -> str:
    """CRLF and CR become LF; terminals send a carriage return for each pasted line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class PasteShelf:
    """Keeps the folded pastes of a session, so that a recalled draft can still be expanded."""

    def __init__(self) -> None:
        self._contents: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """``text`` itself, or a placeholder for it when it is long."""
        lines = text.count("\n") + 1
        if len(text) <= FOLD_CHARS and lines <= FOLD_LINES:
            return text
        size = f"{lines} lines" if lines > 1 else f"{len(text)} chars"
        placeholder = f"[Pasted #{len(self._contents) + 1} {size}]"
        self._contents[placeholder] = text
        return placeholder

    def refold(self, edited: str, shown: str) -> str:
        """``edited`` with the pastes of the draft ``shown`` folded again where it still has them
        in their order, unchanged.
        """
        start = 0
        for placeholder in _PLACEHOLDER.findall(shown):
            content = self._contents.get(placeholder)
            place = edited.find(content, start) if content else -1
            if content and place >= 0:
                edited = edited[:place] + placeholder + edited[place + len(content) :]
                start = place + len(placeholder)
        return edited

    def expand(self, text: str) -> str:
        """Replace each placeholder by what it stands for; placeholders within that stay text."""
        return _PLACEHOLDER.sub(lambda found: self._contents.get(found[0], found[0]), text)
