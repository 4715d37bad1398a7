"""``SessionLog``: the append-only file of one session.

One write per record, its length checked; a short write is taken back. While the disk refuses, the
session goes on in memory and the records wait; they are written when it accepts again. Opening
repairs: a torn end is cut (and saved beside), a bad line is skipped, and both are said, once.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from midturn_core.errors import SessionError
from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.session.records import NewerVersionError, ReadLog, Record, encode, read_log

try:
    import fcntl
except ImportError:  # Windows has no advisory locks; two instances are not told apart there
    fcntl = None  # type: ignore[assignment]


IN_USE = "another Midturn writes to it"
REPAIRED = "repaired"
"""The type of the record that says which damage of lines was told."""
_MOST_COPIES = 100


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that was opened, its records, and one sentence per thing the user must know."""

    log: SessionLog
    records: tuple[Record, ...]
    warnings: tuple[str, ...]


class SessionLog:
    """Appends records to one file. Thread-safe.

    Args:
        path: the file; it is created with the first record, readable by the user alone.
        on_trouble: told once when records cannot be written, and once when they can again.
    """

    def __init__(
        self, path: Path, on_trouble: Callable[[str], None] | None = None, next_seq: int = 1
    ) -> None:
        self.path = path
        self.on_trouble = on_trouble
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._next_seq = next_seq
        self._good_end = 0
        self._waiting: list[bytes] = []
        self._read_only = False

    @classmethod
    def open(cls, path: Path) -> OpenedLog:
        """Read, repair and lock an existing log.

        Raises:
            SessionError: it cannot be read, a newer release wrote it, or another Midturn has it
                open.
        """
        log = cls(path)
        try:
            warnings = log._take_over()
            # Read under the lock: whoever wrote until now is done with its last record.
            content, found = _read(path)
            log._next_seq = max((record.seq for record in found.records), default=0) + 1
            warnings += log._repaired(found, content)
        except BaseException:
            log.close()
            raise
        return OpenedLog(log, found.records, tuple(warnings))

    @classmethod
    def check(cls, path: Path) -> None:
        """Look whether ``open`` would succeed, and change nothing.

        Raises:
            SessionError: as in ``open``.
        """
        _read(path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if not _lock(descriptor):
                raise SessionError(f"the session {path} cannot be opened: {IN_USE}")
        finally:
            os.close(descriptor)

    @property
    def empty(self) -> bool:
        """Nothing was recorded yet."""
        return self._next_seq == 1

    @property
    def unsaved(self) -> bool:
        """Records wait because the disk refused them."""
        with self._lock:
            return bool(self._waiting)

    def append(self, kind: str, data: JsonObject) -> None:
        """Write one record; never raises for a disk that refuses."""
        with self._lock:
            self._waiting.append(encode(Record(self._next_seq, kind, data)))
            self._next_seq += 1
            trouble = self._flush()
        if trouble and self.on_trouble is not None:
            self.on_trouble(trouble)

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        with self._lock:
            if self._descriptor is not None:
                with contextlib.suppress(OSError):
                    os.fsync(self._descriptor)

    def close(self) -> None:
        self.sync()
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _flush(self) -> str:
        """Write what waits; returns a sentence when the state of saving changed."""
        had_trouble = len(self._waiting) > 1
        try:
            if self._read_only:
                raise OSError(0, "the file is read-only")
            self._ensure_open()
            while self._waiting:
                self._write_one(self._waiting[0])
                del self._waiting[0]
        except OSError as error:
            if had_trouble:
                return ""
            return f"The session is not being saved: {error.strerror} ({self.path})"
        return "The session is saved again; nothing is missing." if had_trouble else ""

    def _write_one(self, line: bytes) -> None:
        assert self._descriptor is not None
        written = os.write(self._descriptor, line)
        if written != len(line):
            os.ftruncate(self._descriptor, self._good_end)
            raise OSError(28, "the disk is full")
        self._good_end += written

    def _ensure_open(self) -> None:
        if self._descriptor is not None:
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self.path, flags, 0o600)
        if not _lock(descriptor):
            os.close(descriptor)
            raise OSError(0, IN_USE)
        self._descriptor = descriptor
        self._good_end = os.fstat(descriptor).st_size

    def _take_over(self) -> list[str]:
        """Lock the file, unless it may not be written to."""
        try:
            read_regular(self.path, 0)
            self._ensure_open()
        except PermissionError:
            self._read_only = True
            return [f"The session {self.path} is read-only: what follows is not saved."]
        except OSError as error:
            raise SessionError(
                f"the session {self.path} cannot be opened: {error.strerror}"
            ) from error
        return []

    def _repaired(self, found: ReadLog, content: bytes) -> list[str]:
        """Cut a torn end, after the damaged original was saved beside it, and say what was wrong
        unless that was said when the file was opened before.
        """
        news = _unheard(found)
        if not content:
            return [f"The session {self.path} was empty; it starts anew."]
        copy = _save_beside(self.path, content) if news.problems else None
        if self._descriptor is not None:
            self._mend_end(found, content, may_cut=copy is not None)
            if news.bad_lines or news.repeated or news.misplaced:
                self.append(REPAIRED, _counts(found))
        return [_sentence(news, copy)] if news.problems else []

    def _mend_end(self, found: ReadLog, content: bytes, *, may_cut: bool) -> None:
        """Let the next record begin on a line of its own."""
        assert self._descriptor is not None
        with contextlib.suppress(OSError):  # a full disk; the next record tells it
            if found.torn_tail and may_cut:
                os.ftruncate(self._descriptor, found.clean_end)
            elif not content.endswith(b"\n"):
                os.write(self._descriptor, b"\n")
        self._good_end = os.fstat(self._descriptor).st_size


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The beginning of a file, or all of it.

    Raises:
        OSError: it cannot be read, or it is no file (a FIFO would block for ever).
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no file")
        return file.read() if most is None else file.read(most)


def _read(path: Path) -> tuple[bytes, ReadLog]:
    try:
        content = read_regular(path)
        return content, read_log(content)
    except OSError as error:
        raise SessionError(f"cannot read the session {path}: {error.strerror}") from error
    except NewerVersionError as error:
        raise SessionError(
            f"the session {path} was written by a newer Midturn ({error}); it was not touched"
        ) from error


def _sentence(news: ReadLog, copy: Path | None) -> str:
    kept = f"The original is kept as {copy.name}." if copy else "No copy of it could be made."
    return f"The session file was damaged: {', '.join(news.problems)}. {kept}"


def _counts(found: ReadLog) -> dict[str, JsonValue]:
    return {
        "bad_lines": found.bad_lines,
        "repeated": found.repeated,
        "misplaced": found.misplaced,
    }


def _unheard(found: ReadLog) -> ReadLog:
    """``found`` without the damage of lines that was told before: such lines stay in the file."""
    told = [record.data for record in found.records if record.type == REPAIRED]
    if not told:
        return found

    def without_told(name: str, count: int) -> int:
        before = told[-1].get(name)
        return max(0, count - before) if isinstance(before, int) else count

    return replace(
        found,
        bad_lines=without_told("bad_lines", found.bad_lines),
        repeated=without_told("repeated", found.repeated),
        misplaced=without_told("misplaced", found.misplaced),
    )


def damaged_copy(path: Path, number: int = 1) -> Path:
    """Where the damaged original of a repaired log is kept, the ``number``-th of them."""
    return path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}")


def _save_beside(path: Path, content: bytes) -> Path | None:
    """Keep the original; one that was kept before stays. None when that is not possible."""
    for number in range(1, _MOST_COPIES + 1):
        target = damaged_copy(path, number)
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        except OSError:
            return None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            with contextlib.suppress(OSError):
                target.unlink()
            return None
        return target
    return None


def _lock(descriptor: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
