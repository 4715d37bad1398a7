"""Modes that the terminal has only while the application holds it.

Focus reports, the title, and line feeds that stay what they are: otherwise the kernel hands each
row of a frame to the terminal by itself, which then may paint one that is not whole.
"""

from __future__ import annotations

import termios
from dataclasses import dataclass
from typing import Protocol

FOCUS_REPORTS_ON, FOCUS_REPORTS_OFF = "\x1b[?1004h", "\x1b[?1004l"
FOCUS_GAINED, FOCUS_LOST = "\x1b[I", "\x1b[O"
TITLE_KEPT, TITLE_BACK = "\x1b[22;0t", "\x1b[23;0t"
"""The terminal puts its title on a stack, and takes it from there."""
_OFLAG = 1


class RawOutput(Protocol):
    def write_raw(self, data: str) -> None: ...

    def flush(self) -> None: ...

    def fileno(self) -> int:
        """
        Raises:
            OSError: there is no file behind it.
        """
        ...


@dataclass(frozen=True, slots=True)
class WantedModes:
    focus_reports: bool = False
    title: bool = False


class TerminalModes:
    """Sets what is wanted, and takes it back whenever the terminal goes into other hands."""

    def __init__(self, output: RawOutput, wanted: WantedModes) -> None:
        self._output = output
        self._wanted = wanted
        self._taken = False
        self._title = ""
        self._adds_returns = False
        """The kernel put a carriage return before each line feed, and shall do so again."""

    def take(self) -> None:
        """The terminal is ours, perhaps again after somebody else had it without a word."""
        if self._wanted.focus_reports:
            self._output.write_raw(FOCUS_REPORTS_ON)
        if self._wanted.title:
            if not self._taken:
                self._output.write_raw(TITLE_KEPT)
            self._write_title()
        self._adds_returns |= self._add_returns(False)
        self._taken = True

    def give_back(self) -> None:
        """Everything as before; does nothing when it is."""
        if not self._taken:
            return
        self._taken = False
        if self._wanted.focus_reports:
            self._output.write_raw(FOCUS_REPORTS_OFF)
        if self._wanted.title:
            self._output.write_raw(TITLE_BACK)
        if self._adds_returns:
            self._adds_returns = False
            self._add_returns(True)

    def set_title(self, text: str) -> None:
        """``text`` is clean and on one line."""
        if self._wanted.title and text != self._title:
            self._title = text
            if self._taken:
                self._write_title()
                self._output.flush()

    def _write_title(self) -> None:
        if self._title:
            self._output.write_raw(f"\x1b]2;{self._title}\x1b\\")

    def _add_returns(self, wanted: bool) -> bool:
        """Have the kernel add them, or not; whether it did before."""
        try:
            fd = self._output.fileno()
            modes = termios.tcgetattr(fd)
            before = bool(modes[_OFLAG] & termios.ONLCR)
            modes[_OFLAG] = modes[_OFLAG] & ~termios.ONLCR | (termios.ONLCR if wanted else 0)
            termios.tcsetattr(fd, termios.TCSANOW, modes)
        except (OSError, ValueError, termios.error):
            # No terminal, or no longer one.
            return False
        return before
