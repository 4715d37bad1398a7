"""What an emulated terminal shows, as SVG: every character in its cell, with its colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Literal

import pyte
from pyte.screens import Char

from tests.support.pty_harness import SYNC_OFF, SYNC_ON
from tests.support.terminal_screen import Screen, without_noise

CELL_WIDTH = 9
CELL_HEIGHT = 19
FONT_SIZE = 15
WIDE_FONT_SIZE = 17
BASELINE = 14
MARGIN = 10
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK KR', monospace"
FAINT = 0.6

Theme = Literal["dark", "light"]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of a terminal: its two own ones and the sixteen names that pyte uses."""

    text: str
    back: str
    named: dict[str, str]


PALETTES: dict[Theme, Palette] = {
    "dark": Palette(
        "#d0d7de",
        "#0d1117",
        {
            "black": "#484f58",
            "red": "#f0776d",
            "green": "#4cc05c",
            "brown": "#d29922",
            "blue": "#6cb0ff",
            "magenta": "#c69cf4",
            "cyan": "#4fc3cf",
            "white": "#c9d1d9",
            "brightblack": "#8b949e",
            "brightred": "#ff9a92",
            "brightgreen": "#6bd67a",
            "brightbrown": "#e8b84a",
            "brightblue": "#96c8ff",
            "brightmagenta": "#dbbcff",
            "brightcyan": "#74dbe4",
            "brightwhite": "#ffffff",
        },
    ),
    "light": Palette(
        "#1f2328",
        "#ffffff",
        {
            "black": "#24292f",
            "red": "#c0252d",
            "green": "#15732f",
            "brown": "#7d5300",
            "blue": "#0757b5",
            "magenta": "#7a3fc4",
            "cyan": "#0f6f78",
            "white": "#6e7781",
            "brightblack": "#57606a",
            "brightred": "#a40e26",
            "brightgreen": "#1a7f37",
            "brightbrown": "#633c01",
            "brightblue": "#218bff",
            "brightmagenta": "#8250df",
            "brightcyan": "#1b7c83",
            "brightwhite": "#8c959f",
        },
    ),
}


class ColourScreen(Screen):
    """Knows faint text too, which pyte does not: it is kept as blinking, which nothing here does."""

    def select_graphic_rendition(self, *attrs: int) -> None:
        translated: list[int] = []
        rest = list(attrs)
        while rest:
            code = rest.pop(0)
            if code in (38, 48) and rest:
                length = 2 if rest[0] == 5 else 4
                translated += [code, *rest[:length]]
                del rest[:length]
            else:
                translated.append(5 if code == 2 else code)
        super().select_graphic_rendition(*translated)


def frames(data: bytes, columns: int, rows: int) -> Iterator[ColourScreen]:
    """The screen after each whole frame of what a program wrote; one object that changes."""
    screen = ColourScreen(columns, rows)
    stream = pyte.ByteStream(screen)
    *whole, rest = data.split(SYNC_OFF)
    for frame in whole:
        stream.feed(without_noise(frame + SYNC_OFF))
        yield screen
    if rest and SYNC_ON not in rest:
        # Keys are echoed without the marks of a frame.
        stream.feed(without_noise(rest))
        yield screen


@dataclass(frozen=True, slots=True)
class _Cell:
    column: int
    width: int
    text: str
    fill: str
    back: str
    bold: bool
    italic: bool
    underlined: bool
    faint: bool

    @property
    def style(self) -> tuple[object, ...]:
        return (self.fill, self.back, self.bold, self.italic, self.underlined, self.faint)


def to_svg(screen: ColourScreen, theme: Theme, title: str) -> str:
    """The visible screen with its cursor, as one document that refers to nothing."""
    palette = PALETTES[theme]
    width = screen.columns * CELL_WIDTH + 2 * MARGIN
    height = screen.lines * CELL_HEIGHT + 2 * MARGIN
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="{palette.back}"/>',
        f'<g font-family="{FONTS}" font-size="{FONT_SIZE}" xml:space="preserve">',
    ]
    for y in range(screen.lines):
        cells = list(_cells(screen, y, palette))
        body += _backs(cells, y, palette)
        body += _texts(cells, y)
    if not screen.cursor.hidden:
        body.append(_cursor(screen, palette))
    return "\n".join([*body, "</g>", "</svg>"]) + "\n"


def _cells(screen: ColourScreen, y: int, palette: Palette) -> Iterator[_Cell]:
    row = screen.buffer[y]
    for x in range(screen.columns):
        char: Char = row[x]
        if not char.data:
            continue  # the second half of a wide character
        wide = x + 1 < screen.columns and not row[x + 1].data
        fill, back = (
            _colour(char.fg, palette.text, palette),
            _colour(char.bg, palette.back, palette),
        )
        if char.reverse:
            fill, back = back, fill
        yield _Cell(
            x,
            2 if wide else 1,
            char.data,
            fill,
            back,
            char.bold,
            char.italics,
            char.underscore,
            char.blink,
        )


def _colour(name: str, default: str, palette: Palette) -> str:
    if name == "default":
        return default
    return palette.named.get(name, f"#{name}")


def _backs(cells: Sequence[_Cell], y: int, palette: Palette) -> Iterator[str]:
    for back, group in groupby(cells, key=lambda cell: cell.back):
        run = list(group)
        if back != palette.back:
            width = sum(cell.width for cell in run) * CELL_WIDTH
            yield (
                f'<rect x="{_x(run[0].column)}" y="{_top(y)}" width="{width}" '
                f'height="{CELL_HEIGHT}" fill="{back}"/>'
            )


def _texts(cells: Sequence[_Cell], y: int) -> Iterator[str]:
    for _, group in groupby(cells, key=lambda cell: cell.style):
        run = list(group)
        while run and run[0].text == " ":
            run = run[1:]
        while run and run[-1].text == " ":
            run = run[:-1]
        for _, same in groupby(run, key=lambda cell: cell.text.isascii()):
            yield from _text(list(same), y)


def _text(cells: list[_Cell], y: int) -> Iterator[str]:
    """ASCII as one run, anything else cell by cell: its font may have other widths."""
    text = "".join(cell.text for cell in cells)
    if not text.strip():
        return
    first = cells[0]
    if text.isascii():
        places = f'x="{_x(first.column)}" textLength="{len(text) * CELL_WIDTH}"'
        yield f'<text {places} y="{_top(y) + BASELINE}"{_look(first)}>{escape(text)}</text>'
        return
    for cell in cells:
        size = f' font-size="{WIDE_FONT_SIZE}"' if cell.width == 2 else ""
        # Centred: a font may make it narrower than its cells.
        middle = _x(cell.column) + cell.width * CELL_WIDTH / 2
        place = f'x="{middle:g}" y="{_top(y) + BASELINE}" text-anchor="middle"'
        yield f"<text {place}{size}{_look(cell)}>{escape(cell.text)}</text>"


def _look(cell: _Cell) -> str:
    return "".join(
        (
            f' fill="{cell.fill}"',
            f' opacity="{FAINT}"' if cell.faint else "",
            ' font-weight="bold"' if cell.bold else "",
            ' font-style="italic"' if cell.italic else "",
            ' text-decoration="underline"' if cell.underlined else "",
        )
    )


def _cursor(screen: ColourScreen, palette: Palette) -> str:
    place = f'x="{_x(screen.cursor.x)}" y="{_top(screen.cursor.y)}"'
    size = f'width="2" height="{CELL_HEIGHT}"'
    return f'<rect {place} {size} fill="{palette.text}"/>'


def _x(column: int) -> int:
    return MARGIN + column * CELL_WIDTH


def _top(row: int) -> int:
    return MARGIN + row * CELL_HEIGHT
