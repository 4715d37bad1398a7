"""Which sessions run on this machine, and how to wake one.

Each running session has three files in one private folder: ``<id>.json`` says what it is,
``<id>.lock`` is locked for as long as it lives, and a datagram on its socket makes it look at the
store of its queue. The kernel drops the lock however the process ends, so a process id proves
nothing here, and what a dead session left is swept away by whoever looks next.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import cast

from midturn_core.errors import SessionError

try:
    import fcntl
except ImportError:  # Windows, where sessions do not run
    fcntl = None  # type: ignore[assignment]

SOCKET_BYTES = 103
"""The longest path of a Unix socket that both Linux (107) and macOS take."""
WAKE = b"look"
_TRIES = 40
_TRY_SECONDS = 0.005


class SessionState(Enum):
    """What a running session does."""

    IDLE = "idle"
    WORKING = "working"
    ASKING = "asking"
    """It works, and a question waits for its user."""


@dataclass(frozen=True, slots=True)
class RunningSession:
    """What a running session says of itself. ``store`` names the store of its queue."""

    id: str
    pid: int
    folder: str
    started: str
    """When, in ISO form."""
    store: str
    demo: bool = False
    state: SessionState = SessionState.IDLE
    socket: str = ""
    """Where it can be woken; empty when it only looks now and then."""


class RunningSessions:
    """All of one user on this machine, as files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> list[RunningSession]:
        """Those that are alive, the oldest first; the files of the dead are removed."""
        found: list[RunningSession] = []
        for file in self._folder.glob("*.json"):
            lock = file.with_suffix(".lock")
            if not _is_locked(lock):
                _sweep(file, lock)
            elif (session := _read(file)) is not None:
                found.append(session)
        return sorted(found, key=lambda session: (session.started, session.id))

    def wake(self, session: RunningSession) -> bool:
        """Let it look at its queue; False when nobody hears it, and it looks later by itself."""
        if not session.socket:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(WAKE, session.socket)
        except BlockingIOError:
            return True  # it has more calls waiting than it needs
        except OSError:
            return False
        return True


class Presence:
    """The entry of one running session. ``announce`` and ``close`` may wait for the disk."""

    def __init__(self, folder: Path, session: RunningSession, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._session = session
        self._environ = environ
        self._writing = threading.Lock()
        self._lock: int | None = None
        self._socket: socket.socket | None = None

    def announce(self) -> None:
        """Be listed from now on.

        Raises:
            SessionError: it cannot be; the session cannot be reached from outside then.
        """
        try:
            _make_private(self._folder)
            self._lock = _locked(self._path(".lock"))
            self._socket, path = self._listening()
            self._session = replace(self._session, socket=path)
            self._write()
        except OSError as error:
            self.close()
            raise SessionError(
                f"This session cannot be reached from outside: {error.strerror or error} "
                f"({error.filename or self._folder})."
            ) from error

    def set_state(self, state: SessionState) -> None:
        """Say what the session does; nothing happens unless that is news."""
        with self._writing, contextlib.suppress(OSError):
            if self._lock is not None and state is not self._session.state:
                self._session = replace(self._session, state=state)
                self._write()

    def fileno(self) -> int | None:
        """What becomes readable when somebody wakes the session; None without a socket."""
        return None if self._socket is None else self._socket.fileno()

    def take_calls(self) -> None:
        """Forget who called, and whatever it said: a call means "look", and nothing else."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                while self._socket.recv(64):
                    pass

    def close(self) -> None:
        """Be listed no more. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            _unlink(Path(self._session.socket))
        with self._writing:
            self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            _unlink(self._path(".json"))
            _unlink(self._path(".lock"))
            os.close(self._lock)
            self._lock = None

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self._session.id}{suffix}"

    def _write(self) -> None:
        """Whole or not at all, for whoever reads at the same time."""
        content = asdict(self._session) | {"state": self._session.state.value}
        new = self._path(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        new.replace(self._path(".json"))

    def _listening(self) -> tuple[socket.socket | None, str]:
        """A private socket and its path; none where no path is short enough."""
        for path in self._socket_paths():
            if len(os.fsencode(path)) > SOCKET_BYTES:
                continue
            try:
                _make_private(path.parent)
            except OSError:
                continue
            _unlink(path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                listening.setblocking(False)
                listening.bind(str(path))
                os.chmod(path, 0o600)
            except OSError:
                listening.close()
                continue
            return listening, str(path)
        return None, ""

    def _socket_paths(self) -> Iterator[Path]:
        own = self._path(".sock")
        short = hashlib.sha256(os.fsencode(own)).hexdigest()[:16] + ".sock"
        yield own
        runtime = self._environ.get("XDG_RUNTIME_DIR", "")
        if os.path.isabs(runtime):
            yield Path(runtime) / "midturn" / short
        if hasattr(os, "geteuid"):
            yield Path(tempfile.gettempdir()) / f"midturn-{os.geteuid()}" / short


def _make_private(folder: Path) -> None:
    """A folder that the user alone can enter.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        raise OSError(0, "it is no folder of yours", str(folder))
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of this file.

    Raises:
        OSError: the file cannot be made, or another process holds it.
    """
    if fcntl is None:
        raise OSError(0, "this system has no file locks", str(path))
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            # Somebody looks at it, or has just swept it away.
            time.sleep(_TRY_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise OSError(0, "another process has it open", str(path))


def _is_locked(path: Path) -> bool:
    """Whether the session of this lock file lives."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _sweep(file: Path, lock: Path) -> None:
    """Remove what a dead session left, unless the session has just come back."""
    try:
        descriptor = _locked(lock)
    except OSError:
        return
    try:
        session = _read(file)
        if session is not None and session.socket:
            _unlink(Path(session.socket))
        _unlink(file)
        _unlink(lock)
    finally:
        os.close(descriptor)


def _read(file: Path) -> RunningSession | None:
    try:
        content: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict):
        return None
    match cast("dict[str, object]", content):
        case {
            "id": str(session_id),
            "pid": int(pid),
            "folder": str(folder),
            "started": str(started),
            "store": str(store),
            "demo": bool(demo),
            "state": str(state),
            "socket": str(path),
        } if state in {known.value for known in SessionState}:
            return RunningSession(
                session_id, pid, folder, started, store, demo, SessionState(state), path
            )
        case _:
            return None


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
