"""The log file: rotated, readable by its owner alone; nothing of the log goes to the terminal."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from midturn_core import paths
from midturn_core.config import LogConfig
from midturn_core.errors import ConfigError

LARGEST_LOG = 1_000_000
"""Bytes of one file; three older ones are kept."""

_OUR_PACKAGES = ("midturn_core", "midturn_tools", "midturn_cli")
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(threadName)s %(name)s: %(message)s"


class _PrivateFileHandler(RotatingFileHandler):
    """Every file it opens is the owner's alone, rotated ones included. A disk that is full costs
    lines of the log, and nothing else.
    """

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        """The base class writes a traceback to the terminal."""

    def close(self) -> None:
        # It writes what is left; an error here would keep the program from saying what it lost.
        with contextlib.suppress(OSError):
            super().close()


def open_log(config: LogConfig, environ: Mapping[str, str]) -> str:
    """Start logging; returns a warning for the user when the usual file cannot be written.

    Importing this module costs start-up time, so that it is for after the first paint.

    Raises:
        ConfigError: the file that the user named cannot be written.
    """
    file = Path(config.file) if config.file else paths.log_file(environ)
    try:
        handler = _opened(file)
    except OSError as error:
        problem = f"the log cannot be written to {file}: {error.strerror}"
        if config.file:
            raise ConfigError(problem) from error
        return problem
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
    for package in _OUR_PACKAGES:
        logging.getLogger(package).setLevel(config.level.upper())
    return ""


def close_log() -> None:
    """Stop logging to a file; levels are as they were."""
    root = logging.getLogger()
    for package in _OUR_PACKAGES:
        logging.getLogger(package).setLevel(logging.NOTSET)
    for handler in [known for known in root.handlers if isinstance(known, _PrivateFileHandler)]:
        root.removeHandler(handler)
        handler.close()


def _opened(file: Path) -> logging.Handler:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _PrivateFileHandler(file, maxBytes=LARGEST_LOG, backupCount=3, encoding="utf-8")
