"""The output that turns every paint into one write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import DEFAULT_ATTRS, Attrs

from midturn_cli.terminal.osc52 import osc52
from midturn_cli.terminal.whole_write import write_whole

SYNC_BEGIN = "\x1b[?2026h"
SYNC_END = "\x1b[?2026l"
NO_WRAP = "\x1b[?7l"
"""Cuts what follows at the margin, until the end of the paint."""
FALLBACK_SIZE = Size(rows=24, columns=80)


def terminal_size(fd: int) -> Size:
    """The size of the terminal behind ``fd``; a usual one when it does not tell."""
    try:
        columns, rows = os.get_terminal_size(fd)
    except OSError:
        return FALLBACK_SIZE
    return Size(
        rows=rows or FALLBACK_SIZE.rows,
        columns=columns or FALLBACK_SIZE.columns,
    )


def color_depth(environ: Mapping[str, str]) -> ColorDepth:
    """What colours the environment promises; NO_COLOR wins."""
    if environ.get("NO_COLOR"):
        return ColorDepth.DEPTH_1_BIT
    if environ.get("COLORTERM") in ("truecolor", "24bit"):
        return ColorDepth.DEPTH_24_BIT
    if environ.get("TERM") in ("linux", "eterm-color"):
        return ColorDepth.DEPTH_4_BIT
    return ColorDepth.DEPTH_8_BIT


class FrameOutput(Vt100_Output):
    """Collects what is written and sends it at ``flush``, as one synchronized update.

    Inside ``frame()`` nothing is sent before its end, so that erasing, committed text and the new
    live region reach the terminal together. It never asks the terminal anything, and it does not
    switch bracketed paste off and on around each frame.
    """

    def __init__(self, stdout: TextIO, get_size: Callable[[], Size], depth: ColorDepth) -> None:
        super().__init__(stdout, get_size, default_color_depth=depth, enable_cpr=False)
        self._pending: list[str] = []
        self._open_frames = 0
        self._wraps = False
        self._plain = False
        """No colour or style is on."""
        self._bracketed_paste = False
        self._lost = False
        self.on_lost: Callable[[], None] = lambda: None
        """Called once when the terminal is gone; what is written afterwards is dropped."""
        self.last_write_seconds = 0.0
        """How long the terminal took to accept the last frame."""

    def write_raw(self, data: str) -> None:
        self._pending.append(data)

    def write(self, data: str) -> None:
        self._pending.append(data.replace("\x1b", "?"))

    def fill_clipboard(self, text: str) -> None:
        """Ask the terminal to put the text into the clipboard; it does not answer.

        Raises:
            ValueError: it is too long; nothing was written.
        """
        self.write_raw(osc52(text))
        self.flush()

    @contextmanager
    def frame(self, *, wraps: bool = False) -> Generator[Callable[[], None]]:
        """Hold everything back until the outermost frame ends.

        Call what it yields to forget what this frame has collected so far.

        ``wraps`` is for frames that paint the whole region: rows that are too long then break. A
        terminal that has become narrower, but has not told so yet, would break them anyway: so
        their height is the same whether the frame or the new size came first.
        """
        wrapped_before = self._wraps
        self._wraps = wraps or wrapped_before
        self._open_frames += 1
        try:
            yield partial(self._drop, len(self._pending))
        finally:
            self._open_frames -= 1
            self._wraps = wrapped_before
            self.flush()

    def _drop(self, start: int) -> None:
        del self._pending[start:]
        self._plain = False

    def write_text(self, text: str) -> None:
        """Write ANSI text, which may leave any colour on."""
        self.write_raw(text.replace("\n", "\r\n"))
        self._plain = False

    def reset_attributes(self) -> None:
        if not self._plain:
            self._plain = True
            super().reset_attributes()

    def set_attributes(self, attrs: Attrs, color_depth: ColorDepth) -> None:
        plain = attrs == DEFAULT_ATTRS
        if not (plain and self._plain):
            super().set_attributes(attrs, color_depth)
        self._plain = plain

    def cursor_backward(self, amount: int) -> None:
        """Never by a backspace: a control character in the output is always foreign."""
        if amount:
            self.write_raw(f"\x1b[{amount}D")

    def show_cursor(self) -> None:
        """Whether it blinks is up to its owner."""
        if not self._cursor_visible:
            self._cursor_visible = True
            self.write_raw("\x1b[?25h")

    def flush(self) -> None:
        if self._open_frames or not self._pending:
            return
        data = "".join([SYNC_BEGIN, *self._pending, SYNC_END])
        self._pending.clear()
        if self._lost:
            return
        started = time.perf_counter()
        try:
            write_whole(self.stdout, data)
        except (OSError, ValueError):
            # The terminal was closed under us; the session has to end in order.
            self._lost = True
            self.on_lost()
        self.last_write_seconds = time.perf_counter() - started

    def disable_autowrap(self) -> None:
        if not self._wraps:
            super().disable_autowrap()

    def enable_bracketed_paste(self) -> None:
        if not self._bracketed_paste:
            self._bracketed_paste = True
            super().enable_bracketed_paste()

    def disable_bracketed_paste(self) -> None:
        if self._bracketed_paste and not self._open_frames:
            self._bracketed_paste = False
            super().disable_bracketed_paste()

    def erase_down(self) -> None:
        """Erase from here, the first column, to the end of the screen.

        tmux moves what is erased into its scrollback when this starts in the top left corner, so
        the row is erased by itself and the rest from its second column on.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\r")

    def erase_screen(self) -> None:
        """Home and erase below: some terminals push what ``CSI 2J`` erases into scrollback."""
        self.write_raw("\x1b[H")
        self.erase_down()
