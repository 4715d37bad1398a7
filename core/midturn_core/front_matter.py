"""Front matter: ``key: value`` lines between two ``---`` lines at the top of a Markdown file.

It is the flat part of YAML that people write there: plain and quoted texts, lists as ``[a, b]`` or
as ``- a`` lines, texts that go on in indented lines, and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = "---"

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)\s*:(?:\s+(.*))?")
_BLOCK_MARKS = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
_NESTED = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\s*:\s")


class FrontMatterError(ValueError):
    """It cannot be read. ``line`` is 1-based; the text says what is wrong and what to write."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True, slots=True)
class Entry:
    """A value as it is written: one text, or the items of a list."""

    line: int
    value: str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrontMatter:
    entries: dict[str, Entry]
    body: str


def read_front_matter(text: str) -> FrontMatter:
    """Split a file into its entries and what follows them.

    Raises:
        FrontMatterError: there is none, it does not end, or a line of it cannot be read.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise FrontMatterError(1, f"the first line must be {FENCE}, with key: value lines after it")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise FrontMatterError(1, f"the {FENCE} that ends the front matter is missing")
    entries: dict[str, Entry] = {}
    for number, key, written, more in _raw_entries(lines[1:end]):
        if key in entries:
            raise FrontMatterError(number, f"{key} is given twice")
        entries[key] = Entry(number, _value(number, written, more))
    return FrontMatter(entries, "\n".join(lines[end + 1 :]).strip())


def _raw_entries(lines: list[str]) -> Iterator[tuple[int, str, str, list[str]]]:
    """Line number, key, what stands behind it, and the lines that go on with it."""
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 2
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line.rstrip())
        if found is None:
            raise FrontMatterError(number, f"{line.strip()[:60]!r} is no key: value line")
        more: list[str] = []
        while at < len(lines) and (lines[at][:1] in (" ", "\t") or lines[at].startswith("- ")):
            more.append(lines[at].strip())
            at += 1
        yield number, found[1], (found[2] or "").strip(), more


def _value(number: int, written: str, more: list[str]) -> str | tuple[str, ...]:
    if more and not written and all(line.startswith("- ") for line in more):
        return tuple(_text(number, line[2:].strip()) for line in more)
    if written.startswith("["):
        if not written.endswith("]") or more:
            raise FrontMatterError(number, "a list in brackets must end in its line: [a, b]")
        return _items(number, written[1:-1])
    if written in _BLOCK_MARKS:
        return ("\n" if written.startswith("|") else " ").join(more)
    if not written and any(_NESTED.match(line) for line in more):
        raise FrontMatterError(number, "values within values are not read; write one text or list")
    return _text(number, " ".join(filter(None, (written, *more))))


def _items(number: int, inside: str) -> tuple[str, ...]:
    return tuple(_text(number, item.strip()) for item in inside.split(",") if item.strip())


def _text(number: int, written: str) -> str:
    quote = written[:1]
    if quote in ('"', "'"):
        if len(written) < 2 or not written.endswith(quote):
            raise FrontMatterError(number, f"the {quote} that ends the text is missing")
        return written[1:-1].replace("\\n", "\n").replace('\\"', '"')
    return re.split(r"\s#", written, maxsplit=1)[0].rstrip()
