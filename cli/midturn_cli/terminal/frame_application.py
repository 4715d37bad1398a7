"""The one long-lived Application, which paints in frames.

Private names of prompt_toolkit used here: ``Application._redraw`` and ``Application._on_resize``;
those of its renderer are in ``frame_renderer``. A test asserts that all of them exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.layout import Layout
from prompt_toolkit.styles import BaseStyle

from midturn_cli.terminal.frame_output import FrameOutput
from midturn_cli.terminal.frame_renderer import FrameRenderer
from midturn_cli.terminal.modes import TerminalModes
from midturn_cli.terminal.resize import ResizeDebounce, Rewrap

LONGEST_POSTPONE = 0.002
"""How long a key waits to be painted for the loop to have nothing else to do."""
ESCAPE_SECONDS = 0.05
"""How long a lone Esc waits for the rest of a sequence."""
KEY_SEQUENCE_SECONDS = 1.0
"""How long other prefixes, such as Ctrl-X, wait for their next key."""


@dataclass(frozen=True, slots=True)
class ApplicationParts:
    """What the application is made of."""

    layout: Layout
    style: BaseStyle
    editing_mode: EditingMode
    output: FrameOutput
    modes: TerminalModes
    input: Input | None = None
    rewrap: Rewrap = Rewrap.BREAKS


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
        self._modes = parts.modes
        self.frame_renderer = FrameRenderer(self.renderer.style, parts.output, parts.rewrap)
        self.renderer = self.frame_renderer
        self.paintable = asyncio.Event()
        self.paintable.set()
        self._holds = 0
        self._kept_back = ""
        """Committed text that waits until the size is stable."""
        self._resize: ResizeDebounce | None = None
        self.paint_seconds = 0.0
        """CPU time that the last paint took."""
        self.max_render_postpone_time = LONGEST_POSTPONE
        self.ttimeoutlen = ESCAPE_SECONDS
        self.on_repainted: Callable[[], None] = lambda: None
        """Called after the terminal may have become another size: the texts of the live region were
        made for the one before.
        """
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
        """Put whole lines of ANSI text above the live region, in one frame.

        When the size has changed, they wait for the repair: a frame that counts the rows of the
        old size would leave some of them behind, or erase too many.
        """
        self._kept_back += text
        size = self.size
        if self.is_running and not self.may_paint():
            return
        before = self.frame_renderer.state()
        text = self._kept_back
        with self.frame_output.frame(wraps=True) as drop:
            self.renderer.erase()
            self._write_kept_back()
            self._redraw()
            if self.is_running and self.size != size:
                # It changed while this frame was made; nothing of it has been sent yet.
                drop()
                self.frame_renderer.restore(before)
                self._kept_back = text
                self._on_resize()

    def finish(self) -> None:
        """After the end: write what still waits for a repair that will not come."""
        if self._kept_back:
            self.commit("")

    def _write_kept_back(self) -> None:
        self.frame_output.write_text(self._kept_back)
        self.frame_renderer.rows_above += self._kept_back.count("\n")
        self._kept_back = ""

    def repaint_screen(self, transcript: str) -> None:
        """Replace the visible screen by the end of the transcript and the live region."""
        with self.frame_output.frame(wraps=True):
            self.frame_output.erase_screen()
            self.renderer.reset()
            self.frame_output.write_text(transcript)
            self.frame_renderer.rows_above = transcript.count("\n")
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
        with self.frame_output.frame(wraps=True):
            self.renderer.reset()
            # Whoever had the terminal may have cleared it.
            self.frame_renderer.rows_above = 0
            self._update_paintable()
            self.frame_output.write_text("\r")
            self._modes.take()
            if self.may_paint():
                self._write_kept_back()
            self._redraw()
        self.on_repainted()

    def _redraw(self, render_as_done: bool = False) -> None:
        if not render_as_done and not self.may_paint():
            return
        started = time.thread_time()
        super()._redraw(render_as_done)
        self.paint_seconds = time.thread_time() - started

    def _on_resize(self) -> None:
        if self._resize is None:
            self._resize = ResizeDebounce(self.call_later, self._repair)
        self._resize.changed()
        self._update_paintable()

    def _repair(self) -> None:
        if not self.is_running:
            return
        painted = self.frame_renderer.painted_size
        with self.frame_output.frame(wraps=True):
            if not self.held:
                if painted is not None and painted != self.size:
                    self.frame_renderer.erase_after_resize(self.size.columns)
                elif self._kept_back:
                    self.renderer.erase()
                self._write_kept_back()
            self._update_paintable()
            self._redraw()
        self.on_repainted()

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
