"""Plain mode: lines in, lines out, no escape codes; for pipes, dumb terminals and ``--plain``.

From a terminal a line can be entered at any time, as in the live REPL. From a pipe the next line
is read when the one before is done, and nobody can be asked anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from midturn_cli.engine import FrontEnd
from midturn_cli.goodbye import what_is_kept
from midturn_cli.launch import Launch, SessionStart
from midturn_cli.render.clean import beginning
from midturn_cli.render.plain import PlainPresenter, ask_keys
from midturn_cli.session import InteractiveSession
from midturn_cli.ui_events import UiEvent
from midturn_core.events import TurnEndReason
from midturn_core.permission.ask import (
    Ask,
    AskAnswer,
    AskHandler,
    AskReply,
    DenyingAskHandler,
)

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
ANSWERS = {
    "y": AskAnswer.ONCE,
    "t": AskAnswer.TURN,
    "s": AskAnswer.SESSION,
    "a": AskAnswer.ALWAYS,
    "n": AskAnswer.NO,
}
FAILED = (TurnEndReason.FAILED, TurnEndReason.STALLED, TurnEndReason.REFUSED)


def run(launch: Launch) -> int:
    """Run plain mode to the end of its input; returns the exit code.

    Raises:
        MidturnError: the session cannot be opened.
    """
    following: Launch | None = launch
    code = 0
    while following is not None:
        plain = _Plain(following)
        code = asyncio.run(plain.run())
        following = plain.next
    return code


class LineAskHandler:
    """Asks by a line of text and takes the next line as the answer (D40)."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._open: asyncio.Future[AskReply] | None = None
        self._ask: Ask | None = None

    @property
    def open(self) -> bool:
        return self._open is not None

    async def resolve(self, ask: Ask) -> AskReply:
        self._open = asyncio.get_running_loop().create_future()
        self._ask = ask
        try:
            return await self._open
        finally:
            self._open = self._ask = None

    def answer(self, line: str) -> None:
        """Take a line as the answer; anything else than an answer asks again."""
        word, _, reason = line.strip().partition(" ")
        if self._open is None or self._ask is None or self._open.done():
            return
        if word in ANSWERS and ANSWERS[word] in self._ask.offered:
            self._open.set_result(AskReply(ANSWERS[word]))
        elif word == "r":
            self._open.set_result(AskReply(AskAnswer.NO_WITH_REASON, reason.strip()))
        else:
            self._write(f"not an answer; answer {ask_keys(self._ask)}\n")


class _Plain:
    """One session in plain mode; a ``CommandHost``."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._interactive = sys.stdin.isatty()
        self._presenter = PlainPresenter(tells_end=self._interactive)
        self._leaving = asyncio.Event()
        self._code = 0
        self.next: Launch | None = None

    async def run(self) -> int:
        lines = LineAskHandler(_write)
        handler: AskHandler = lines if self._interactive else DenyingAskHandler()
        session = InteractiveSession(self._launch, FrontEnd(self._emit_any_thread(), handler), self)
        self._handle_signals(session)
        session.open()
        reading = asyncio.create_task(self._read(session, lines))
        leaving = asyncio.create_task(self._leaving.wait())
        await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, leaving):
            task.cancel()
        await asyncio.gather(reading, leaving, return_exceptions=True)
        undelivered = await session.close()
        for text in undelivered:
            _write(f"not sent: {beginning(text)}\n")
        if undelivered:
            for line in what_is_kept(len(undelivered), session.lost):
                _write(f"{line}\n")
        if self._interactive and self.next is None and not session.engine.session.log.empty:
            command = "midturn demo" if self._launch.demo else "midturn"
            _write(f"Go on with this session: {command} -r {session.engine.session.id}\n")
        last = session.controller.last_turn
        if self._code == 0 and not self._interactive and last and last.reason in FAILED:
            return 1
        return self._code

    def request_exit(self) -> None:
        self._leaving.set()

    def edit_row(self, uuid: str) -> bool:
        return False

    def reopen(self, session_id: str | None) -> None:
        kind = SessionStart.NEW if session_id is None else SessionStart.NAMED
        self.next = replace(self._launch, session=kind, session_id=session_id or "", prompt="")
        self.request_exit()

    async def _read(self, session: InteractiveSession, lines: LineAskHandler) -> None:
        if not self._interactive:
            await session.wait_idle()  # the first prompt of the command line
        while not self._leaving.is_set() and (line := await _next_line()) is not None:
            if lines.open:
                lines.answer(line)
            elif not line.strip():
                session.release_held()
            elif problem := self._submit(session, line):
                _write(f"{problem}\n")
            if not self._interactive:
                await session.wait_idle()
        await session.wait_idle()

    def _submit(self, session: InteractiveSession, line: str) -> str:
        if self._interactive:
            return session.submit_line(line)
        # What comes through a pipe may be anybody's text: an @ in it attaches nothing.
        return session.submit(line, None)

    def _emit_any_thread(self) -> Callable[[UiEvent], None]:
        loop = asyncio.get_running_loop()

        def emit(event: UiEvent) -> None:
            # The loop may be closed when a worker speaks last.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._show, event)

        return emit

    def _show(self, event: UiEvent) -> None:
        text = self._presenter.apply(event)
        if text:
            _write(text)

    def _handle_signals(self, session: InteractiveSession) -> None:
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if not session.interrupt():
                self._leave(EXIT_INTERRUPTED)

        # Windows has no signal handlers on its loop; Ctrl-C ends the program there.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
            loop.add_signal_handler(signal.SIGTERM, self._leave, EXIT_TERMINATED)

    def _leave(self, code: int) -> None:
        self._code = code
        self._leaving.set()


def _write(text: str) -> None:
    """Text to stdout; characters that its encoding lacks are replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))
    sys.stdout.flush()


async def _next_line() -> str | None:
    """The next line of the input without its end, or None at its end; never blocks the loop."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def deliver(text: str) -> None:
        if not line.done():
            line.set_result(text)

    def read() -> None:
        text = ""
        # A closed or broken input is its end; a closed loop has nobody to tell.
        with contextlib.suppress(OSError, ValueError):
            text = sys.stdin.readline()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, text)

    # A daemon: a read that waits for the user must not keep the program from ending.
    threading.Thread(target=read, name="plain-input", daemon=True).start()
    text = await line
    return text.rstrip("\n") if text else None
