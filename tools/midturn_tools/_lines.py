"""One window of numbered lines out of a stream, in memory bounded by what is shown."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from midturn_tools._text import BLOCK, ZERO_WIDTH_JOINER, extends_character, printable

MAX_LINE = 2_000
"""Characters of one line that are shown."""
MAX_BYTES = 100_000
"""Bytes of one answer."""
REACH = 1_000_000_000
"""Bytes of a file that are looked through for the lines of one answer: a line or a file may have
more than anybody waits for."""
_KEPT = MAX_LINE + 1
_BACKWARD = 32


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line without its end. ``full_length`` counts all its characters, or those within reach."""

    number: int
    text: str
    full_length: int
    endless: bool = False
    """It goes on beyond ``REACH``."""

    @property
    def cut(self) -> bool:
        return self.full_length > len(self.text)


@dataclass(frozen=True, slots=True)
class LineWindow:
    """What was found. ``more`` says that lines follow the last one shown, ``lossy`` that bytes in
    the shown ones are no UTF-8, ``out_of_reach`` that the file goes on beyond ``REACH`` and a line
    that was asked for with it.
    """

    lines: tuple[ShownLine, ...]
    more: bool
    bytes_limit_hit: bool
    lossy: bool
    out_of_reach: bool


def read_window(stream: BinaryIO, start: int, offset: int, limit: int) -> LineWindow:
    """Lines ``offset`` (1-based) to ``offset + limit - 1`` of UTF-8 text that begins at byte
    ``start``. Bytes that are no UTF-8 become U+FFFD in the lines.
    """
    stream.seek(start)
    collector = _Collector(offset, limit)
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for block in _from_line(_within_reach(stream), offset):
        if not collector.take(decoder.decode(block)):
            return collector.window(more=True)
    if stream.read(1):
        return collector.window_out_of_reach()
    more = not collector.take(decoder.decode(b"", final=True)) or not collector.take_end()
    return collector.window(more=more)


def _within_reach(stream: BinaryIO) -> Iterator[bytes]:
    left = REACH
    while left > 0 and (block := stream.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def _from_line(found: Iterator[bytes], offset: int) -> Iterator[bytes]:
    """Of the blocks of a file, what stands from the start of line ``offset`` on."""
    to_skip = offset - 1
    for block in found:
        if to_skip == 0:
            yield block
            continue
        breaks = block.count(b"\n")
        if breaks < to_skip:
            to_skip -= breaks
            continue
        yield block[_after_break(block, to_skip) :]
        to_skip = 0


def _after_break(block: bytes, count: int) -> int:
    """Where the text after the ``count``-th line break begins."""
    position = 0
    for _ in range(count):
        position = block.index(b"\n", position) + 1
    return position


class _Collector:
    """Cuts text that arrives in pieces into lines, keeping only the beginning of long ones."""

    def __init__(self, offset: int, limit: int) -> None:
        self._number = offset
        self._last = offset + limit - 1
        self._lines: list[ShownLine] = []
        self._bytes = 0
        self._bytes_limit_hit = False
        self._lossy = False
        self._beginning = ""
        self._length = 0
        self._ends_with_cr = False

    def take(self, text: str) -> bool:
        """Add text; False once a line beyond the window has begun."""
        position = 0
        while position < len(text):
            if self._number > self._last:
                return False
            end = text.find("\n", position)
            if end < 0:
                self._extend(text, position, len(text))
                return True
            self._extend(text, position, end)
            if not self._finish(drop_cr=True):
                return False
            position = end + 1
        return True

    def take_end(self) -> bool:
        """The text is over: a last line without a line break counts too."""
        return self._length == 0 or self._finish(drop_cr=False)

    def window(self, *, more: bool, out_of_reach: bool = False) -> LineWindow:
        lines, limit_hit = tuple(self._lines), self._bytes_limit_hit
        return LineWindow(lines, more, limit_hit, self._lossy, out_of_reach)

    def window_out_of_reach(self) -> LineWindow:
        """The file goes on, but not here: a line that has begun is shown as far as it is known."""
        if self._length > 0 and self._finish(drop_cr=False):
            self._lines[-1] = replace(self._lines[-1], endless=True)
        return self.window(more=True, out_of_reach=True)

    def _extend(self, text: str, start: int, end: int) -> None:
        if start == end:
            return
        wanted = _KEPT - len(self._beginning)
        self._beginning += text[start : min(end, start + wanted)]
        self._length += end - start
        self._ends_with_cr = text[end - 1] == "\r"

    def _finish(self, *, drop_cr: bool) -> bool:
        length = self._length - (drop_cr and self._ends_with_cr)
        kept = _beginning_of(self._beginning[:length])
        shown = printable(kept)
        self._beginning, self._length, self._ends_with_cr = "", 0, False
        size = len(shown.encode()) + 8
        if self._lines and self._bytes + size > MAX_BYTES:
            self._bytes_limit_hit = True
            return False
        self._bytes += size
        self._lossy = self._lossy or shown != kept
        self._lines.append(ShownLine(self._number, shown, length))
        self._number += 1
        return True


def _beginning_of(line: str) -> str:
    """At most ``MAX_LINE`` characters, not parting a letter from its accent."""
    if len(line) <= MAX_LINE:
        return line
    cut = MAX_LINE
    while cut > MAX_LINE - _BACKWARD and (
        extends_character(line[cut]) or line[cut - 1] == ZERO_WIDTH_JOINER
    ):
        cut -= 1
    return line[:cut]
