"""How much of a result a document for readers shows; the JSON form has all of it."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RESULT_LINES = 60
MAX_RESULT_CHARS = 8_000
MAX_DIFF_LINES = 400
MAX_DIFF_CHARS = 40_000


@dataclass(frozen=True, slots=True)
class Bounded:
    """The beginning of a text. ``left_out`` says in words how much is missing; empty: nothing."""

    text: str
    left_out: str = ""


def bounded_result(text: str) -> Bounded:
    return bounded(text, MAX_RESULT_LINES, MAX_RESULT_CHARS)


def bounded_diff(text: str) -> Bounded:
    return bounded(text, MAX_DIFF_LINES, MAX_DIFF_CHARS)


def bounded(text: str, max_lines: int, max_chars: int) -> Bounded:
    lines = text.rstrip("\n").split("\n")
    shown = "\n".join(lines[:max_lines])
    if len(shown) > max_chars:
        more = len(text) - max_chars
        return Bounded(shown[:max_chars], f"{more:,} more characters are left out")
    if len(lines) > max_lines:
        return Bounded(shown, f"{len(lines) - max_lines:,} more lines are left out")
    return Bounded(shown)
