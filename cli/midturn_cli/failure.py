"""The last words of a run that could not be done: sentences on stderr, and JSON if asked for."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from midturn_cli.options import EXIT_FAILED, EXIT_USAGE
from midturn_core import paths
from midturn_core.errors import ConfigError, MidturnError


def failure_json(message: str) -> str:
    """The line of the JSON output formats for a run that ended before its first turn."""
    return json.dumps(
        {"type": "result", "ok": False, "reason": "not_started", "answer": "", "error": message}
    )


def report_failure(error: MidturnError, argv: Sequence[str]) -> int:
    """Say what is wrong with the usage or the configuration; returns the exit code.

    Whoever asked for JSON gets one valid line on stdout in every case (MB-1208).
    """
    if _wants_json(argv):
        sys.stdout.write(failure_json(str(error)) + "\n")
    # Imported here, like everything that is needed on some ways only.
    from midturn_cli.render.clean import one_line

    problems = error.problems if isinstance(error, ConfigError) else (str(error),)
    sys.stderr.write("".join(f"midturn: {one_line(problem)}\n" for problem in problems))
    return EXIT_USAGE


def report_crash(error: Exception) -> int:
    """A defect of Midturn: the traceback goes to a file, a sentence to the person."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    file = paths.state_folder(os.environ) / "crash.log"
    try:
        _append(file, "".join(traceback.format_exception(error)))
        where = f"; the details are in {file}"
    except OSError:
        where = ""
    sys.stderr.write(f"midturn: internal error ({what}){where}\n")
    return EXIT_FAILED


def _wants_json(argv: Sequence[str]) -> bool:
    """Looked up in the raw words, since they may be what could not be understood."""
    for index, word in enumerate(argv):
        if word == "--":
            return False
        name, _, value = word.partition("=")
        if name == "--output-format":
            return (value or next(iter(argv[index + 1 :]), "")) in ("json", "stream-json")
    return False


def _append(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as stream:
        stream.write(time.strftime("%Y-%m-%dT%H:%M:%S%z\n") + text)
