"""The queue of a session as other programs of the user reach it: which session, and its store."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator
from dataclasses import dataclass

from midturn_cli.launch import workspace
from midturn_cli.options import Arguments, UsageError
from midturn_core import paths
from midturn_core.config import QueueConfig
from midturn_core.errors import MidturnError, SessionError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.open_store import store_name, store_opener
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.session.running import RunningSession, RunningSessions
from midturn_core.session.store import SessionStore, SessionSummary

_WHOLE_ID = re.compile(r"\d{8}-\d{6}-[0-9a-z]{6}")
IN_MEMORY = (
    'the queue is in memory only ([queue] backend = "memory"), so nothing reaches it from outside; '
    'set it to "sqlite" or "redis"'
)


@dataclass(frozen=True, slots=True)
class Target:
    """A session to act on; ``running`` is None when it does not run on this machine."""

    id: str
    running: RunningSession | None = None

    @property
    def context_id(self) -> AgentRuntimeId:
        return AgentRuntimeId(self.id)


@dataclass(frozen=True, slots=True)
class OutsideQueue:
    """The queue of one session through its store."""

    target: Target
    manager: MessageQueueManager

    def wake(self) -> bool:
        """Let the session look at once; False when it finds out by itself."""
        running = self.target.running
        return running is not None and running_sessions().wake(running)


@contextlib.contextmanager
def outside_queue(arguments: Arguments, config: QueueConfig) -> Generator[OutsideQueue]:
    """The queue that ``--to``, ``--last`` or nothing names.

    Raises:
        UsageError, SessionError: it is not clear which, or there is no such session.
        MidturnError: its queue cannot be reached from here.
        QueueStoreError: the store cannot be used.
    """
    target = find_target(arguments, config)
    running = target.running
    here = store_name(config, paths.queue_file(os.environ))
    if running is not None and running.store != here:
        raise MidturnError(
            f"session {target.id} keeps its queue in {running.store}, and this command looks in "
            f"{here}; give it the session's configuration with --config"
        )
    with shared_store(config) as repository:
        yield OutsideQueue(target, MessageQueueManager(repository, config.cap))


@contextlib.contextmanager
def shared_store(config: QueueConfig) -> Generator[MessageQueueRepository]:
    """The configured store, opened and closed.

    Raises:
        MidturnError: nothing is shared.
        QueueStoreError: it cannot be used.
    """
    opener = store_opener(config, paths.queue_file(os.environ))
    if opener is None:
        raise MidturnError(IN_MEMORY)
    repository = opener()
    try:
        yield repository
    finally:
        repository.close()


def running_sessions() -> RunningSessions:
    return RunningSessions(paths.running_folder(os.environ))


def session_stores() -> list[SessionStore]:
    """Those of the demo count too."""
    return [SessionStore(paths.sessions_folder(os.environ, demo=demo)) for demo in (False, True)]


def find_target(arguments: Arguments, config: QueueConfig) -> Target:
    """The session that the command line names.

    Raises:
        UsageError, SessionError: it is not clear which, or there is no such session.
    """
    name, last = arguments.text("to"), arguments.is_on("last")
    if name is not None and last:
        raise UsageError("--to and --last cannot be used together; give one of them")
    running = running_sessions().list()
    if last:
        return _latest(running)
    if name is None:
        return _only_one(running)
    if not name:
        raise UsageError("--to needs the ID of a session; midturn sessions lists them")
    return _named(name, running, config)


def _latest(running: list[RunningSession]) -> Target:
    folder = workspace()
    stored = [s for store in session_stores() for s in store.list(folder) if s.workspace]
    if stored:
        return _target(max(stored, key=lambda summary: summary.modified).id, running)
    here = [session for session in running if session.folder == str(folder)]
    if not here:
        raise SessionError(f"there is no session of {folder}")
    return Target(here[-1].id, here[-1])


def _only_one(running: list[RunningSession]) -> Target:
    folder = str(workspace())
    here = [session for session in running if session.folder == folder]
    candidates = here or running
    if len(candidates) == 1:
        return Target(candidates[0].id, candidates[0])
    if not candidates:
        raise SessionError(
            "no session runs; start one with midturn, or name one that does not run with --to or "
            "--last"
        )
    listed = "; ".join(f"{s.id} ({s.state.value}) in {s.folder}" for s in candidates)
    where = "in this folder" if here else "and none of them in this folder"
    raise SessionError(
        f"{len(candidates)} sessions run {where}: {listed}; choose one with --to SESSION"
    )


def _named(name: str, running: list[RunningSession], config: QueueConfig) -> Target:
    fitting = [session for session in running if session.id.startswith(name)]
    exact = [session for session in fitting if session.id == name]
    if len(exact or fitting) == 1:
        found = (exact or fitting)[0]
        return Target(found.id, found)
    if len(fitting) > 1:
        listed = ", ".join(session.id for session in fitting)
        raise SessionError(f"several running sessions begin with {name!r}: {listed}")
    try:
        return Target(_stored(name).id)
    except SessionError:
        # A session of another machine that shares the server is known by its whole id alone.
        if config.backend == "redis" and _WHOLE_ID.fullmatch(name):
            return Target(name)
        raise


def _stored(name: str) -> SessionSummary:
    failures: list[SessionError] = []
    for store in session_stores():
        try:
            return store.find(name)
        except SessionError as failure:
            failures.append(failure)
    raise failures[0]


def _target(session_id: str, running: list[RunningSession]) -> Target:
    return Target(session_id, next((s for s in running if s.id == session_id), None))
