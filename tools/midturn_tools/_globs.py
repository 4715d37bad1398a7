"""File patterns as ripgrep and ignore files write them, and how much of one is a plain folder.

A pattern without a slash means the name of a file at any depth; one with a slash means the whole
path below the searched folder. ``*`` and ``?`` stop at a slash, ``**`` does not, ``{a,b}`` and
``[a-z]`` are alternatives. Case matters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_SPECIAL = re.compile(r"[*?\[{\\]")
_ANY_FOLDERS = "(?:.*/)?"
_NO_PLAIN_NAME = re.compile(r"[/]|\*\*|^include:|^\*$")


class GlobError(ValueError):
    """A pattern that cannot be read; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Which paths (relative to the searched folder, with slashes) a pattern takes."""

    glob: str

    @property
    def negative(self) -> bool:
        """``!pattern`` takes everything else."""
        return self.glob.startswith("!")

    @property
    def name_glob(self) -> str:
        """A pattern for file names that takes no fewer files than this one; empty: all names."""
        last = self.glob.rpartition("/")[2]
        inside_braces = last.count("}") != last.count("{")
        return "" if self.negative or inside_braces or _NO_PLAIN_NAME.search(last) else last

    @property
    def depth(self) -> int | None:
        """How many levels down a file can be at most; None: any."""
        if self.negative or "/" not in self.glob or "**" in self.glob:
            return None
        return self.glob.lstrip("/").count("/") + 1

    def expression(self) -> str:
        """The whole pattern as a regular expression for relative paths.

        Raises:
            GlobError: a bracket or brace is not closed.
        """
        glob = self.glob.removeprefix("!")
        anchored = "/" in glob
        body = _translate(glob.lstrip("/"))
        return body if anchored else f"(?:.*/)?{body}"

    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.expression(), re.DOTALL)


def split_folder(glob: str) -> tuple[str, str]:
    """The leading plain folders of a pattern and the rest: ``src/lib/**/*.py`` → ``src/lib``,
    ``/**/*.py`` (anchored, as it had a slash). Without a slash all of it is a name.
    """
    if "/" not in glob:
        return "", glob
    parts = glob.split("/")
    plain = next((i for i, part in enumerate(parts) if _SPECIAL.search(part)), len(parts))
    rest = "/".join(parts[plain:])
    if plain == 0:
        return "", rest
    return "/".join(parts[:plain]) or "/", f"/{rest}" if rest else ""


class _Kind(Enum):
    FIXED = "one character"
    SLASH = "/"
    STAR = "*"
    DEEP = "**/"
    OTHER = "alternatives, and what stands in them"


_Piece = tuple[_Kind, str]
"""What a part of a pattern is, and its regular expression."""


def _translate(glob: str) -> str:
    pieces: list[_Piece] = []
    depth = position = 0
    while position < len(glob):
        char = glob[position]
        if glob.startswith("**", position):
            piece, position = _double_star(glob, position)
            pieces.append(piece)
            continue
        if char == "[":
            piece, position = _char_class(glob, position)
            pieces.append(piece)
            continue
        if char == "\\" and position + 1 < len(glob):
            position += 1
            pieces.append(_plain(glob[position]))
        elif char == "{":
            depth += 1
            pieces.append((_Kind.OTHER, "(?:"))
        elif char == "}" and depth:
            depth -= 1
            pieces.append((_Kind.OTHER, ")"))
        elif char == "," and depth:
            pieces.append((_Kind.OTHER, "|"))
        else:
            pieces.append(_WILD.get(char, _plain(char)))
        position += 1
    if depth:
        raise GlobError(f"the pattern {glob!r} has a {{ without a }}")
    return _expression(pieces)


_WILD: dict[str, _Piece] = {"*": (_Kind.STAR, "[^/]*"), "?": (_Kind.FIXED, "[^/]")}


def _plain(char: str) -> _Piece:
    return _Kind.SLASH if char == "/" else _Kind.FIXED, re.escape(char)


def _expression(pieces: list[_Piece]) -> str:
    """The pieces as one expression that never tries in many ways what can be in one only.

    What follows a ``*`` up to the next one may as well stand where it is found first: the next
    takes the rest. So it is with folders between two ``**/``. Python's search would try every
    place for each of them, and nothing can stop it.
    """
    parts: list[list[_Piece]] = [[]]
    depth = 0
    for kind, text in pieces:
        depth += (text == "(?:") - (text == ")") if kind is _Kind.OTHER else 0
        if kind is _Kind.DEEP and not depth:
            parts.append([])
        else:
            parts[-1].append((kind, text))
    first, *deeper = parts
    out = [_folder_names(first)]
    for place, part in enumerate(deeper, 1):
        settled = place < len(deeper) and bool(part) and part[-1][0] is _Kind.SLASH
        if settled and all(kind not in (_Kind.OTHER, _Kind.DEEP) for kind, _ in part):
            out.append(f"(?>(?:[^/]*/)*?{_folder_names(part)})")
        else:
            out.append(_ANY_FOLDERS + _folder_names(part))
    return "".join(out)


def _folder_names(pieces: list[_Piece]) -> str:
    out: list[str] = []
    position = 0
    while position < len(pieces):
        kind, text = pieces[position]
        position += 1
        if kind is not _Kind.STAR:
            out.append(text)
            continue
        end = position
        while end < len(pieces) and pieces[end][0] is _Kind.FIXED:
            end += 1
        if end < len(pieces) and pieces[end][0] is _Kind.STAR:
            run = "".join(fixed for _, fixed in pieces[position:end])
            out.append(f"(?>[^/]*?{run})")
            position = end
        else:
            out.append(text)
    return "".join(out)


def _double_star(glob: str, position: int) -> tuple[_Piece, int]:
    """``**/`` is any number of folders, a last ``**`` everything below; else like ``*``."""
    after = position + 2
    at_start = position == 0 or glob[position - 1] in "/{,"
    if at_start and glob.startswith("/", after):
        return (_Kind.DEEP, _ANY_FOLDERS), after + 1
    if at_start and (after == len(glob) or glob[after] in "},"):
        return (_Kind.OTHER, ".*"), after
    return _WILD["*"], after


def _char_class(glob: str, position: int) -> tuple[_Piece, int]:
    start = position + 1
    negated = glob[start : start + 1] in ("!", "^")
    start += negated
    end = glob.find("]", start + 1)
    if end < 0:
        raise GlobError(f"the pattern {glob!r} has a [ without a ]")
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", glob[start:end])
    return (_Kind.FIXED, f"(?!/)[{'^' if negated else ''}{members}]"), end + 1
