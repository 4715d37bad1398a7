"""What was entered, across sessions."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History

MAX_ENTRIES = 2000
_TAIL_BYTES = 1_000_000
"""Only this much of the file's end is read, so that an old file never slows the start."""
_MAX_STORED_CHARS = 20_000


class InputHistory(History):
    """A history in a file that only the user can read.

    An entry is a comment line and its lines, each after a ``+``: entries of several lines
    survive. An entry that repeats the one before it is not added. Without a path, or when the
    file cannot be used, it lives for the session; ``complain`` is told why, once.
    """

    def __init__(self, path: Path | None, complain: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._complain = complain

    def append_string(self, string: str) -> None:
        strings = self.get_strings()
        if string.strip() and (not strings or strings[-1] != string):
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """The newest first. What is loaded takes the place of what was entered until then, so that
        is among it, also where no file has it.
        """
        stored = self._stored_strings()
        in_file = frozenset(stored)
        early = reversed(self.get_strings())
        return [*(entry for entry in early if entry not in in_file), *stored]

    def _stored_strings(self) -> list[str]:
        if self._path is None:
            return []
        try:
            entries = _read_entries(self._path)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._give_up(error)
            return []
        return entries[: -MAX_ENTRIES - 1 : -1]

    def store_string(self, string: str) -> None:
        if self._path is None or len(string) > _MAX_STORED_CHARS:
            return
        stamp = datetime.datetime.now().isoformat(sep=" ", timespec="seconds")
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with open(os.open(self._path, flags, 0o600), "ab") as file:
                file.write(f"\n# {stamp}\n{lines}".encode("utf-8", "replace"))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        self._complain(f"The input history {self._path} cannot be used: {reason}.")
        self._path = None


def _read_entries(path: Path) -> list[str]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    entries: list[str] = []
    lines: list[str] = []
    # The first entry may be cut; it begins at the first line that is none of an entry.
    whole = size <= _TAIL_BYTES
    for line in [*text.split("\n"), ""]:
        if line.startswith("+") and whole:
            lines.append(line[1:])
        elif not line.startswith("+"):
            whole = True
            if lines:
                entries.append("\n".join(lines))
                lines = []
    return entries
