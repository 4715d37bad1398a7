"""A terminal emulator for tests: pyte, with scrollback and without its traps."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyte

# Sequences pyte would print as text instead of ignoring.
_NOISE = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC (titles, hyperlinks, colours)
    rb"|\x1b[P_^][^\x1b]*\x1b\\"  # DCS, APC, PM
    rb"|\x1b\[[<=>][0-9;:]*[a-zA-Z]"  # kitty keyboard, modifyOtherKeys
    rb"|\x1b\[\?[0-9;]*[^0-9;hl]"  # private queries
    rb"|\x1b\[[0-9;:]* q"  # cursor shape
)


_ZERO_WIDTH = re.compile("([\u200b-\u200f\u2060\ufe00-\ufe0f])")


class Screen(pyte.Screen):
    """A pyte screen that keeps the lines scrolled off its top."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(columns, lines)
        self.scrollback: list[str] = []

    def index(self) -> None:
        margins = self.margins
        top = margins.top if margins else 0
        bottom = margins.bottom if margins else self.lines - 1
        if self.cursor.y == bottom and top == 0:
            self.scrollback.append(self.row_text(0))
        super().index()

    def draw(self, data: str) -> None:
        """Keep joiners and variation selectors; pyte would drop the rest of the text."""
        for piece in _ZERO_WIDTH.split(data):
            if _ZERO_WIDTH.match(piece):
                x = self.cursor.x - 1
                while x > 0 and not self.buffer[self.cursor.y][x].data:
                    x -= 1  # the second half of a wide letter
                if x >= 0:
                    cell = self.buffer[self.cursor.y][x]
                    self.buffer[self.cursor.y][x] = cell._replace(data=cell.data + piece)
            elif piece:
                super().draw(piece)

    def row_text(self, y: int) -> str:
        row = self.buffer[y]
        return "".join(row[x].data for x in range(self.columns)).rstrip()

    def screen_text(self) -> list[str]:
        return [self.row_text(y) for y in range(self.lines)]


@dataclass
class Rendered:
    scrollback: list[str]
    screen: list[str]
    cursor: tuple[int, int]  # column, row

    @property
    def lines(self) -> list[str]:
        """Scrollback plus screen, without the blank rows below the content."""
        lines = self.scrollback + self.screen
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def without_noise(data: bytes) -> bytes:
    """Drop the sequences that pyte would print as text instead of ignoring them."""
    return _NOISE.sub(b"", data)


def resize_like_xterm(screen: Screen, cols: int, rows: int) -> None:
    """Change the size; rows that no longer fit above the cursor go to scrollback."""
    surplus = screen.cursor.y - (rows - 1)
    for _ in range(max(0, surplus)):
        screen.scrollback.append(screen.row_text(0))
        for y in range(screen.lines - 1):
            screen.buffer[y] = screen.buffer[y + 1]
        screen.buffer.pop(screen.lines - 1, None)
        screen.cursor.y -= 1
    x, y = screen.cursor.x, screen.cursor.y
    screen.lines, old_columns = rows, screen.columns
    screen.columns = cols
    if cols < old_columns:
        for row in screen.buffer.values():
            for column in [c for c in row if c >= cols]:
                row.pop(column)
    for row_index in [r for r in screen.buffer if r >= rows]:
        screen.buffer.pop(row_index)
    screen.set_margins()
    screen.tabstops = set(range(8, cols, 8))
    screen.cursor.x, screen.cursor.y = min(x, cols - 1), min(y, rows - 1)


_UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;:<=>? ]*|\][^\x07\x1b]*\x1b?|[P_^][^\x1b]*\x1b?)?\Z")


def split_unfinished(data: bytes) -> tuple[bytes, bytes]:
    """Hold back an escape sequence that the chunk boundary cut in two."""
    match = _UNFINISHED.search(data, max(0, len(data) - 4096))
    return (data[: match.start()], data[match.start() :]) if match else (data, b"")
