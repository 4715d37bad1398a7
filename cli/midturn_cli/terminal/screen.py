"""The terminal as the writer and the keys see it: painting, lending, stopping, leaving."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prompt_toolkit.search import stop_search

from midturn_cli.terminal.ask_panel import TerminalAskHandler
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.editor import EditorError, edit, editor_command
from midturn_cli.terminal.frame_application import FrameApplication
from midturn_cli.terminal.layout import Region, RegionModel, region_rows
from midturn_cli.terminal.notices import Notices
from midturn_cli.terminal.signals import SignalHandlers, stop_process_group
from midturn_cli.terminal.timers import Timer

if TYPE_CHECKING:
    from midturn_cli.ports import LiveRegion, Presenter


@dataclass(slots=True)
class Hint:
    """A short-lived text in place of the status row."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class ScreenParts:
    app: FrameApplication
    model: RegionModel
    region: Region
    draft: Draft
    ask: TerminalAskHandler
    hint: Hint
    notices: Notices
    clock: Callable[[], float]


class Screen:
    """Wraps the application for the writer (``PaintTarget``) and the keys (``TerminalPort``)."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts
        self._app = parts.app
        self._exit_code: int | None = None
        self._hint_timer: Timer | None = None
        self.recent: Callable[[int, int], str] = _nothing
        """The last rows of the transcript, to repaint a cleared screen."""
        self.signal_handlers = SignalHandlers(self.exit, self.suspend, self._resumed)

    # For the writer

    @property
    def columns(self) -> int:
        return self._app.size.columns

    @property
    def rows(self) -> int:
        return self._app.size.rows

    async def wait_paintable(self) -> None:
        await self._app.paintable.wait()

    def may_paint(self) -> bool:
        return self._app.may_paint()

    @property
    def paint_seconds(self) -> float:
        return self._app.paint_seconds

    def commit(self, text: str) -> float:
        self._app.commit(text)
        return self._app.frame_output.last_write_seconds

    def finish(self) -> None:
        self._app.finish()

    def invalidate(self) -> None:
        self._app.invalidate()

    def fill_clipboard(self, text: str) -> None:
        self._app.frame_output.fill_clipboard(text)

    def look(self, presenter: Presenter) -> LiveRegion:
        return presenter.live(
            self.columns,
            self._parts.region.room,
            self._parts.clock(),
            keyboard=self._parts.ask.keyboard,
            rows_above=self._app.frame_renderer.rows_above,
        )

    def show(self, region: LiveRegion) -> None:
        self._parts.model.texts.take(region)

    # For the keys

    @property
    def held(self) -> bool:
        return self._app.held

    def exit(self, code: int) -> None:
        """End the application; the first code counts."""
        if self._exit_code is None:
            self._exit_code = code
            self._leave()

    def leave_if_asked_soon(self) -> None:
        """The application starts: the exit may have been asked for before."""
        if self._exit_code is not None:
            self._app.call_later(0, self._leave)

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(result=self._exit_code or 0)

    def suspend(self) -> None:
        """Stop the process group, as Ctrl-Z does; paint anew when it goes on."""
        if self.held:
            stop_process_group(self.signal_handlers)
            return
        with self._app.lent_terminal():
            stop_process_group(self.signal_handlers)

    def repaint_screen(self) -> None:
        rows = self.rows - region_rows(self.rows)
        self._app.repaint_screen(self.recent(self.columns, max(1, rows)))

    def start_editor(self) -> None:
        self._app.create_background_task(self._edit())

    def leave_search(self) -> bool:
        if not self._app.layout.is_searching:
            return False
        stop_search()
        return True

    def focus_reason(self, reasoning: bool) -> None:
        region = self._parts.region
        self._app.layout.focus(region.reason_window if reasoning else region.input_window)

    def show_hint(self, text: str, seconds: float) -> None:
        if self._hint_timer is not None:
            self._hint_timer.cancel()
        self._parts.hint.text = text
        self.invalidate()
        self._hint_timer = self._app.call_later(seconds, self._hide_hint)

    def _hide_hint(self) -> None:
        self._hint_timer = None
        self._parts.hint.text = ""
        self.invalidate()

    def _resumed(self) -> None:
        if not self.held:
            # Whoever had the terminal meanwhile may have left it in line mode.
            self._app.input.raw_mode().__enter__()
            self._app.take_back()

    async def _edit(self) -> None:
        draft = self._parts.draft
        try:
            command = editor_command(os.environ)
            with self._app.lent_terminal():
                before = draft.text
                text = await edit(before, command)
            if text != before:
                draft.replace_edited(text)
        except EditorError as error:
            self._parts.notices.error(str(error))
        self.invalidate()


def _nothing(columns: int, rows: int) -> str:
    return ""
