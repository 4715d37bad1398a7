"""The live terminal: one application, one writer, for the whole session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from midturn_cli.terminal.ask_panel import TerminalAskHandler
from midturn_cli.terminal.notices import describe
from midturn_cli.terminal.options import TerminalOptions
from midturn_cli.terminal.parts import TerminalParts
from midturn_cli.terminal.short_turns import short_turns_for_threads
from midturn_cli.terminal.signals import EXIT_HANGUP, handled_signals
from midturn_cli.terminal.streams import redirected_streams
from midturn_cli.terminal.terminal_io import TerminalIO, open_terminal

if TYPE_CHECKING:
    from midturn_cli.ports import Presenter, SessionPort
    from midturn_cli.ui_events import UiEvent

EXIT_FAILED = 1


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
        self._parts = TerminalParts(session, presenter_factory, options, self._io)
        self._screen, self._writer = self._parts.screen, self._parts.writer
        self._failure: BaseException | None = None

    @property
    def ask_handler(self) -> TerminalAskHandler:
        """For the gate: asks the person at this terminal."""
        return self._parts.ask

    @property
    def draft(self) -> str:
        """What stands in the input line, pastes expanded."""
        return self._parts.draft.text

    @property
    def stash(self) -> str:
        """The draft that was put aside, pastes expanded; empty for none."""
        return self._parts.draft.stashed

    @property
    def failure(self) -> BaseException | None:
        """Why ``run`` returned ``EXIT_FAILED``; None when it did not."""
        return self._failure

    def set_draft(self, text: str) -> None:
        """Put text back into the input line, before what has been typed since."""
        self._parts.draft.put_back(text)
        self._parts.app.invalidate()

    def edit_row(self, uuid: str) -> None:
        """Bring an input that waits into the input line, once the line is free."""
        asyncio.get_running_loop().call_soon(self._parts.rows.start_at, uuid)

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
                stack.enter_context(
                    redirected_streams(self._parts.notices.info, self._parts.notices.warn)
                )
                stack.enter_context(short_turns_for_threads())
                stack.enter_context(handled_signals(self._screen.signal_handlers))
                code = await self._run_application()
                await self._options.before_last_paint()
                if self._failure is not None:
                    return EXIT_FAILED
                self._writer.flush()
            return code
        finally:
            self._parts.modes.give_back()
            self._io.output.flush()
            loop.set_exception_handler(handler_before)
            if self._io.tty is not None:
                self._io.tty.restore()

    async def _run_application(self) -> int:
        self._io.output.write_raw("\r")
        application = asyncio.create_task(
            self._parts.app.run_async(
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
            self._parts.modes.give_back()
            self._io.output.flush()
            self._parts.attention.close()
            await self._parts.notifier.close()

    async def _write(self) -> None:
        await self._parts.painted.wait()
        self._parts.modes.take()
        if self._options.title:
            self._parts.attention.show()
        self._io.output.flush()
        await self._writer.run()

    def _loop_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        what = describe(error) if isinstance(error, BaseException) else context.get("message")
        self._parts.notices.error(f"Something went wrong inside Midturn ({what}).")
