"""The real terminal front end on a pipe for keys and a text buffer for frames."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from unittest.mock import patch

import pyte
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.output.color_depth import ColorDepth

from midturn_cli.terminal.app import TerminalFrontEnd
from midturn_cli.terminal.frame_output import FrameOutput
from midturn_cli.terminal.notifier import NotifyOptions
from midturn_cli.terminal.options import TerminalOptions
from midturn_cli.terminal.resize import Rewrap
from midturn_cli.terminal.terminal_io import TerminalIO
from midturn_core.config import KeysConfig, QueueConfig
from tests.support.fake_presenter import FakePresenter
from tests.support.fake_session import FakeSession
from tests.support.terminal_screen import Screen, without_noise

DEADLINE = 20.0


T = TypeVar("T")


async def within_deadline(awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(DEADLINE):
        return await awaitable


async def until(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds; fail after a generous deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "what was waited for never happened"
        await asyncio.sleep(0.005)


class RecordingStdout(io.StringIO):
    """Keeps each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str, /) -> int:
        self.writes.append(text)
        return len(text)


@dataclass(slots=True)
class FakeClock:
    """Seconds that pass only when a test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class TerminalSetup:
    """What a test wants to be different."""

    workspace: Path = Path("/nonexistent")
    history: Path | None = None
    keys: Literal["emacs", "vi"] = "emacs"
    key_map: KeysConfig = field(default_factory=KeysConfig)
    stash: str = ""
    notify: NotifyOptions = NotifyOptions()
    title: bool = False
    queue: QueueConfig = QueueConfig()
    columns: int = 80
    rows: int = 24
    rewrap: Rewrap = Rewrap.NEVER
    presenter: FakePresenter = field(default_factory=FakePresenter)
    factory: Callable[[], FakePresenter] | None = None


@dataclass(slots=True)
class LiveTerminal:
    """A running front end and everything around it."""

    front: TerminalFrontEnd
    session: FakeSession
    presenter: FakePresenter
    pipe: PipeInput
    stdout: RecordingStdout
    clock: FakeClock
    setup: TerminalSetup
    task: asyncio.Task[int]
    keys_read: list[KeyPress]

    async def press(self, key: str) -> None:
        """Type one key and wait until it has been handled; not for a lone Esc."""
        before = len(self.keys_read)
        self.send(key)
        await until(lambda: len(self.keys_read) > before)

    def send(self, keys: str) -> None:
        """Type ``keys`` in one piece."""
        self.pipe.send_text(keys)

    async def draft_is(self, text: str) -> None:
        await until(lambda: self.front.draft == text)

    async def submitted(self, *texts: str) -> None:
        await until(lambda: len(self.session.texts) >= len(texts))
        assert self.session.texts == list(texts)

    async def shows(self, text: str) -> None:
        await until(lambda: text in self.screen_text())

    def notices(self) -> str:
        return "\n".join(repr(event) for event in self.presenter.applied)

    def screen(self) -> Screen:
        """The screen as a terminal would show it."""
        screen = Screen(self.setup.columns, self.setup.rows)
        raw = "".join(self.stdout.writes).encode()
        pyte.ByteStream(screen).feed(without_noise(raw))
        return screen

    def screen_text(self) -> str:
        """Scrollback and screen."""
        screen = self.screen()
        return "\n".join([*screen.scrollback, *screen.screen_text()])


@asynccontextmanager
async def live_terminal(
    session: FakeSession | None = None, setup: TerminalSetup | None = None
) -> AsyncGenerator[LiveTerminal]:
    """Run a front end until the block ends; it has painted and has its presenter then."""
    session, setup = session or FakeSession(), setup or TerminalSetup()
    stdout, clock, ready = RecordingStdout(), FakeClock(), asyncio.Event()
    output = FrameOutput(
        stdout, lambda: Size(rows=setup.rows, columns=setup.columns), ColorDepth.DEPTH_1_BIT
    )
    options = TerminalOptions(
        workspace=setup.workspace,
        history_path=setup.history,
        keys=setup.keys,
        key_map=setup.key_map,
        stash=setup.stash,
        notify=setup.notify,
        title=setup.title,
        queue=setup.queue,
        after_first_paint=ready.set,
        clock=clock,
    )
    with create_pipe_input() as pipe, recorded_keys(pipe) as keys_read:
        io_parts = TerminalIO(pipe, output, setup.rewrap, None)
        front = TerminalFrontEnd(
            session, setup.factory or (lambda: setup.presenter), options, io_parts
        )
        task = asyncio.create_task(front.run())
        await until(lambda: ready.is_set() or task.done())
        yield LiveTerminal(
            front, session, setup.presenter, pipe, stdout, clock, setup, task, keys_read
        )
        front.request_exit(0)
        await within_deadline(task)


@contextmanager
def recorded_keys(pipe: PipeInput) -> Generator[list[KeyPress]]:
    """The keys that the application has taken from the pipe so far."""
    taken: list[KeyPress] = []
    read_keys = pipe.read_keys

    def recording() -> list[KeyPress]:
        keys = read_keys()
        taken.extend(keys)
        return keys

    with patch.object(pipe, "read_keys", recording):
        yield taken
