"""Holding a command that the agent runs until the test lets it go on.

The agent runs ``cat NAME``, where NAME is a named pipe: it hangs until the test opens the latch.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from tests.support.messages_script import DEADLINE

_POLL = 0.005


class FifoLatch:
    """A named pipe in a folder. ``command`` reads it: what ``open`` writes is its output."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self._path = folder / name
        self._writer: int | None = None
        self.command = f"cat {name}"
        os.mkfifo(self._path)

    def reached(self) -> None:
        """Wait until a command reads the pipe.

        Raises:
            AssertionError: none did in time.
        """
        deadline = time.monotonic() + DEADLINE
        while self._writer is None:
            try:
                self._writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                if time.monotonic() > deadline:
                    raise AssertionError(f"nothing ran {self.command!r}") from None
                time.sleep(_POLL)

    def open(self, text: str = "the gate is open\n") -> None:
        """Let the command print ``text`` and end."""
        self.reached()
        assert self._writer is not None
        os.write(self._writer, text.encode())
        os.close(self._writer)
        self._writer = None

    def abandoned(self) -> None:
        """Wait until nothing reads the pipe any more: the command has gone.

        Raises:
            AssertionError: it is still there.
        """
        assert self._writer is not None, "nothing has read the pipe"
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                os.write(self._writer, b" ")
            except BrokenPipeError:
                os.close(self._writer)
                self._writer = None
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.command!r} still runs")
            time.sleep(_POLL)
