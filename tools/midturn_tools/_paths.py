"""Paths as a model writes them: which file is meant, opening exactly that file, hints when missing.

A path is judged by its resolved form, and opened by walking that form component by component
without following links, so that a link swapped in after the permission question opens nothing.
"""

from __future__ import annotations

import difflib
import os
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from midturn_core.permission.access import PathAccess
from midturn_core.tool import InvalidInputError, ToolContext

_WALK: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: int = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MAX_PATH = 4_000
_MAX_NAMES_LOOKED_AT = 5_000
_MAX_HINTS = 3
_ALIKE = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_LINK = "is a link that leads to itself, or that changed meanwhile"
_KINDS = (
    (stat.S_ISDIR, "is a folder, not a file; Glob or Bash can list what is in it"),
    (stat.S_ISFIFO, "is a named pipe, not a regular file; it was not opened"),
    (stat.S_ISSOCK, "is a socket, not a regular file; it was not opened"),
    (stat.S_ISCHR, "is a device, not a regular file; it was not opened"),
    (stat.S_ISBLK, "is a device, not a regular file; it was not opened"),
    (stat.S_ISLNK, _LINK),
)


class FileProblem(Exception):
    """A path cannot be used as asked. ``str(problem)`` follows the path to make a sentence."""


def check_path_text(field: str, path: str) -> None:
    """Refuse what no file system call can take.

    Raises:
        InvalidInputError: the path is empty, too long, holds a NUL or cannot be encoded.
    """
    if not path:
        raise InvalidInputError(f"{field} must not be empty: give the path of a file or folder")
    if "\0" in path:
        raise InvalidInputError(f"{field} must not contain a NUL character")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise InvalidInputError(f"{field} contains a lone surrogate character") from None
    # A walk by components knows no limit of its own: it would make folders nobody can remove.
    if length > _MAX_PATH:
        raise InvalidInputError(f"{field} must be at most {_MAX_PATH} bytes long, not {length}")


def check_file_path(field: str, path: str) -> None:
    """Like ``check_path_text``, for a path that must name a file."""
    check_path_text(field, path)
    if path.endswith(("/", "/.", "/..")):
        raise InvalidInputError(f"{field} must name a file, not a folder: {path!r}")


def path_access(path: str, context: ToolContext, *, writes: bool) -> PathAccess:
    """The file or folder that ``path`` means: relative to the workspace, absolute, or below ``~``.

    When the permission was already decided on this path, that decision's resolution is returned
    again, so that a link changed meanwhile leads nowhere else.
    """
    absolute = _absolute(path, context.workspace)
    written = Path(os.path.normpath(absolute))
    for access in context.accesses:
        if isinstance(access, PathAccess) and (access.written, access.writes) == (written, writes):
            return access
    return PathAccess(written, Path(os.path.realpath(absolute)), writes)


def shown_path(path: Path, workspace: Path) -> str:
    """``path`` relative to the workspace when it is inside, otherwise absolute."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


def short_path(path: str) -> str:
    """``path`` on one line for a banner: relative to the current folder, or to ``~``."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    for prefix, shown in ((here, ""), (os.path.expanduser("~"), "~/")):
        if len(prefix) > 1 and path.startswith(prefix + os.sep):
            path = shown + path[len(prefix) + 1 :]
            break
    return path.replace("\r", "\\r").replace("\n", "\\n")


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """A descriptor of a real folder, reached without following a link. A context manager."""

    descriptor: int

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)


def open_folder(folder: Path, *, create: bool = False) -> OpenFolder:
    """Walk to a resolved, absolute folder; ``create`` makes what is missing.

    Raises:
        OSError: a component is missing, no folder, or a link.
    """
    current = os.open(folder.anchor, _WALK)
    try:
        for name in folder.parts[1:]:
            inner = _step_into(name, current, create=create)
            os.close(current)
            current = inner
    except BaseException:
        os.close(current)
        raise
    return OpenFolder(current)


def _step_into(name: str, folder: int, *, create: bool) -> int:
    if create:
        try:
            return os.open(name, _WALK, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=folder)
    return os.open(name, _WALK, dir_fd=folder)


def open_regular(path: Path) -> int:
    """Open a resolved, absolute path for reading, if it is a regular file; never blocks.

    Returns a descriptor for the caller to close.

    Raises:
        OSError: the file cannot be reached or opened.
        FileProblem: it is a folder, pipe, socket or device; nothing was read from it.
    """
    with open_folder(path.parent) as folder:
        # Asked before the open: opening some devices has effects of its own.
        _require_regular(os.stat(path.name, dir_fd=folder.descriptor, follow_symlinks=False))
        descriptor = os.open(path.name, _READ, dir_fd=folder.descriptor)
    try:
        _require_regular(os.fstat(descriptor))
    except FileProblem:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        mode = status.st_mode
        raise FileProblem(next(text for is_kind, text in _KINDS if is_kind(mode)))


def explain(error: OSError | FileProblem, path: str, access: PathAccess, workspace: Path) -> str:
    """One sentence for the model: why ``path`` could not be used, with near names if missing."""
    match error:
        case FileProblem():
            return f"{path} {error}."
        case FileNotFoundError():
            return _explain_missing(path, access, workspace)
        case NotADirectoryError():
            return f"{path}: a part of this path is a file, not a folder."
        case PermissionError():
            return f"{path}: permission denied."
        case _:
            reason = os.strerror(error.errno) if error.errno else str(error)
            return f"{path}: {reason}."


def _explain_missing(path: str, access: PathAccess, workspace: Path) -> str:
    sentence = f"File not found: {path}."
    if os.path.islink(access.written):
        sentence = f"File not found: {path} is a link to {access.resolved}, which does not exist."
    near = near_paths(access.resolved, workspace)
    return f"{sentence} Did you mean {' or '.join(near)}?" if near else sentence


def near_paths(missing: Path, workspace: Path) -> tuple[str, ...]:
    """Existing paths that differ little from ``missing``, relative to the workspace.

    Compared without regard to case, Unicode normal form and the shape of quotes and dashes.
    Nothing outside the workspace is looked at.
    """
    folder, name = missing.parent, missing.name
    while not os.path.isdir(folder) and folder != folder.parent:
        folder, name = folder.parent, folder.name
    if not folder.is_relative_to(workspace):
        return ()
    rest = missing.relative_to(folder).parts[1:]
    names = _near_names(name, folder)
    return tuple(
        shown_path(found, workspace)
        for found in (folder.joinpath(near, *rest) for near in names)
        if os.path.exists(found)
    )


def _near_names(name: str, folder: Path) -> list[str]:
    by_key: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MAX_NAMES_LOOKED_AT), entries, strict=False):
                by_key.setdefault(_name_key(entry.name), entry.name)
    except OSError:
        return []
    keys = difflib.get_close_matches(_name_key(name), by_key, _MAX_HINTS, 0.75)
    return [by_key[key] for key in keys]


def _name_key(name: str) -> str:
    return unicodedata.normalize("NFC", name.translate(_ALIKE)).casefold()


def _absolute(path: str, workspace: Path) -> str:
    if path == "~" or path.startswith("~/"):
        path = os.path.expanduser(path)
    absolute = os.path.join(workspace, path)
    # POSIX keeps exactly two leading slashes apart; no rule for /etc would then match //etc.
    return "/" + absolute.lstrip("/")
