"""Replaces a file as a whole: readers see the old bytes or the new ones, never a mixture.

The new bytes go to a temporary file in the same folder, are synced, and take the name by a
rename. Permission bits, owner, access lists and other extended attributes are carried over. The
path is a resolved one, so a link stays a link and its target gets the bytes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from midturn_tools._paths import FileProblem, open_folder

_CREATE: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_MODE = 0o666
"""Before the umask, as any program makes files."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file was when its content was looked at; to notice a change before replacing it."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def write_file(path: Path, data: bytes, expected: FileState | None) -> None:
    """Create or replace the regular file at a resolved, absolute path.

    ``expected`` is the state in which the file was examined; None means that it must not exist
    (missing parent folders are then made).

    Raises:
        FileProblem: the file changed meanwhile, is read-only, is no regular file, or the folder
            takes no new file. Nothing was changed.
        OSError: the disk is full, or the folder cannot be reached. Nothing was changed.
    """
    with open_folder(path.parent, create=expected is None) as folder:
        _check(path.name, folder.descriptor, expected)
        temporary = f".midturn-{secrets.token_hex(8)}.tmp"
        descriptor = _create(temporary, folder.descriptor, path)
        try:
            try:
                _fill(descriptor, data)
                if expected is not None:
                    _carry_over(path.name, folder.descriptor, descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _check(path.name, folder.descriptor, expected)
            _take_name(temporary, path.name, folder.descriptor, replace=expected is not None)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder.descriptor)
            raise
        _sync_folder(folder.descriptor)


def _check(name: str, folder: int, expected: FileState | None) -> None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if expected is None:
            return
        raise FileProblem("was removed by someone else meanwhile; nothing was written") from None
    if not stat.S_ISREG(status.st_mode):
        raise FileProblem("is no regular file; nothing was written")
    if expected is None:
        raise FileProblem("was created by someone else meanwhile; nothing was written")
    if FileState.of(status) != expected:
        raise FileProblem("was changed by someone else meanwhile; nothing was written")
    # A rename would succeed on a read-only file, and for the superuser every file is writable.
    if not status.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder):
        raise FileProblem("is read-only; nothing was written")


def _create(temporary: str, folder: int, path: Path) -> int:
    try:
        return os.open(temporary, _CREATE, _NEW_FILE_MODE, dir_fd=folder)
    except PermissionError:
        reason = f"cannot be written: no permission to make a file in its folder {path.parent}"
        raise FileProblem(reason) from None


def _fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _carry_over(name: str, folder: int, descriptor: int) -> None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    # Giving files away is a privilege; without it the file becomes the writer's own.
    with contextlib.suppress(OSError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    _copy_attributes(name, folder, descriptor)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _copy_attributes(name: str, folder: int, descriptor: int) -> None:
    if sys.platform != "linux":
        return
    # Some file systems know no attributes, and some attributes are not ours to set.
    with contextlib.suppress(OSError):
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            for attribute in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)


def _take_name(temporary: str, name: str, folder: int, *, replace: bool) -> None:
    if replace:
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    # A hard link, unlike a rename, never overwrites what appeared in the last instant.
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        raise FileProblem("was created by someone else meanwhile; nothing was written") from None
    except OSError:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.unlink(temporary, dir_fd=folder)


def _sync_folder(folder: int) -> None:
    # Makes the new name itself durable; a folder without read permission cannot be synced.
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
