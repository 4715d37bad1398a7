"""What other code prints, warns and logs becomes notices: nobody else writes to the terminal."""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO, cast

_MAX_LINE = 2000

Tell = Callable[[str], None]
"""Shows one line of text as a notice; safe on any thread."""


class NoticeStream(io.StringIO):
    """A text file whose lines are told."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell
        self._lock = threading.Lock()
        self._rest = ""

    def write(self, text: str, /) -> int:
        with self._lock:
            *lines, rest = (self._rest + text).replace("\r", "\n").split("\n")
            if len(rest) > _MAX_LINE:
                lines, rest = [*lines, rest], ""
            self._rest = rest
        for line in lines:
            if line.strip():
                self._tell(line)
        return len(text)

    def finish(self) -> None:
        """Tell what is left without a line end."""
        self.write("\n" if self._rest else "")


@contextmanager
def redirected_streams(tell: Tell, warn: Tell) -> Generator[None]:
    """Send what is printed to ``tell`` and what is written to stderr or warned to ``warn``."""
    out, err = NoticeStream(tell), NoticeStream(warn)
    before = sys.stdout, sys.stderr, warnings.showwarning
    moved = _move_log_handlers({sys.stdout: out, sys.stderr: err})
    sys.stdout, sys.stderr = out, err
    warnings.showwarning = _warning_teller(warn)
    try:
        yield
    finally:
        sys.stdout, sys.stderr, warnings.showwarning = before
        for handler, stream in moved:
            handler.setStream(stream)
        out.finish()
        err.finish()


def _move_log_handlers(
    replacements: dict[TextIO, TextIO],
) -> list[tuple[logging.StreamHandler[TextIO], TextIO]]:
    """Point the handlers of the root logger elsewhere; what they were pointed at before."""
    moved: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
    for found in logging.getLogger().handlers:
        if isinstance(found, logging.StreamHandler):
            handler = cast("logging.StreamHandler[TextIO]", found)
            if handler.stream in replacements:
                moved.append((handler, handler.stream))
                handler.setStream(replacements[handler.stream])
    return moved


def _warning_teller(warn: Tell) -> Callable[..., None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        warn(f"{category.__name__}: {message} ({filename}:{lineno})")

    return show
