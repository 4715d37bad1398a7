"""The one long-lived Application, and all that is known of prompt_toolkit's private parts.

Private names used here, and nowhere else: ``Application._redraw``, ``Application._on_resize``,
``Renderer._cursor_pos`` and ``Renderer._last_size``. A test asserts that they exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.layout import Layout
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle

from midturn_cli.terminal.frame_output import FrameOutput
from midturn_cli.terminal.modes import TerminalModes
from midturn_cli.terminal.resize import ResizeDebounce, rows_above_cursor

ESCAPE_SECONDS = 0.05
"""How long a lone Esc waits for the rest of a sequence."""
KEY_SEQUENCE_SECONDS = 1.0
"""How long other prefixes, such as Ctrl-X, wait for their next key."""


class FrameRenderer(Renderer):
    """A renderer that can erase what it painted at another width."""

    @property
    def painted_size(self) -> Size | None:
        """The size of the terminal at the last paint; None when nothing is painted."""
        return self._last_size

    def erase_after_resize(self, columns: int, *, rewraps: bool) -> None:
        """Erase the live region in a terminal that is ``columns`` wide now."""
        screen = self.last_rendered_screen
        if screen is None:
            return
        cursor = self._cursor_pos
        up = cursor.y
        if rewraps:
            used = [self._used_cells(y) for y in range(cursor.y)]
            up = rows_above_cursor(used, cursor.x, columns)
        self.output.write_raw("\r")
        self.output.cursor_up(up)
        self.output.erase_down()
        self.reset()

    def _used_cells(self, y: int) -> int:
        screen = self.last_rendered_screen
        if screen is None:
            return 0
        limit = self._last_size.columns if self._last_size else 0
        return max(
            (
                x + max(1, cell.width)
                for x, cell in screen.data_buffer[y].items()
                if x < limit and (cell.char != " " or "reverse" in cell.style)
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class ApplicationParts:
    """What the application is made of."""

    layout: Layout
    style: BaseStyle
    editing_mode: EditingMode
    output: FrameOutput
    modes: TerminalModes
    input: Input | None = None
    rewraps: bool = True


class FrameApplication(Application[int]):
    """Paints in single-write frames, and not at all while the size changes or it is held.

    Its result is the exit code.
    """

    def __init__(self, parts: ApplicationParts) -> None:
        super().__init__(
            layout=parts.layout,
            style=parts.style,
            editing_mode=parts.editing_mode,
            output=parts.output,
            input=parts.input,
            erase_when_done=True,
            # The size is compared before each paint, and SIGWINCH tells of a change.
            terminal_size_polling_interval=None,
        )
        self.frame_output = parts.output
        self._rewraps = parts.rewraps
        self._modes = parts.modes
        self.frame_renderer = FrameRenderer(self.renderer.style, parts.output)
        self.renderer = self.frame_renderer
        self.paintable = asyncio.Event()
        self.paintable.set()
        self._holds = 0
        self._resize: ResizeDebounce | None = None
        self.ttimeoutlen = ESCAPE_SECONDS
        self.on_key_handled: Callable[[], None] = lambda: None
        """Called after each key, once it is not the possible start of a longer one."""
        self.key_processor.after_key_press += self._key_pressed

    @property
    def size(self) -> Size:
        return self.frame_output.get_size()

    @property
    def held(self) -> bool:
        """The terminal is lent to another program."""
        return self._holds > 0

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, callback)

    def may_paint(self) -> bool:
        """Whether a paint would reach a terminal of the expected size now."""
        if self.held or (self._resize is not None and self._resize.pending):
            return False
        painted = self.frame_renderer.painted_size
        if painted is not None and painted != self.size:
            self._on_resize()
            return False
        return True

    def commit(self, text: str) -> None:
        """Put whole lines of ANSI text above the live region, in one frame."""
        with self.frame_output.frame():
            self.renderer.erase()
            self.frame_output.write_raw(text.replace("\n", "\r\n"))
            self._redraw()

    def repaint_screen(self, transcript: str) -> None:
        """Replace the visible screen by the end of the transcript and the live region."""
        with self.frame_output.frame():
            self.frame_output.erase_screen()
            self.renderer.reset()
            self.frame_output.write_raw(transcript.replace("\n", "\r\n"))
            self._redraw()

    @contextmanager
    def lent_terminal(self) -> Generator[None]:
        """Hand the terminal to somebody else: region erased, keys unread, line mode on."""
        self._modes.give_back()
        self.renderer.erase()
        self._holds += 1
        self.paintable.clear()
        try:
            with self.input.detach(), self.input.cooked_mode():
                yield
        finally:
            self._holds -= 1
            self.take_back()

    def take_back(self) -> None:
        """Start painting from the cursor, after the terminal was in other hands."""
        self.renderer.reset()
        self._update_paintable()
        self.frame_output.write_raw("\r")
        self._modes.take()
        self._redraw()

    def _redraw(self, render_as_done: bool = False) -> None:
        if render_as_done or self.may_paint():
            super()._redraw(render_as_done)

    def _on_resize(self) -> None:
        if self._resize is None:
            self._resize = ResizeDebounce(self.call_later, self._repair)
        self._resize.changed()
        self._update_paintable()

    def _repair(self) -> None:
        if not self.is_running:
            return
        painted = self.frame_renderer.painted_size
        with self.frame_output.frame():
            if painted is not None and painted != self.size and not self.held:
                self.frame_renderer.erase_after_resize(self.size.columns, rewraps=self._rewraps)
            self._update_paintable()
            self._redraw()

    def _update_paintable(self) -> None:
        if self.held or (self._resize is not None and self._resize.pending):
            self.paintable.clear()
        else:
            self.paintable.set()

    def _key_pressed(self, _: object) -> None:
        # Esc is also a prefix of Alt-Enter and the Alt keys, which arrive at once; waiting the
        # usual second for a possible next key would make Esc itself slow.
        pending = self.key_processor.key_buffer
        alone = bool(pending) and pending[0].key == "escape"
        self.timeoutlen = ESCAPE_SECONDS if alone else KEY_SEQUENCE_SECONDS
        if not pending:
            self.on_key_handled()
