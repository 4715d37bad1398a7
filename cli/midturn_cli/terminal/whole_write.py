"""Writing to the terminal without losing the end of it.

A signal that comes while the terminal is full, as when its size changes, cuts a write short. An
unbuffered standard output (``PYTHONUNBUFFERED``) then tells only how much was taken, so the rest
has to be written again, which the output of prompt_toolkit does not do.
"""

from __future__ import annotations

import io
import os
import select
from typing import TextIO


def write_whole(stream: TextIO, text: str) -> None:
    """Write all of it, waiting for as long as the terminal takes.

    Raises:
        OSError: the terminal is gone.
        ValueError: the stream is closed.
    """
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        # No file behind it: it takes everything.
        stream.write(text)
        stream.flush()
        return
    stream.flush()
    rest = memoryview(text.encode(stream.encoding or "utf-8", "replace"))
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            # A program that shares the terminal has made it answer at once when it is full.
            select.select([], [descriptor], [])
