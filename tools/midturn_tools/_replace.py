"""Replacing exact text: where it stands, what goes there, and why it was not found.

Matching is code point for code point. The one liberty: a line break in the request matches LF or
CRLF, whichever the file has there, and line breaks that are put in take the kind in use around
the place.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from midturn_tools._text import HOW_TO_NAME_ENCODINGS, extends_character, printable

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
    inserted, line_ends = _with_line_feeds(new), _LineEnds(text)
    for place in whole:
        start, end = view.original(place), view.original(place + len(wanted))
        pieces += [text[position:start], line_ends.given_to(inserted, start)]
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


class _LineEnds:
    """The line ends in use in a text, asked for from its beginning to its end.

    At a place it is the one that comes first from there on, else the last one of the text. Each
    is looked up once: a line may have megabytes, and a place at every other letter.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = -1
        self._last = text.rfind("\n")

    def given_to(self, inserted: str, start: int) -> str:
        """What is put in at ``start``, with the line end in use there."""
        if "\n" not in inserted:
            return inserted
        if self._next < start:
            self._next = self._text.find("\n", start) if start <= self._last else self._last
        is_pair = self._next > 0 and self._text[self._next - 1] == "\r"
        return inserted.replace("\n", "\r\n") if is_pair else inserted


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
    reasons = (_number_hint, _likeness_hint, _escape_hint, _return_hint, _encoding_hint)
    found = (reason(content, wanted) for reason in (*reasons, _first_line_hint))
    hint = next((sentence for sentence in found if sentence), "")
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


def _escape_hint(text: str, old: str) -> str:
    """Read shows the cells of a notebook as text; in the file they are strings of JSON."""
    lines = [line.strip() for line in old.split("\n") if line.strip()]
    escaped = [json.dumps(line, ensure_ascii=False)[1:-1] for line in lines]
    several = "\n" in old.strip("\n") and text.lstrip().startswith(("{", "["))
    if not lines or (escaped == lines and not several) or any(e not in text for e in escaped):
        return ""
    return (
        'It stands in strings of JSON: there a quote is \\", a backslash \\\\ and a line break \\n. '
        "A read with offset 1 shows how."
    )


def _return_hint(text: str, old: str) -> str:
    if "\r" not in text or old.replace("\n", "\r") not in text.replace("\n", "\r"):
        return ""
    return "Lines end with a carriage return alone there: \\r where a \\n was given."


def _encoding_hint(text: str, old: str) -> str:
    if old.isascii() or printable(text) == text:
        return ""
    return (
        "Some bytes of the file are no UTF-8, so that what is not ASCII cannot be found there. "
        f"{HOW_TO_NAME_ENCODINGS}"
    )


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
