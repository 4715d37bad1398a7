"""Replacing exact text: where it stands, what goes there, and why it was not found.

Matching is code point for code point. The one liberty: a line break in the request matches LF or
CRLF, whichever the file has there, and line breaks that are put in take the kind in use around
the place.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from midturn_tools._text import extends_character

_MAX_COUNTED = 1_000
_MAX_LINES_NAMED = 10
_MAX_HINT_TEXT = 1_000_000
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
_BLANKS = re.compile(r"[^\S\n]+")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})


class Mismatch(Exception):
    """The replacement cannot be made. ``str(error)`` is the reason, in sentences for the model."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new text. ``skipped`` places were left alone: they end inside a combined character."""

    text: str
    count: int
    skipped: int


def replace_text(text: str, old: str, new: str, *, every: bool) -> Replaced:
    """Put ``new`` where ``old`` stands: at its only place, or at every one.

    With ``every`` the places are taken from left to right without overlap; otherwise overlapping
    ones count, and there must be exactly one.

    Raises:
        Mismatch: no place, several, or nothing would change.
    """
    view = _LineFeedView(text)
    wanted = _with_line_feeds(old)
    found = _places(view.text, wanted, overlapping=not every)
    whole = [place for place in found if not _splits_character(view.text, wanted, place)]
    if not whole:
        raise Mismatch(_split_everywhere(view.text, found) if found else why_missing(text, old))
    if len(whole) > 1 and not every:
        raise Mismatch(_ambiguous(view.text, whole))
    pieces: list[str] = []
    position = 0
    inserted = _with_line_feeds(new)
    for place in whole:
        start, end = view.original(place), view.original(place + len(wanted))
        pieces += [text[position:start], _with_line_end(inserted, _line_end_at(text, start, end))]
        position = end
    result = "".join([*pieces, text[position:]])
    if result == text:
        raise Mismatch("Nothing would change: the new text is what already stands there.")
    return Replaced(result, len(whole), len(found) - len(whole))


class _LineFeedView:
    """A text with every CRLF as LF, and the way back to positions in the original."""

    def __init__(self, text: str) -> None:
        self.text = _with_line_feeds(text)
        self._pairs: list[int] = []
        """Where the line feeds that were CRLF stand in ``self.text``."""
        position = text.find("\r\n")
        while position >= 0:
            self._pairs.append(position - len(self._pairs))
            position = text.find("\r\n", position + 2)

    def original(self, position: int) -> int:
        return position + bisect_left(self._pairs, position)


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n")


def _with_line_end(text: str, line_end: str) -> str:
    return text if line_end == "\n" else text.replace("\n", line_end)


def _places(text: str, wanted: str, *, overlapping: bool) -> list[int]:
    step = 1 if overlapping else len(wanted)
    places: list[int] = []
    position = text.find(wanted)
    while position >= 0 and not (overlapping and len(places) >= _MAX_COUNTED):
        places.append(position)
        position = text.find(wanted, position + step)
    return places


def _splits_character(text: str, wanted: str, place: int) -> bool:
    end = place + len(wanted)
    return end < len(text) and wanted[-1] != "\n" and extends_character(text[end])


def _line_end_at(text: str, start: int, end: int) -> str:
    """The line end in use at a place: inside it, else the next one, else the last one before."""
    for position in (text.find("\n", start, end), text.find("\n", end), text.rfind("\n", 0, start)):
        if position >= 0:
            return "\r\n" if position > 0 and text[position - 1] == "\r" else "\n"
    return "\n"


def _ambiguous(text: str, places: list[int]) -> str:
    count = f"at least {_MAX_COUNTED:,}" if len(places) >= _MAX_COUNTED else str(len(places))
    return (
        f"old_string occurs {count} times, {_at_lines(text, places)}. Add surrounding text until "
        "it stands for one place only, or set replace_all to change every place."
    )


def _split_everywhere(text: str, places: list[int]) -> str:
    return (
        f"old_string occurs only where it would cut a letter from its accent or joined sign, "
        f"{_at_lines(text, places)}. Include the whole character."
    )


def _at_lines(text: str, places: list[int]) -> str:
    lines: list[int] = []
    line, position = 1, 0
    for place in places:
        line += text.count("\n", position, place)
        position = place
        if not lines or lines[-1] != line:
            lines.append(line)
        if len(lines) > _MAX_LINES_NAMED:
            break
    named = ", ".join(str(line) for line in lines[:_MAX_LINES_NAMED])
    more = " and further ones" if len(lines) > _MAX_LINES_NAMED else ""
    return f"at line {named}" if len(lines) == 1 else f"at lines {named}{more}"


def why_missing(text: str, old: str) -> str:
    """The sentence for a text that does not occur, with the likely reason."""
    missing = "old_string does not occur in the file."
    if len(text) > _MAX_HINT_TEXT:
        return missing
    content, wanted = _with_line_feeds(text), _with_line_feeds(old)
    hint = _number_hint(content, wanted) or _likeness_hint(content, wanted)
    hint = hint or _first_line_hint(content, wanted)
    return f"{missing} {hint}" if hint else missing


def _number_hint(text: str, old: str) -> str:
    bare = _LINE_NUMBER.sub("", old)
    if bare == old or not bare or bare not in text:
        return ""
    return "It holds the line numbers that Read shows; leave out each number and the tab after it."


def _likeness_hint(text: str, old: str) -> str:
    """What the request differs in, when it stands in the file but for that."""
    liberties: tuple[tuple[Callable[[str], str], str], ...] = (
        (_composed, "another Unicode normal form (composed and decomposed letters)"),
        (_plain_quotes, "the shape of its quotes (curly or straight)"),
        (_single_blanks, "its blanks (spaces, tabs, no-break spaces)"),
        (str.casefold, "upper and lower case"),
    )
    for simplify, difference in liberties:
        wanted = simplify(old)
        place = simplify(text).find(wanted) if wanted.strip() else -1
        if place >= 0:
            line = simplify(text).count("\n", 0, place) + 1
            return f"A text at line {line} differs from it only in {difference}."
    return ""


def _first_line_hint(text: str, old: str) -> str:
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if not first or first == old.strip():
        return ""
    places = _places(text, first, overlapping=False)[:_MAX_COUNTED]
    if not places:
        return ""
    return f"Its first line occurs {_at_lines(text, places)}, but what follows there differs."


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _plain_quotes(text: str) -> str:
    return text.translate(_QUOTES)


def _single_blanks(text: str) -> str:
    return "\n".join(_BLANKS.sub(" ", line).strip() for line in text.split("\n"))
