"""The renderer: how the live region is painted, painted over and erased.

Private names of prompt_toolkit used here: ``Renderer._cursor_pos``, ``_last_size``,
``_last_screen``, ``_attrs_for_style``, ``_style_string_has_style`` and the function
``_output_screen_diff``. A test asserts that they exist.
"""

from __future__ import annotations

import math
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.renderer import (
    Renderer,
    _output_screen_diff,  # pyright: ignore[reportPrivateUsage]  # paints rows on a given screen
)
from prompt_toolkit.styles import BaseStyle

from midturn_cli.terminal.frame_output import NO_WRAP, FrameOutput
from midturn_cli.terminal.resize import Rewrap, rows_above_cursor, way_up


class FrameRenderer(Renderer):
    """A renderer that can erase what it painted at another width, and take a paint back."""

    def __init__(self, style: BaseStyle, output: FrameOutput, rewrap: Rewrap) -> None:
        self._frame_output = output
        self._rewrap = rewrap
        self.rows_above = 0
        """So many rows at least stand above the live region on the screen.

        They are what a terminal pushes into its scrollback when the region breaks into more rows.
        """
        super().__init__(style, output)

    def state(self) -> dict[str, object]:
        """What a paint changes, for ``restore``."""
        return dict(vars(self))

    def restore(self, state: dict[str, object]) -> None:
        """As if nothing had been painted since; its output must not have been sent."""
        vars(self).update(state)

    @property
    def painted_size(self) -> Size | None:
        """The size of the terminal at the last paint; None when nothing is painted."""
        return self._last_size

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        """Paint what has changed.

        Where the way up can be found at any width, rows above the cursor are not changed in
        place: everything from the first changed one on is erased and painted anew. So a frame
        does the same whether the terminal reads it before or after it changes its width.
        """
        self._paint(app, layout, is_done)
        if (screen := self._last_screen) is not None:
            room = self._frame_output.get_size().rows - screen.height
            self.rows_above = max(0, min(self.rows_above, room))

    def _paint(self, app: Application[Any], layout: Layout, is_done: bool) -> None:
        before, cursor, size = self._last_screen, self._cursor_pos, self._last_size
        if self._rewrap is not Rewrap.FINDABLE or before is None or is_done:
            super().render(app, layout, is_done)
            return
        with self._frame_output.frame() as drop:
            super().render(app, layout)
            first = self._first_change(before) if size == self._last_size else 0
            if first < cursor.y:
                drop()
                with self._frame_output.frame(wraps=True):
                    self._go_up(cursor.y - first)
                    self.output.erase_down()
                    self._paint_from(app, first)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Erase what was painted; the cursor is at its beginning then."""
        if self._rewrap is not Rewrap.FINDABLE:
            super().erase(leave_alternate_screen)
            return
        self._go_up(self._cursor_pos.y)
        self.output.erase_down()
        self.output.reset_attributes()
        self.output.enable_autowrap()
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def erase_after_resize(self, columns: int) -> None:
        """Erase the live region in a terminal that is ``columns`` wide now."""
        screen = self.last_rendered_screen
        if screen is None:
            return
        cursor = self._cursor_pos
        if self._rewrap is not Rewrap.NEVER:
            self.rows_above = max(0, self.rows_above - self._rows_broken_off(screen, columns))
        if self._rewrap is Rewrap.FINDABLE:
            self._go_up(cursor.y)
        else:
            up = cursor.y
            if self._rewrap is Rewrap.BREAKS:
                shown = [self._shown_cells(screen, y) for y in range(cursor.y + 1)]
                up = rows_above_cursor(shown, cursor.x, columns)
            self.output.write_raw("\r")
            self.output.cursor_up(up)
        self.output.erase_down()
        self.reset()

    def _rows_broken_off(self, screen: Screen, columns: int) -> int:
        """How many rows more the painted ones take at this width."""
        used = (self._shown_cells(screen, y) for y in range(screen.height))
        return sum(max(0, math.ceil(cells / columns) - 1) for cells in used)

    def _go_up(self, rows: int) -> None:
        columns = self._last_size.columns if self._last_size else self.output.get_size().columns
        self.output.write_raw(way_up(rows, columns))

    def _first_change(self, before: Screen) -> int:
        """The first row that differs from what was painted before, or the number of rows."""
        after = self._last_screen
        rows = max(before.height, after.height) if after is not None else 0
        for y in range(rows):
            if after is None or before.data_buffer[y] != after.data_buffer[y]:
                return y
        return rows

    def _paint_from(self, app: Application[Any], first: int) -> None:
        """Paint the rows from this one on, from its beginning; nothing stands there."""
        screen, size = self._last_screen, self._last_size
        attributes, has_style = self._attrs_for_style, self._style_string_has_style
        if screen is None or size is None or attributes is None or has_style is None:
            return
        for y in range(screen.get_cursor_position(app.layout.current_window).y + 1, screen.height):
            # If they broke, in a terminal that has become narrower but has not told so yet, the
            # way back up to the cursor would be longer than what is counted.
            screen.zero_width_escapes[y][0] = NO_WRAP
        blank = Screen()
        blank.data_buffer.update({y: screen.data_buffer[y] for y in range(first)})
        blank.height = first
        self._cursor_pos, self._last_style = _output_screen_diff(
            app,
            self.output,
            screen,
            Point(0, first),
            app.color_depth,
            blank,
            None,
            is_done=False,
            full_screen=False,
            attrs_for_style_string=attributes,
            style_string_has_style=has_style,
            size=size,
            previous_width=size.columns,
        )

    def _shown_cells(self, screen: Screen, y: int) -> int:
        limit = self._last_size.columns if self._last_size else 0
        return max(
            (
                x + max(1, cell.width)
                for x, cell in screen.data_buffer[y].items()
                if x < limit and (cell.char != " " or "reverse" in cell.style)
            ),
            default=0,
        )
