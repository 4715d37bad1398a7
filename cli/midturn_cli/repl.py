"""The interactive front end: the input line first, the engine behind it.

The input line takes keys before anything else is loaded; what is entered until the engine is there
is kept and handed to it in order.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from midturn_cli.launch import Launch, SessionStart
from midturn_cli.terminal.prepaint import TtyState, prepaint, read_tty
from midturn_core import paths

if TYPE_CHECKING:
    # Loaded after the first paint: together they take longer than all that comes before.
    from midturn_cli.ports import CommandInfo, KeptPicture, Presenter, QueuePort
    from midturn_cli.session import InteractiveSession
    from midturn_cli.terminal.app import TerminalFrontEnd
    from midturn_core.model.messages import ImageBlock
    from midturn_core.queue.types import QueuedInputPriority

EXIT_FAILED = 1
HISTORY_FILE = "history"
_NO_PROMPT = ("", "/", "!")
"""What a draft begins with that needs no model."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a session ended, and which one is to be opened next."""

    code: int
    undelivered: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """Those of them that no store has; the session offers the others again."""
    stash: str = ""
    """The draft that was put aside."""
    session_id: str = ""
    demo: bool = False
    reopen: Launch | None = None
    failure: BaseException | None = None
    """What made it end, to be raised once the terminal is as before."""


def run(launch: Launch) -> int:
    """Open the REPL; returns the exit code.

    Raises:
        MidturnError: the session cannot be opened.
        Exception: a defect of Midturn ended it.
    """
    if needs_plain(launch):
        from midturn_cli import plain_repl

        return plain_repl.run(launch)
    following: Launch | None = launch
    code, stash = 0, ""
    while following is not None:
        before = read_tty(sys.stdin.fileno())
        _leave_on_signals(before)
        try:
            ending = asyncio.run(_interactive(following, prepaint(), stash))
        finally:
            if before is not None:
                before.restore()
        _say_goodbye(ending)
        if ending.failure is not None:
            raise ending.failure
        code, following, stash = ending.code, ending.reopen, ending.stash
    return code


def _leave_on_signals(before: TtyState | None) -> None:
    """End at once when a signal comes before the application handles it: there is nothing to save
    yet, and an exception in the middle of building the event loop would leave half of it behind.
    """

    def leave(number: int, _: object) -> None:
        if before is not None:
            before.restore()
        os.write(1, b"\r\n")
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)


def needs_plain(launch: Launch) -> bool:
    """Whether this is no terminal for a live input line, or the user wants none."""
    term = os.environ.get("TERM", "")
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    return launch.config.ui.plain or not interactive or term in ("", "dumb")


async def _interactive(launch: Launch, tty: TtyState | None, stash: str) -> _Ending:
    from midturn_cli.terminal.app import TerminalFrontEnd
    from midturn_cli.terminal.notifier import NotifyOptions
    from midturn_cli.terminal.options import TerminalOptions
    from midturn_cli.terminal.terminal_io import open_terminal

    repl = _Repl(launch)
    config = launch.config
    front = TerminalFrontEnd(
        repl,
        lambda: _presenter(launch),
        TerminalOptions(
            workspace=launch.workspace,
            history_path=paths.state_folder(os.environ) / HISTORY_FILE,
            keys=config.ui.keys,
            key_map=config.keys,
            queue=config.queue,
            notify=NotifyOptions(
                config.ui.notify, config.ui.notify_command, in_tmux="TMUX" in os.environ
            ),
            title=config.ui.title,
            stash=stash,
            after_first_paint=repl.load,
            draft_changed=repl.draft_changed,
            before_last_paint=repl.close,
        ),
        open_terminal(tty),
    )
    repl.front = front
    code = await front.run()
    return repl.ending(code, front.failure)


@dataclass(frozen=True, slots=True)
class _EarlyLine:
    """What was entered before the engine was there."""

    text: str
    priority: QueuedInputPriority | None
    pasted: bool
    attachments: Sequence[ImageBlock]


class _Repl:
    """The session as the terminal sees it: a ``SessionPort`` that exists before the engine."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.front: TerminalFrontEnd | None = None
        self._session: InteractiveSession | None = None
        self._loading: asyncio.Task[None] | None = None
        self._loaded = asyncio.Event()
        self._writes_prompt = False
        self._early: list[_EarlyLine] = []
        self._undelivered: tuple[str, ...] = ()
        self._lost: tuple[str, ...] = ()
        self._failure: Exception | None = None
        self._next: Launch | None = None

    @property
    def busy(self) -> bool:
        return self._session is not None and self._session.busy

    @property
    def has_held(self) -> bool:
        return self._session is not None and self._session.has_held

    @property
    def queue(self) -> QueuePort | None:
        return self._session.queue if self._session is not None else None

    def commands(self) -> Sequence[CommandInfo]:
        return self._session.commands() if self._session is not None else ()

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None,
        *,
        pasted: bool = False,
        attachments: Sequence[ImageBlock] = (),
    ) -> str:
        if self._session is None:
            self._early.append(_EarlyLine(text, priority, pasted, attachments))
            return ""
        return self._session.submit(text, priority, pasted=pasted, attachments=attachments)

    async def clipboard_picture(self) -> KeptPicture | str:
        await self._loaded.wait()
        assert self._session is not None
        return await self._session.clipboard_picture()

    def interrupt(self) -> bool:
        return self._session is not None and self._session.interrupt()

    def cancel_awaited_call(self) -> bool:
        return self._session is not None and self._session.cancel_awaited_call()

    def release_held(self) -> bool:
        return self._session is not None and self._session.release_held()

    def request_exit(self) -> None:
        assert self.front is not None
        self.front.request_exit(0)

    def edit_row(self, uuid: str) -> bool:
        assert self.front is not None
        self.front.edit_row(uuid)
        return True

    def reopen(self, session_id: str | None) -> None:
        if session_id is None:
            start = replace(self._launch, session=SessionStart.NEW, session_id="", prompt="")
        else:
            start = replace(
                self._launch, session=SessionStart.NAMED, session_id=session_id, prompt=""
            )
        self._next = start
        self.request_exit()

    def load(self) -> None:
        """Build the engine now that the input line is there."""
        self._loading = asyncio.get_running_loop().create_task(self._load())

    def draft_changed(self, text: str) -> None:
        """Get the model ready while its prompt is still being written: that takes longer than typing a
        short one.
        """
        self._writes_prompt = self._writes_prompt or text[:1] not in _NO_PROMPT
        if self._session is not None and self._writes_prompt:
            self._session.engine.preload_model()

    async def _load(self) -> None:
        assert self.front is not None
        try:
            # The imports run beside the input line; only the wiring itself is on the loop.
            await asyncio.to_thread(_import_session)
            from midturn_cli.engine import FrontEnd
            from midturn_cli.session import InteractiveSession

            front = FrontEnd(
                self.front.emit, self.front.ask_handler, terminal_clipboard=True, live=True
            )
            self._session = InteractiveSession(self._launch, front, self)
            self._session.open()
            self._loaded.set()
            if self._writes_prompt:
                self._session.engine.preload_model()
        except Exception as error:
            # A wall: without an engine the input line would take lines for ever, for nobody.
            self._failure = error
            self.front.request_exit(EXIT_FAILED)
            return
        early, self._early = self._early, []
        for line in early:
            problem = self._session.submit(
                line.text, line.priority, pasted=line.pasted, attachments=line.attachments
            )
            if problem:
                self._session.engine.warn(problem)
                self.front.set_draft(line.text)

    async def close(self) -> None:
        """End what runs and let go of the engine."""
        if self._loading is not None:
            await asyncio.gather(self._loading, return_exceptions=True)
        early = [line.text for line in self._early]
        stash = self.front.stash if self.front is not None else ""
        waiting = await self._session.close(stash) if self._session is not None else []
        self._undelivered = (*early, *waiting)
        self._lost = (*early, *(self._session.lost if self._session is not None else ()))

    def ending(self, code: int, failure: BaseException | None) -> _Ending:
        """How it ended, once it is closed; ``failure`` is that of the screen."""
        session = self._session
        written = session is not None and not session.engine.session.log.empty
        return _Ending(
            code,
            self._undelivered,
            self._lost,
            self.front.stash if self.front is not None else "",
            session.engine.session.id if session is not None and written else "",
            self._launch.demo,
            self._next,
            self._failure or failure,
        )


def _import_session() -> None:
    importlib.import_module("midturn_cli.session")


def _presenter(launch: Launch) -> Presenter:
    from midturn_cli.render.choose import screen_presenter, shown_keys

    config = launch.config
    return screen_presenter(config.ui.theme, os.environ, shown_keys(config.keys))


def _say_goodbye(ending: _Ending) -> None:
    from midturn_cli.goodbye import what_is_kept
    from midturn_cli.render.clean import beginning, clean

    lines: list[str] = []
    if ending.undelivered:
        lines.append(f"{len(ending.undelivered)} queued input(s) were not sent:")
        lines += [f"  {beginning(text)}" for text in ending.undelivered]
        lines += what_is_kept(len(ending.undelivered), ending.lost)
    if ending.stash and ending.reopen is None:
        # Whole and on lines of its own: it is nowhere else, and has to be taken from here.
        lines += ["The stashed draft was not sent:", clean(ending.stash)]
    if ending.session_id and ending.reopen is None:
        command = "midturn demo" if ending.demo else "midturn"
        lines.append(f"Go on with this session: {command} -r {ending.session_id}")
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
