"""What a call would touch: the only thing the permission policy looks at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PathAccess:
    """A file or folder. ``written`` is the path as the model wrote it made absolute (but not
    resolved), ``resolved`` follows every link: deny looks at both, allow only at ``resolved``.
    """

    written: Path
    resolved: Path
    writes: bool


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """A shell command, and the folder it would run in."""

    command: str
    cwd: Path


@dataclass(frozen=True, slots=True)
class HostAccess:
    """A web address. ``host`` is lower-case, in its ASCII form, without port."""

    url: str
    host: str


Access: TypeAlias = PathAccess | CommandAccess | HostAccess
