"""Who has claimed inputs, and whether that run of the program is still alive (D12)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from enum import Enum
from pathlib import Path

from midturn_core.ids import new_id

try:
    import fcntl
except ImportError:  # Windows, where sessions do not run
    fcntl = None  # type: ignore[assignment]

_KEPT_SECONDS = 86_400.0
"""How long the trace of a dead owner stays; much longer than any lease."""


class OwnerState(Enum):
    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"
    """It never ran on this machine, or its trace is gone."""


class ClaimOwner:
    """One run of the program: a token, and a locked file that proves it alive.

    The kernel drops the lock when the process ends, however it ends: neither a reused process id
    nor a container nor a clock can deceive it. A child made by ``fork`` alone keeps the lock, and
    so the claims, until it ends too.

    Args:
        folder: where the lock files are; shared by all processes that are to judge each other.
            None: nobody can tell, and a lease has to do.
    """

    def __init__(self, folder: Path | None) -> None:
        self.token = new_id("run")
        self._folder = folder
        self._lock = threading.Lock()
        self._descriptor: int | None = None

    def announce(self) -> None:
        """Be provably alive from now on; to be called before the first claim. Idempotent.

        Raises:
            OSError: the lock file cannot be made.
        """
        with self._lock:
            if self._folder is None or fcntl is None or self._descriptor is not None:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._sweep(self._folder)
            while self._descriptor is None:
                self._descriptor = _locked_file(self._folder / self.token)

    def state_of(self, token: str) -> OwnerState:
        """Whether the owner with this token lives."""
        if token == self.token:
            return OwnerState.ALIVE
        if self._folder is None or fcntl is None or "/" in token:
            return OwnerState.UNKNOWN
        try:
            descriptor = os.open(self._folder / token, os.O_RDWR)
        except OSError:
            return OwnerState.UNKNOWN
        try:
            # A shared lock, so that two that ask at the same time both learn the truth.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return OwnerState.ALIVE
        finally:
            os.close(descriptor)
        return OwnerState.DEAD

    def close(self) -> None:
        """Stop being alive. Idempotent."""
        with self._lock:
            if self._descriptor is None:
                return
            os.close(self._descriptor)
            self._descriptor = None
        if self._folder is not None:
            (self._folder / self.token).unlink(missing_ok=True)

    def _sweep(self, folder: Path) -> None:
        """Remove old traces of the dead: by then nobody needs a proof any more."""
        for trace in folder.iterdir():
            with contextlib.suppress(OSError):
                old = time.time() - trace.stat().st_mtime > _KEPT_SECONDS
                if old and self.state_of(trace.name) is OwnerState.DEAD:
                    trace.unlink()


def _locked_file(path: Path) -> int | None:
    """A descriptor that holds the lock; None when the file was swept away before it did."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    assert fcntl is not None
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except FileNotFoundError:
        pass
    os.close(descriptor)
    return None
