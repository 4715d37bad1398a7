"""The parts of a session at the terminal, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition

from midturn_cli.key_labels import key_label
from midturn_cli.terminal.ask_panel import PanelContext, TerminalAskHandler
from midturn_cli.terminal.attention import Attention, AttentionParts
from midturn_cli.terminal.clipboard_key import ClipboardKey, ClipboardKeyParts
from midturn_cli.terminal.completion import InputCompleter, file_token, wants_completion
from midturn_cli.terminal.controls import ControlParts, Controls
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.file_index import FileIndex
from midturn_cli.terminal.frame_application import ApplicationParts, FrameApplication
from midturn_cli.terminal.history import InputHistory
from midturn_cli.terminal.keys import Focuses, build_bindings
from midturn_cli.terminal.layout import STYLE, Region, RegionModel
from midturn_cli.terminal.modes import TerminalModes, WantedModes
from midturn_cli.terminal.notices import Notices
from midturn_cli.terminal.notifier import Notifier
from midturn_cli.terminal.options import TerminalOptions
from midturn_cli.terminal.picture_shelf import PictureShelf
from midturn_cli.terminal.region_rows import RegionTexts
from midturn_cli.terminal.row_editing import RowEditing, RowParts, row_hint
from midturn_cli.terminal.screen import Hint, Screen, ScreenParts
from midturn_cli.terminal.terminal_io import TerminalIO
from midturn_cli.terminal.vi_mode import vi_mode_word
from midturn_cli.terminal.writer import Writer, WriterHooks

if TYPE_CHECKING:
    from midturn_cli.ports import Presenter, SessionPort
    from midturn_cli.ui_events import UiEvent

HINT_SECONDS = 4.0
"""How long a sentence stands in place of the status row."""


class TerminalParts:
    """What a session at the terminal is made of, wired together."""

    def __init__(
        self,
        session: SessionPort,
        presenter_factory: Callable[[], Presenter],
        options: TerminalOptions,
        io: TerminalIO,
    ) -> None:
        self._io = io
        self._options = options
        self._hint = Hint()
        self._files = FileIndex(options.workspace)
        self._reason = Buffer(name="reason", multiline=False)
        self.painted = asyncio.Event()
        """The input line is on the screen."""
        self.notices = Notices(lambda event: self.writer.put(event))
        wanted = WantedModes(options.notify.way != "off", options.title)
        self.modes = TerminalModes(io.output, wanted)
        self.notifier = Notifier(io.output, options.notify, self.notices.warn)
        self.attention = Attention(self._attention_parts())
        self.draft = Draft(
            self._input_buffer(session),
            options.queue,
            PictureShelf(options.workspace, self.notices.warn),
        )
        self.draft.stash(options.stash)
        self.rows = RowEditing(self._row_parts(session))
        self.ask = TerminalAskHandler(self._panel_context())
        self._model = self._region_model(session)
        self._region = Region(self._model)
        self.app = self._application()
        self.screen = self._screen()
        self.writer = Writer(
            self.screen,
            WriterHooks(
                presenter_factory,
                self._presenter_ready,
                self.notices.error,
                self._observe,
            ),
        )
        self._bind_keys(session)

    def _screen(self) -> Screen:
        return Screen(
            ScreenParts(
                app=self.app,
                model=self._model,
                region=self._region,
                draft=self.draft,
                ask=self.ask,
                hint=self._hint,
                notices=self.notices,
                clock=self._options.clock,
            )
        )

    def _observe(self, event: UiEvent) -> None:
        # Imported with the first event, which comes after the first paint.
        from midturn_cli.ui_events import QueueChanged

        self.attention.observe(event)
        if isinstance(event, QueueChanged):
            self.rows.rows_changed()

    def _presenter_ready(self) -> None:
        presenter = self.writer.presenter
        if presenter is not None:
            self.screen.recent = presenter.recent
        self._options.after_first_paint()

    def _input_buffer(self, session: SessionPort) -> Buffer:
        completer = InputCompleter(
            session.commands,
            self._files,
            lambda: self.draft.starts_pasted,
            lambda: self.app.invalidate(),
        )
        return Buffer(
            name="input",
            multiline=True,
            history=InputHistory(self._options.history_path, self.notices.warn),
            completer=completer,
            complete_while_typing=Condition(lambda: wants_completion(self.draft.buffer.document)),
            on_text_changed=self._draft_changed,
        )

    def _draft_changed(self, buffer: Buffer) -> None:
        self._options.draft_changed(buffer.text)
        if self.ask.open:
            # Whether a question waits or wants Tab depends on the draft.
            self.writer.wake()

    def _panel_context(self) -> PanelContext:
        return PanelContext(
            clock=self._options.clock,
            call_later=lambda delay, callback: self.app.call_later(delay, callback),
            # A row whose text was deleted is no empty line: nothing is answered by accident there.
            draft_empty=lambda: self.draft.empty and not self.rows.active,
            changed=lambda: self.writer.wake(),
            repaint=lambda: self.app.invalidate(),
            closed=lambda: self.screen.focus_reason(False),
        )

    def _row_parts(self, session: SessionPort) -> RowParts:
        return RowParts(
            draft=self.draft,
            queue=lambda: session.queue,
            tell=lambda text: self.screen.show_hint(text, HINT_SECONDS),
            warn=self.notices.warn,
            clock=self._options.clock,
            changed=lambda: self.app.invalidate(),
        )

    def _clipboard_parts(self, session: SessionPort) -> ClipboardKeyParts:
        return ClipboardKeyParts(
            draft=self.draft,
            session=session,
            warn=self.notices.warn,
            hint=self.screen.show_hint,
            call_later=self.app.call_later,
            start=self.app.create_background_task,
            changed=self.app.invalidate,
        )

    def _attention_parts(self) -> AttentionParts:
        return AttentionParts(
            workspace=str(self._options.workspace),
            set_title=self.modes.set_title,
            notify=self.notifier.send,
            held=lambda: self.app.held,
            call_later=lambda delay, callback: self.app.call_later(delay, callback),
        )

    def _region_model(self, session: SessionPort) -> RegionModel:
        return RegionModel(
            texts=RegionTexts(),
            draft=self.draft,
            reason=self._reason,
            size=self._io.output.get_size,
            busy=lambda: session.busy,
            asking=lambda: self.ask.waiting,
            reasoning=lambda: self.ask.reasoning,
            draft_has_keys=lambda: not (self.ask.focused or self.ask.reasoning),
            hint=self._hint_text,
            row_tier=lambda: self.rows.tier,
            vi_mode=lambda: vi_mode_word(self.app),
            stash_key=", ".join(map(key_label, self._options.key_map.stash[:1])),
        )

    def _hint_text(self) -> str:
        before = self.draft.buffer.document.text_before_cursor
        waits = self._files.begun and file_token(before) is not None
        if self._hint.text or waits:
            return self._hint.text or "Gathering the files of the folder…"
        columns = self._io.output.get_size().columns
        return row_hint(self._options.key_map, columns) if self.rows.active else ""

    def _application(self) -> FrameApplication:
        vi = self._options.keys == "vi"
        app = FrameApplication(
            ApplicationParts(
                layout=self._region.layout,
                style=STYLE,
                editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
                input=self._io.input,
                output=self._io.output,
                modes=self.modes,
                rewrap=self._io.rewrap,
            )
        )
        app.before_render += self._before_render
        app.after_render += self._after_render
        app.on_repainted = lambda: self.writer.wake()
        return app

    def _before_render(self, _: object) -> None:
        if self._region.measure():
            self.writer.wake()

    def _after_render(self, _: object) -> None:
        self.painted.set()
        if self._model.texts.asking:
            self.ask.painted(rule_shown=self._model.texts.rule_shown)

    def _bind_keys(self, session: SessionPort) -> None:
        controls = Controls(
            ControlParts(
                draft=self.draft,
                rows=self.rows,
                ask=self.ask,
                reason=self._reason,
                session=session,
                terminal=self.screen,
                clipboard=ClipboardKey(self._clipboard_parts(session)),
                warn=self.notices.warn,
                clock=self._options.clock,
                call_later=self.app.call_later,
                focus_reported=self.attention.focus_reported,
            )
        )
        windows = Focuses(self._region.input_window, self._region.reason_window)
        self.app.key_bindings = build_bindings(
            controls, windows, self._options.key_map, self.notices.error
        )
        self.app.on_key_handled = controls.key_handled
