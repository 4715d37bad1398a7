"""Path patterns of rules: gitignore style, relative to the workspace (D42)."""

from __future__ import annotations

import functools
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_GLOB_CHARS = "\\*?[]!#"
_EVERYTHING = frozenset({"*", "**", "/*", "/**", "**/*"})


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A gitignore pattern and the folder that it is relative to."""

    root: Path
    pattern: str


def check_path_pattern(pattern: str) -> None:
    """Refuse what gitignore would read in another way than a rule means.

    Raises:
        ValueError: the pattern starts with ``!`` or ends with a lone backslash.
    """
    if pattern.startswith("!"):
        raise ValueError("a path pattern cannot be negated with !")
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise ValueError("a path pattern cannot end with a lone backslash")


def path_matches(pattern: str, path: Path, workspace: Path, home: Path) -> bool:
    """Whether an absolute path, or a folder that it lies in, is what the pattern names.

    ``name`` and ``a/b`` are relative to the workspace, ``~/x`` to the home folder, ``//x`` to the
    root. ``/x`` is taken both ways that people mean it: from the workspace and from the root.
    Names are compared in one Unicode normal form.
    """
    return any(_matches_below(anchored, path) for anchored in _anchored(pattern, workspace, home))


def literal_pattern(path: Path, workspace: Path) -> str:
    """The pattern that names exactly this path and what lies below it."""
    if path.is_relative_to(workspace) and path != workspace:
        return "./" + _escaped(path.relative_to(workspace).as_posix())
    return "/" + _escaped(path.as_posix())


def has_wildcard(pattern: str) -> bool:
    """Whether the pattern may name more than one path (and what lies below it)."""
    plain = pattern.replace("\\\\", "")
    for char in _GLOB_CHARS:
        plain = plain.replace("\\" + char, "")
    return any(char in plain for char in "*?[")


def _escaped(text: str) -> str:
    return "".join("\\" + char if char in _GLOB_CHARS else char for char in text)


@functools.lru_cache(maxsize=1024)
def _anchored(pattern: str, workspace: Path, home: Path) -> tuple[_Anchored, ...]:
    root = Path(workspace.anchor)
    if pattern.startswith("~/"):
        return (_Anchored(home, pattern[1:]),)
    if pattern.startswith("//"):
        return (_Anchored(root, pattern[1:]),)
    if ".." in pattern.split("/"):
        absolute = os.path.normpath(f"{_escaped(workspace.as_posix())}/{pattern}")
        return (_Anchored(root, absolute),)
    if pattern.startswith("/"):
        return (_Anchored(workspace, pattern), _Anchored(root, pattern))
    if pattern.startswith("./"):
        return (_Anchored(workspace, pattern[1:]),)
    return (_Anchored(workspace, "\\" + pattern if pattern[0] == "#" else pattern),)


def _matches_below(anchored: _Anchored, path: Path) -> bool:
    if not path.is_relative_to(anchored.root):
        return False
    relative = path.relative_to(anchored.root).as_posix()
    if relative == ".":
        return anchored.pattern in _EVERYTHING
    normal = unicodedata.normalize("NFC", relative)
    spec = _compiled(unicodedata.normalize("NFC", anchored.pattern))
    # A pattern such as ``secrets/`` names folders only, and nobody has looked what this is.
    return spec.match_file(normal) or spec.match_file(normal + "/")


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> GitIgnoreSpec:
    # Imported here, since most sessions have no path rules (start-up cost).
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
