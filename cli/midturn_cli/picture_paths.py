"""Paths of pictures in what the user types or pastes, and the pictures there.

A pasted path is what terminals make of a dropped file: absolute or below ``~``, bare, quoted, with
backslashes or as a ``file://`` address. A typed one stands after an ``@``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midturn_core.model.messages import ImageBlock

MAX_PASTED_CHARS = 8192
MAX_PASTED_PATHS = 20

_AT_PATH = re.compile(r'(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s@"]+))')
_TRAILING = ".,;:!?)"
"""What ends a sentence after a path rather than the path."""
_TAKES_NONE = re.compile(r"\s*(?:!|/(?!(?:now|next|later)\b)[\w?-]+(?:\s|\Z))")
_NO_NAME = re.compile(r"[\[\]]")


@dataclass(frozen=True, slots=True)
class AtPath:
    """An ``@`` path in a text: where it stands, its ``@`` included, and the path."""

    start: int
    end: int
    path: str


def takes_pictures(text: str) -> bool:
    """Whether a line is for the model: in a ``!`` line or a command a path is only a path."""
    return _TAKES_NONE.match(text) is None


def at_paths(text: str) -> list[AtPath]:
    """All ``@`` paths, without the punctuation that may follow them."""
    found: list[AtPath] = []
    for match in _AT_PATH.finditer(text):
        if match[1]:
            found.append(AtPath(match.start(), match.end(), match[1]))
        elif path := match[2].rstrip(_TRAILING):
            found.append(AtPath(match.start(), match.start(2) + len(path), path))
    return found


def pasted_paths(text: str) -> list[list[str]]:
    """The ways in which a whole paste can be read as paths; none for other text."""
    text = text.strip()
    if len(text) > MAX_PASTED_CHARS or not text.startswith(("/", "~", "'", '"', "file://")):
        return []
    ways = [[text]] if "\n" not in text else []
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe in a name
        words = []
    if words != [text] and len(words) <= MAX_PASTED_PATHS:
        ways.append(words)
    read = [[_plain_path(word) for word in way] for way in ways]
    return [way for way in read if way and all(path.startswith(("/", "~")) for path in way)]


def _plain_path(word: str) -> str:
    if not word.startswith("file://"):
        return word
    # Imported here: nothing before the first paint needs it.
    from urllib.parse import unquote, urlsplit

    try:
        return unquote(urlsplit(word).path)
    except ValueError:
        return ""


def picture_at(path: str, workspace: Path, *, must_exist: bool = False) -> ImageBlock | str | None:
    """The picture in a file; one sentence why it cannot be sent; None when neither its content nor
    its name is that of a picture, or the file is missing, unless ``must_exist``.

    It is read where it is called: at most 4 MB of a file that the user has just named.
    """
    # Imported here: no input line waits for it, and most sessions have no picture.
    from midturn_core.errors import NotAPictureError, PictureError
    from midturn_core.pictures import SUFFIXES, load_picture

    try:
        file = workspace / Path(path).expanduser()
    except RuntimeError:  # no such user
        return None
    named_so, name = file.suffix.lower() in SUFFIXES, _shown_name(file.name)
    try:
        picture = load_picture(file)
    except ValueError:  # no path at all
        return None
    except FileNotFoundError:
        missing = must_exist and named_so
        return f"{name} was not attached: there is no such file." if missing else None
    except OSError as error:
        return f"{name} was not attached: {error.strerror}." if named_so else None
    except PictureError as error:
        silent = isinstance(error, NotAPictureError) and not named_so
        return None if silent else f"{name} was not attached: it {error}."
    return replace(picture, name=name)


def pictures_in(
    text: str, workspace: Path, complain: Callable[[str], None]
) -> tuple[ImageBlock, ...]:
    """The pictures that a text names with ``@``, each once, where no draft shows them."""
    pictures: list[ImageBlock] = []
    for path in dict.fromkeys(at.path for at in at_paths(text)) if takes_pictures(text) else ():
        found = picture_at(path, workspace, must_exist=True)
        if isinstance(found, str):
            complain(found)
        elif found is not None:
            pictures.append(found)
    return tuple(pictures)


def _shown_name(name: str) -> str:
    shown = "".join(letter if letter.isprintable() else "_" for letter in name)
    return _NO_NAME.sub("_", shown)
