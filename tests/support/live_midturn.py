"""The real ``midturn`` in a real terminal, against the scripted Messages API.

    with MessagesServer(Reply(Says("Hello."))) as server, live_midturn(server, tmp_path) as live:
        live.enter("hi")
        live.see("Hello.")

The suite's ``home`` fixture gives each test an empty home folder; the workspace is the test's own.
Every wait ends by what is on the screen, with a generous deadline; none sleeps.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte

from tests.support.messages_script import DEADLINE
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.pty_harness import PASTE_END, PASTE_START, SYNC_OFF, SYNC_ON, PtySession
from tests.support.terminal_screen import (
    Rendered,
    Screen,
    resize_like_xterm,
    split_unfinished,
    without_noise,
)

COMMAND = (sys.executable, "-m", "midturn_cli.main")
GLYPH = "›"
"""Stands before the draft whenever the input line takes keys."""

_SEEN_TAIL = 20
"""Characters of a typed text that are looked for in the input line."""

_TAB_TIERS = ("NOW", "LATER")
"""The tiers in the order in which Tab goes through them, from NEXT."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the command is started. ``config`` is the text of the user's configuration file."""

    arguments: Sequence[str] = ()
    config: str = ""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    cols: int = 100
    rows: int = 40
    command: Sequence[str] = COMMAND
    read_rate: int | None = None
    """Bytes per second that the terminal takes; None for no limit."""
    cpr: str = "bottom"
    """How the terminal answers when it is asked for its cursor; "none" for not at all."""


class LiveMidturn(PtySession):
    """``midturn`` on a pseudo-terminal: what a person does to it, and what a person sees of it."""

    def __init__(self, workspace: Path, start: Start, environ: Mapping[str, str]) -> None:
        self.workspace = workspace
        self._screen = Screen(start.cols, start.rows)
        self._stream = pyte.ByteStream(self._screen)
        self._carry = b""
        self._fed = 0
        self._resizes_applied = 1
        super().__init__(
            [*start.command, *start.arguments],
            cols=start.cols,
            rows=start.rows,
            env=dict(environ),
            cwd=str(workspace),
            read_rate=start.read_rate,
            cpr=start.cpr,
        )

    def type(self, text: str) -> None:
        """Type into the draft, without Enter, and wait until it stands there."""
        self.send(text)
        self.see_draft(text)

    def see_draft(self, text: str) -> Rendered:
        """Wait until the input line ends with this text, wherever it wraps."""
        return self.see(_in_draft(text))

    def enter(self, text: str) -> None:
        """Type a line, end it with Enter, and wait until the input line is free again."""
        self.type(text)
        self.key("enter")
        self.see_not(_in_draft(text))

    def enter_as(self, tier: str, text: str) -> None:
        """Type a line while a turn runs, choose its tier with Tab, and enter it."""
        self.type(text)
        for shown in _TAB_TIERS[: _TAB_TIERS.index(tier) + 1]:
            self.key("tab")
            self.see(rf"^{shown} .*{GLYPH}")
        self.key("enter")
        self.see_not(_in_draft(text))

    def enter_pasted(self, text: str) -> None:
        """The same with a bracketed paste."""
        self.send(f"{PASTE_START}{text}{PASTE_END}")
        self.see(_in_draft(text))
        self.key("enter")
        self.see_not(_in_draft(text))

    def see(self, pattern: str) -> Rendered:
        """Wait until the visible screen matches, ``^`` and ``$`` at its rows."""
        return self._until(
            f"the screen shows {pattern!r}",
            lambda shown: re.search(pattern, "\n".join(shown.screen), re.M) is not None,
        )

    def see_not(self, pattern: str) -> Rendered:
        """Wait until the visible screen does not match."""
        return self._until(
            f"the screen no longer shows {pattern!r}",
            lambda shown: re.search(pattern, "\n".join(shown.screen), re.M) is None,
        )

    def see_anywhere(self, pattern: str) -> Rendered:
        """Wait until scrollback or screen match."""
        return self._until(
            f"the terminal has shown {pattern!r}",
            lambda shown: re.search(pattern, shown.text, re.M) is not None,
        )

    def see_times(self, text: str, count: int) -> Rendered:
        """Wait until scrollback and screen hold a text so many times."""
        return self._until(
            f"the terminal has shown {text!r} {count} times",
            lambda shown: shown.text.count(text) >= count,
        )

    def see_nothing_waiting(self) -> Rendered:
        """Wait until the status row counts no queued input."""
        return self.see_not(r" · queue \d")

    def see_idle(self) -> Rendered:
        """Wait until nothing runs: no spinner, and no tier before the glyph of the input line."""
        self.see_not(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ")
        return self.see(rf"^{GLYPH}")

    def shown(self) -> Rendered:
        """The terminal as it is now."""
        with self.log.changed:
            self._feed()
        return self._rendered()

    def resize(self, cols: int, rows: int) -> None:
        with self.log.changed:
            self._feed()
        super().resize(cols, rows)

    def _until(self, what: str, holds: Callable[[Rendered], bool]) -> Rendered:
        """Judge whole frames only; look again whenever something was written."""
        deadline = time.monotonic() + DEADLINE
        with self.log.changed:
            while True:
                self._feed()
                shown = self._rendered()
                if not self._inside_frame() and holds(shown):
                    return shown
                left = deadline - time.monotonic()
                if left <= 0 or self.log.closed:
                    why = "the command ended" if self.log.closed else f"{DEADLINE:g} s passed"
                    screen = "\n".join(shown.lines)
                    raise AssertionError(f"{why} before {what}; the terminal shows:\n{screen}")
                self.log.changed.wait(left)

    def _feed(self) -> None:
        """Bring the emulated screen up to date; the caller holds the log."""
        data = self.log.data
        for offset, cols, rows in self.log.resizes[self._resizes_applied :]:
            self._feed_bytes(bytes(data[self._fed : offset]))
            self._fed = max(self._fed, offset)
            resize_like_xterm(self._screen, cols, rows)
        self._resizes_applied = len(self.log.resizes)
        self._feed_bytes(bytes(data[self._fed :]))
        self._fed = len(data)

    def _feed_bytes(self, data: bytes) -> None:
        piece, self._carry = split_unfinished(self._carry + data)
        self._stream.feed(without_noise(piece))

    def _inside_frame(self) -> bool:
        return self.log.data.rfind(SYNC_ON) > self.log.data.rfind(SYNC_OFF)

    def _rendered(self) -> Rendered:
        screen = self._screen
        cursor = (screen.cursor.x, screen.cursor.y)
        return Rendered(list(screen.scrollback), screen.screen_text(), cursor)


def _in_draft(text: str) -> str:
    """The end of a typed text in the input line, wherever it wrapped."""
    letters = [re.escape(letter) for letter in text[-_SEEN_TAIL:] if not letter.isspace()]
    return rf"{GLYPH}(?:.*\n)*?.*" + r"\s*".join(letters)


@contextlib.contextmanager
def live_midturn(
    server: MessagesServer, workspace: Path, start: Start | None = None
) -> Generator[LiveMidturn]:
    """Start ``midturn`` in ``workspace`` and wait for its input line; it is ended at the end."""
    start = start or Start()
    if start.config:
        write_config(start.config)
    environ = midturn_environment(**{**server.environment(), **start.environ})
    with LiveMidturn(workspace, start, environ) as live:
        live.see(GLYPH)
        yield live


def write_config(text: str) -> Path:
    """The user's configuration file in the home folder of the test."""
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "midturn" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
