"""The unattached Rich console: renderables in, ANSI text out. Nothing here reaches a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from rich.color import ColorSystem as RichColors
from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Span, Text
from rich.theme import Theme

from midturn_cli.render.light_styles import LIGHT_MARKDOWN
from midturn_cli.render.theme import ThemeName

ColorSystem = Literal["standard", "256", "truecolor"]
_COLORS: dict[ColorSystem, RichColors] = {
    "standard": RichColors.STANDARD,
    "256": RichColors.EIGHT_BIT,
    "truecolor": RichColors.TRUECOLOR,
}

MARKDOWN_STYLES = Theme({"markdown.code": "bold cyan", "markdown.code_block": "cyan"})
"""Code within a sentence without Rich's black background, which is a dark box on a light one."""

_TRAILING = re.compile(
    # Blanks at the end of a row, bare or in a style that has no background and no line.
    r"(?:\x1b\[(?:[123]|3[0-7]|9[0-7]|[123];3[0-7]|[123];9[0-7])m ++\x1b\[0m| ++)+(?=\n)"
)
_ROW_END = re.compile(r"(?:\x1b\[[0-9;]*m| )+\Z")
_SGR = re.compile(r"\x1b\[[0-9;]*m")
RESET = "\x1b[0m"
KEPT_ROWS = 256
"""Several frames of a high live region."""

_RowKey: TypeAlias = tuple[str, str | Style, tuple[Span, ...], int]


class Canvas:
    """Renders at a width. ``color_system`` None writes no escape sequence at all.

    ``background`` is that of the terminal: the elements of Markdown have their styles by it.
    """

    def __init__(self, color_system: ColorSystem | None, background: ThemeName = "dark") -> None:
        self._color_system: ColorSystem | None = color_system
        self._background = background
        self._kept: Console | None = None
        self._rows: dict[_RowKey, list[str]] = {}

    def on(self, background: ThemeName) -> Canvas:
        """One like this for another background."""
        return Canvas(self._color_system, background)

    def render(self, renderables: Iterable[RenderableType], width: int) -> str:
        """Whole lines of ANSI text, exactly as Rich prints the renderables one after another."""
        console = self._console(width)
        target = io.StringIO()
        console.file = target
        for renderable in renderables:
            console.print(renderable)
        return target.getvalue()

    def rows(self, rows: Iterable[Text], width: int) -> list[str]:
        """One string per row. A row is cut, not wrapped, when it is wider than ``width``.

        Rows that were asked for lately are not rendered again.
        """
        return [rendered for row in rows for rendered in self._row(row, width)]

    def _row(self, row: Text, width: int) -> list[str]:
        key = (row.plain, row.style, tuple(row.spans), width)
        rendered = self._rows.get(key)
        if rendered is None:
            if len(self._rows) >= KEPT_ROWS:
                self._rows.clear()
            rendered = self._rendered_row(_fitting(row, width), width)
            self._rows[key] = rendered
        return rendered

    def _rendered_row(self, row: Text, width: int) -> list[str]:
        if "\n" in row.plain or "\t" in row.plain:
            return self.render([row], width).split("\n")[:-1]
        # What the console does as well, but for wrapping: a third of the time.
        console = self._console(width)
        base = console.get_style(row.style)
        colors = _COLORS[self._color_system] if self._color_system else None
        segments = row.render(console)
        return ["".join((s.style or base).render(s.text, color_system=colors) for s in segments)]

    def wrap(self, text: Text, width: int) -> list[Text]:
        """The text as rows of at most ``width`` cells, broken at blanks where possible."""
        return list(text.wrap(self._console(width), max(width, 1), overflow="fold"))

    def _console(self, width: int) -> Console:
        width = max(width, 1)
        if self._kept is None or self._kept.width != width:
            self._kept = self._new_console(width)
        return self._kept

    def _new_console(self, width: int) -> Console:
        return Console(
            file=io.StringIO(),
            force_terminal=True,
            width=width,
            # Without a height a terminal that calls itself dumb would get 80 columns.
            height=100,
            color_system=self._color_system,
            legacy_windows=False,
            markup=False,
            highlight=False,
            emoji=False,
            theme=LIGHT_MARKDOWN if self._background == "light" else MARKDOWN_STYLES,
        )


def _fitting(row: Text, width: int) -> Text:
    row = row.copy()
    row.no_wrap = True
    row.truncate(max(width, 1), overflow="ellipsis")
    return row


def trimmed(text: str) -> str:
    """Whole lines without the blanks that Rich fills rows with.

    Full rows break in two when the window gets narrower, cost bytes and end up in what people
    copy. A background is kept.
    """
    return _TRAILING.sub("", text)


def live_rows(text: str) -> list[str]:
    """Rows of the live region: never filled up to the full width, background or not."""
    return [_closed(row) for row in text.split("\n")[: -1 if text.endswith("\n") else None]]


def _closed(row: str) -> str:
    bare = _ROW_END.sub("", row)
    return bare + RESET if _SGR.search(bare) else bare


def row_count(text: str) -> int:
    """How many rows whole lines of rendered text take."""
    return text.count("\n")
