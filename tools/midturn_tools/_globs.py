"""File patterns as ripgrep and ignore files write them, and how much of one is a plain folder.

A pattern without a slash means the name of a file at any depth; one with a slash means the whole
path below the searched folder. ``*`` and ``?`` stop at a slash, ``**`` does not, ``{a,b}`` and
``[a-z]`` are alternatives. Case matters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPECIAL = re.compile(r"[*?\[{\\]")
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


def _translate(glob: str) -> str:
    out: list[str] = []
    depth = position = 0
    while position < len(glob):
        char = glob[position]
        if glob.startswith("**", position):
            piece, position = _double_star(glob, position)
            out.append(piece)
            continue
        if char == "[":
            piece, position = _char_class(glob, position)
            out.append(piece)
            continue
        if char == "\\" and position + 1 < len(glob):
            position += 1
            out.append(re.escape(glob[position]))
        elif char == "{":
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
        position += 1
    if depth:
        raise GlobError(f"the pattern {glob!r} has a {{ without a }}")
    return "".join(out)


def _double_star(glob: str, position: int) -> tuple[str, int]:
    """``**/`` is any number of folders, a last ``**`` everything below; else like ``*``."""
    after = position + 2
    at_start = position == 0 or glob[position - 1] in "/{,"
    if at_start and glob.startswith("/", after):
        return "(?:.*/)?", after + 1
    if at_start and (after == len(glob) or glob[after] in "},"):
        return ".*", after
    return "[^/]*", after


def _char_class(glob: str, position: int) -> tuple[str, int]:
    start = position + 1
    negated = glob[start : start + 1] in ("!", "^")
    start += negated
    end = glob.find("]", start + 1)
    if end < 0:
        raise GlobError(f"the pattern {glob!r} has a [ without a ]")
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", glob[start:end])
    return f"(?!/)[{'^' if negated else ''}{members}]", end + 1
