"""Commands that would take away everything: always asked about, whatever is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from midturn_core.permission.shell_split import Word
from midturn_core.permission.word_set import word_set

_TAKING_AWAY = word_set("rm rmdir shred unlink chmod chown chgrp")
_HOME = re.compile(r"~(?=/|$)")
_HOME_OR_VARIABLE = re.compile(r"(?:~|HOME\}?)(?=/|$)")
_EVERYTHING_IN = re.compile(r"(?:^|(?<=/))(?:\.?\*|\{[*.,]*\})$")


def removal(program: str, operands: Iterable[Word], folder: Path, kept: Iterable[Path]) -> str:
    """Why a command run in ``folder`` is asked about: one of its operands is the root folder, or
    holds one of the ``kept`` folders, of which the first is the home; empty when none is.
    """
    if program not in _TAKING_AWAY:
        return ""
    home, *others = kept
    for word in operands:
        path = _meant(word, folder, home)
        if path == Path(path.anchor):
            return f"{program} would reach everything there is"
        if home.is_relative_to(path):
            return f"{program} would reach the home folder"
        if any(other.is_relative_to(path) and other != path for other in others):
            return f"{program} would reach folders above this one"
    return ""


def _meant(word: Word, folder: Path, home: Path) -> Path:
    """The path of a word; ``*`` at its end means the folder that it empties."""
    # The reading of a word leaves the sign of a variable out.
    start = _HOME_OR_VARIABLE if word.dynamic else _HOME
    begun = start.match(word.text)
    text = f"{home}{word.text[begun.end() :]}" if begun else word.text
    text = _EVERYTHING_IN.sub("", text)
    return Path(os.path.normpath(folder / text))
