"""Writes a file of the user's whole or not at all, readable by the user alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

MODE = 0o600
"""An export holds what the tools have read."""


class PrivateFileError(Exception):
    """The file was not written, and nothing was changed; the text says why."""


def write_private(path: Path, data: bytes, *, replace: bool) -> None:
    """Write ``data`` to ``path`` by a temporary file in the same folder.

    ``replace`` False never overwrites, not even what appears in the last instant. A link is
    followed; only a regular file is replaced.

    Raises:
        PrivateFileError: see there.
    """
    path = path.resolve()
    _check(path, replace=replace)
    temporary = path.with_name(f".midturn-{secrets.token_hex(8)}.tmp")
    try:
        _fill(temporary, data)
        _take_name(temporary, path, replace=replace)
    except OSError as error:
        raise PrivateFileError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _check(path: Path, *, replace: bool) -> None:
    if not path.parent.is_dir():
        raise PrivateFileError(f"there is no folder {path.parent}")
    if path.is_dir():
        raise PrivateFileError(f"{path} is a folder")
    if path.exists() and not path.is_file():
        raise PrivateFileError(f"{path} is no regular file")
    if path.exists() and not replace:
        raise PrivateFileError(f"{path} exists already; --force replaces it")


def _fill(temporary: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    with open(os.open(temporary, flags, MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _take_name(temporary: Path, path: Path, *, replace: bool) -> None:
    if replace:
        os.replace(temporary, path)
        return
    try:
        # A hard link, unlike a rename, never overwrites.
        os.link(temporary, path)
    except FileExistsError:
        raise PrivateFileError(f"{path} exists already; --force replaces it") from None
    except OSError:
        # A file system without hard links.
        os.rename(temporary, path)
