"""The live terminal: one application, one writer, for the whole session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition

from midturn_cli.key_labels import key_label
from midturn_cli.terminal.ask_panel import PanelContext, TerminalAskHandler
from midturn_cli.terminal.attention import Attention, AttentionParts
from midturn_cli.terminal.completion import InputCompleter, wants_completion
from midturn_cli.terminal.controls import ControlParts, Controls
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.file_index import FileIndex
from midturn_cli.terminal.frame_application import ApplicationParts, FrameApplication
from midturn_cli.terminal.history import InputHistory
from midturn_cli.terminal.keys import Focuses, build_bindings
from midturn_cli.terminal.layout import STYLE, RegionModel, build_region
from midturn_cli.terminal.modes import TerminalModes, WantedModes
from midturn_cli.terminal.notices import Notices, describe
from midturn_cli.terminal.notifier import Notifier, NotifyOptions
from midturn_cli.terminal.picture_shelf import PictureShelf
from midturn_cli.terminal.region_rows import RegionTexts
from midturn_cli.terminal.screen import Hint, Screen, ScreenParts
from midturn_cli.terminal.short_turns import short_turns_for_threads
from midturn_cli.terminal.signals import EXIT_HANGUP, handled_signals
from midturn_cli.terminal.streams import redirected_streams
from midturn_cli.terminal.terminal_io import TerminalIO, open_terminal
from midturn_cli.terminal.vi_mode import vi_mode_word
from midturn_cli.terminal.writer import Writer, WriterHooks

if TYPE_CHECKING:
    from midturn_cli.ports import Presenter, SessionPort
    from midturn_cli.ui_events import UiEvent
    from midturn_core.config import KeysConfig, QueueConfig

EXIT_FAILED = 1


def _do_nothing() -> None:
    pass


async def _wait_for_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class TerminalOptions:
    """How the terminal behaves."""

    workspace: Path
    key_map: KeysConfig
    queue: QueueConfig
    """What Enter means while busy, and when each tier is delivered."""
    history_path: Path | None = None
    """None keeps the input history in memory."""
    keys: Literal["emacs", "vi"] = "emacs"
    notify: NotifyOptions = NotifyOptions()
    title: bool = False
    """Show the state in the window's title."""
    stash: str = ""
    """A draft that an earlier session put aside."""
    after_first_paint: Callable[[], None] = _do_nothing
    """Called once, when the input line takes keys and the presenter exists."""
    before_last_paint: Callable[[], Awaitable[None]] = _wait_for_nothing
    """Awaited when the input line is gone; what it emits still becomes part of the transcript."""
    clock: Callable[[], float] = time.monotonic


class TerminalFrontEnd:
    """Owns the application, the writer and the signals of an interactive session."""

    def __init__(
        self,
        session: SessionPort,
        presenter_factory: Callable[[], Presenter],
        options: TerminalOptions,
        io: TerminalIO | None = None,
    ) -> None:
        self._io = io or open_terminal()
        self._options = options
        self._notices = Notices(self.emit)
        self._hint = Hint()
        wanted = WantedModes(options.notify.way != "off", options.title)
        self._modes = TerminalModes(self._io.output, wanted)
        self._notifier = Notifier(self._io.output, options.notify, self._notices.warn)
        self._attention = Attention(self._attention_parts())
        self._painted = asyncio.Event()
        self._failure: BaseException | None = None
        self._reason = Buffer(name="reason", multiline=False)
        self._draft = Draft(
            self._input_buffer(session),
            options.queue,
            PictureShelf(options.workspace, self._notices.warn),
        )
        self._draft.stash(options.stash)
        self._ask = TerminalAskHandler(self._panel_context())
        self._model = self._region_model(session)
        self._region = build_region(self._model)
        self._app = self._application()
        self._screen = Screen(
            ScreenParts(
                app=self._app,
                model=self._model,
                region=self._region,
                draft=self._draft,
                ask=self._ask,
                hint=self._hint,
                notices=self._notices,
                clock=options.clock,
            )
        )
        self._writer = Writer(
            self._screen,
            WriterHooks(
                presenter_factory,
                self._presenter_ready,
                self._notices.error,
                self._attention.observe,
            ),
        )
        self._bind_keys(session)

    @property
    def ask_handler(self) -> TerminalAskHandler:
        """For the gate: asks the person at this terminal."""
        return self._ask

    @property
    def draft(self) -> str:
        """What stands in the input line, pastes expanded."""
        return self._draft.text

    @property
    def stash(self) -> str:
        """The draft that was put aside, pastes expanded; empty for none."""
        return self._draft.stashed

    @property
    def failure(self) -> BaseException | None:
        """Why ``run`` returned ``EXIT_FAILED``; None when it did not."""
        return self._failure

    def set_draft(self, text: str) -> None:
        """Put text back into the input line, before what has been typed since."""
        self._draft.put_back(text)
        self._app.invalidate()

    def emit(self, event: UiEvent) -> None:
        """Show an event; safe on any thread."""
        self._writer.put(event)

    def request_exit(self, code: int) -> None:
        """Leave with this exit code; on the loop's thread. The first request counts."""
        self._screen.exit(code)

    async def run(self) -> int:
        """Take keys until the session is left; the exit code. The terminal is as before then."""
        loop = asyncio.get_running_loop()
        handler_before = loop.get_exception_handler()
        loop.set_exception_handler(self._loop_exception)
        self._io.output.on_lost = lambda: self._screen.exit(EXIT_HANGUP)
        try:
            with ExitStack() as stack:
                stack.enter_context(redirected_streams(self._notices.info, self._notices.warn))
                stack.enter_context(short_turns_for_threads())
                stack.enter_context(handled_signals(self._screen.signal_handlers))
                code = await self._run_application()
                await self._options.before_last_paint()
                if self._failure is not None:
                    return EXIT_FAILED
                self._writer.flush()
            return code
        finally:
            self._modes.give_back()
            self._io.output.flush()
            loop.set_exception_handler(handler_before)
            if self._io.tty is not None:
                self._io.tty.restore()

    async def _run_application(self) -> int:
        self._io.output.write_raw("\r")
        application = asyncio.create_task(
            self._app.run_async(
                pre_run=self._screen.leave_if_asked_soon, set_exception_handler=False
            )
        )
        writer = asyncio.create_task(self._write())
        try:
            await asyncio.wait({application, writer}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done() and not writer.cancelled():
                # Without the writer the screen would freeze: the session ends instead.
                self._failure = writer.exception()
                self._screen.exit(EXIT_FAILED)
            return await application
        except EOFError:
            return EXIT_HANGUP
        finally:
            for task in (writer, application):
                task.cancel()
            await asyncio.gather(writer, application, return_exceptions=True)
            # At once: the reports of a terminal in line mode would be echoed.
            self._modes.give_back()
            self._io.output.flush()
            self._attention.close()
            await self._notifier.close()

    async def _write(self) -> None:
        await self._painted.wait()
        self._modes.take()
        if self._options.title:
            self._attention.show()
        self._io.output.flush()
        await self._writer.run()

    def _presenter_ready(self) -> None:
        presenter = self._writer.presenter
        if presenter is not None:
            self._screen.recent = presenter.recent
        self._options.after_first_paint()

    def _loop_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        what = describe(error) if isinstance(error, BaseException) else context.get("message")
        self._notices.error(f"Something went wrong inside Midturn ({what}).")

    def _input_buffer(self, session: SessionPort) -> Buffer:
        files = FileIndex(self._options.workspace)
        completer = InputCompleter(session.commands, files, lambda: self._draft.starts_pasted)
        return Buffer(
            name="input",
            multiline=True,
            history=InputHistory(self._options.history_path, self._notices.warn),
            completer=completer,
            complete_while_typing=Condition(lambda: wants_completion(self._draft.buffer.document)),
            on_text_changed=self._draft_changed,
        )

    def _draft_changed(self, _: Buffer) -> None:
        if self._ask.open:
            # Whether a question waits or wants Tab depends on the draft.
            self._writer.wake()

    def _panel_context(self) -> PanelContext:
        return PanelContext(
            clock=self._options.clock,
            call_later=lambda delay, callback: self._app.call_later(delay, callback),
            draft_empty=lambda: self._draft.empty,
            changed=lambda: self._writer.wake(),
            repaint=lambda: self._app.invalidate(),
            closed=lambda: self._screen.focus_reason(False),
        )

    def _attention_parts(self) -> AttentionParts:
        return AttentionParts(
            workspace=str(self._options.workspace),
            set_title=self._modes.set_title,
            notify=self._notifier.send,
            held=lambda: self._app.held,
            call_later=lambda delay, callback: self._app.call_later(delay, callback),
        )

    def _region_model(self, session: SessionPort) -> RegionModel:
        return RegionModel(
            texts=RegionTexts(),
            draft=self._draft,
            reason=self._reason,
            size=self._io.output.get_size,
            busy=lambda: session.busy,
            reasoning=lambda: self._ask.reasoning,
            draft_has_keys=lambda: not (self._ask.focused or self._ask.reasoning),
            hint=lambda: self._hint.text,
            vi_mode=lambda: vi_mode_word(self._app),
            stash_key=", ".join(map(key_label, self._options.key_map.stash[:1])),
        )

    def _application(self) -> FrameApplication:
        vi = self._options.keys == "vi"
        app = FrameApplication(
            ApplicationParts(
                layout=self._region.layout,
                style=STYLE,
                editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
                input=self._io.input,
                output=self._io.output,
                modes=self._modes,
                rewrap=self._io.rewrap,
            )
        )
        app.after_render += self._after_render
        return app

    def _after_render(self, _: object) -> None:
        self._painted.set()
        if self._model.texts.asking:
            self._ask.painted()

    def _bind_keys(self, session: SessionPort) -> None:
        controls = Controls(
            ControlParts(
                draft=self._draft,
                ask=self._ask,
                reason=self._reason,
                session=session,
                terminal=self._screen,
                warn=self._notices.warn,
                clock=self._options.clock,
                call_later=self._app.call_later,
                focus_reported=self._attention.focus_reported,
            )
        )
        windows = Focuses(self._region.input_window, self._region.reason_window)
        self._app.key_bindings = build_bindings(
            controls, windows, self._options.key_map, self._notices.error
        )
        self._app.on_key_handled = controls.key_handled
