"""Writes that a signal cuts short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_cli.terminal.whole_write import write_whole
from tests.support.midturn_process import midturn_environment

LENGTH = 100_000
WRITER = f"""
import os, signal, sys
from midturn_cli.terminal.whole_write import write_whole
signal.signal(signal.SIGWINCH, lambda number, frame: None)
os.set_blocking(1, sys.argv[1] == "blocking")
write_whole(sys.stdout, "x" * {LENGTH} + "!")
"""


@pytest.mark.parametrize("mode", ["blocking", "nonblocking"])
def test_a_signal_in_the_middle_of_a_write_loses_nothing(mode: str) -> None:
    reader, writer = os.openpty()
    environ = midturn_environment(PYTHONUNBUFFERED="1")
    with subprocess.Popen([sys.executable, "-c", WRITER, mode], stdout=writer, env=environ) as run:
        os.close(writer)
        taken = bytearray()
        while not taken.endswith(b"!"):
            taken += os.read(reader, 1000)
            # The terminal is full again soon: the signal meets the rest of the write.
            run.send_signal(signal.SIGWINCH)
        assert len(taken) == LENGTH + 1
    os.close(reader)


def test_letters_that_the_terminal_does_not_have_are_replaced(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        write_whole(stream, "plain › text")
    assert (tmp_path / "out").read_bytes() == b"plain ? text"
