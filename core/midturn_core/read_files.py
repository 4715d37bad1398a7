"""READ_FILES: which files a context has read, and in which state (S1.30, S1.31, D31).

Kept for the whole session, one per context, thread-safe. Freshness is decided by content, not by
time stamps: a ``touch`` from outside makes nothing stale, a changed byte does.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReadStamp:
    """The state of a file when the agent last read or wrote it."""

    content_hash: str
    """Of the whole file, see ``content_hash``."""
    lines_seen: tuple[tuple[int, int], ...] = ()
    """Line ranges shown to the model, 1-based and inclusive; empty for a file it wrote."""


def content_hasher() -> hashlib.blake2b:
    """For a file that is hashed block by block; its ``hexdigest()`` equals ``content_hash``."""
    return hashlib.blake2b(digest_size=16)


def content_hash(data: bytes) -> str:
    hasher = content_hasher()
    hasher.update(data)
    return hasher.hexdigest()


class ReadFiles:
    """A thread-safe map from resolved path to stamp."""

    def __init__(
        self,
        stamps: Mapping[Path, ReadStamp] | None = None,
        journal: Callable[[Path, ReadStamp], None] | None = None,
    ) -> None:
        """``journal`` is told every recorded stamp, on the recording thread."""
        self._lock = threading.Lock()
        self._journal = journal
        self._stamps: dict[Path, ReadStamp] = dict(stamps or {})

    def record(self, path: Path, stamp: ReadStamp) -> None:
        """Remember a read or a write of ``path`` (resolved). Line ranges of the same content
        add up.
        """
        with self._lock:
            known = self._stamps.get(path)
            if known is not None and known.content_hash == stamp.content_hash:
                merged = tuple(sorted({*known.lines_seen, *stamp.lines_seen}))
                stamp = ReadStamp(stamp.content_hash, merged)
            self._stamps[path] = stamp
        if self._journal is not None:
            self._journal(path, stamp)

    def get(self, path: Path) -> ReadStamp | None:
        """The stamp of a resolved path; None when this context has not read it."""
        with self._lock:
            return self._stamps.get(path)

    def forget(self, path: Path) -> None:
        with self._lock:
            self._stamps.pop(path, None)

    def clear(self) -> None:
        """Forget every file: the history that showed them is gone."""
        with self._lock:
            self._stamps.clear()

    def snapshot(self) -> dict[Path, ReadStamp]:
        with self._lock:
            return dict(self._stamps)


class StagedReads:
    """What one call records of files, kept back until it is known that the call counts (D38).

    ``files`` begins as the files of the context and is for this call alone.
    """

    def __init__(self, context: ReadFiles) -> None:
        self._lock = threading.Lock()
        self._context = context
        self._waiting: list[tuple[Path, ReadStamp]] | None = []
        self.files = ReadFiles(context.snapshot(), self._record)

    def keep(self) -> None:
        """The call counts: what it has recorded and what it will record is the context's."""
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            for path, stamp in waiting:
                self._context.record(path, stamp)

    def _record(self, path: Path, stamp: ReadStamp) -> None:
        with self._lock:
            if self._waiting is not None:
                self._waiting.append((path, stamp))
                return
        self._context.record(path, stamp)
