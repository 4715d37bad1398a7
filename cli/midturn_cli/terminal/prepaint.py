"""Showing the prompt before prompt_toolkit is loaded.

Imports nothing but the standard library's terminal calls, so that it can be the first thing a
start does. Keys typed meanwhile wait in the terminal and are read by the application.
"""

from __future__ import annotations

import contextlib
import os
import termios
from dataclasses import dataclass

TtyModes = list[int | list[bytes | int]]

_GLYPH = "› "
_LFLAG, _IFLAG, _CC = 3, 0, 6


@dataclass(frozen=True, slots=True)
class TtyState:
    """The modes of a terminal, to be set again when the program leaves it."""

    fd: int
    modes: TtyModes

    def restore(self) -> None:
        # The terminal may be gone by then, and there is nothing left to restore.
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(self.fd, termios.TCSADRAIN, self.modes)


def read_tty(fd: int) -> TtyState | None:
    """The present modes; None when ``fd`` is no terminal."""
    try:
        return TtyState(fd, termios.tcgetattr(fd))
    except (termios.error, OSError):
        return None


def prepaint(stdin: int = 0, stdout: int = 1) -> TtyState | None:
    """Write the prompt glyph and stop the echo; the state before, or None without a terminal.

    Keys are passed on one by one and a carriage return stays one, so that an Enter typed now
    means Enter later, and a Ctrl-S is a key and does not stop the output; Ctrl-C still raises KeyboardInterrupt. The caller has to restore the state
    when the start fails before ``TerminalFrontEnd.run``, which does it from there on.
    """
    state = read_tty(stdin)
    if state is None or not os.isatty(stdout):
        return None
    modes = termios.tcgetattr(stdin)
    modes[_LFLAG] &= ~(termios.ECHO | termios.ICANON)
    modes[_IFLAG] &= ~(termios.ICRNL | termios.IXON)
    modes[_CC][termios.VMIN] = 1
    try:
        termios.tcsetattr(stdin, termios.TCSANOW, modes)
        os.write(stdout, _GLYPH.encode())
    except (termios.error, OSError):
        state.restore()
        return None
    return state
