"""Opening the session that a launch asks for: a new one, or an earlier one as it was."""

from __future__ import annotations

import os
from dataclasses import dataclass

from midturn_cli.launch import Launch, SessionStart
from midturn_core import paths
from midturn_core.conversation import Conversation
from midturn_core.errors import SessionError
from midturn_core.read_files import ReadFiles
from midturn_core.session.store import Resumed, Session, SessionStore, SessionSummary


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session with what an earlier run of it has left; ``resumed`` is None for a new one."""

    store: SessionStore
    session: Session
    resumed: Resumed | None

    def conversation(self) -> Conversation:
        """Its history, which from now on is recorded."""
        conversation = Conversation(self.session.record_change)
        if self.resumed:
            conversation.replay(self.resumed.changes)
        return conversation

    def read_files(self) -> ReadFiles:
        """What its main agent has read (D31)."""
        stamps = self.resumed.stamps if self.resumed else None
        return ReadFiles(stamps, self.session.record_stamp)


def open_session(launch: Launch) -> OpenedSession:
    """Nothing is written yet.

    Raises:
        SessionError: an earlier one cannot be found or opened.
    """
    store = SessionStore(paths.sessions_folder(os.environ, demo=launch.demo))
    resumed = _resume(launch, store)
    session = resumed.session if resumed else store.create(launch.workspace)
    return OpenedSession(store, session, resumed)


def _resume(launch: Launch, store: SessionStore) -> Resumed | None:
    match launch.session:
        case SessionStart.NEW | SessionStart.CHOOSE:
            return None
        case SessionStart.LATEST:
            return store.resume(store.latest(launch.workspace), launch.workspace)
        case SessionStart.NAMED:
            return store.resume(_named(launch, store), launch.workspace)


def _named(launch: Launch, store: SessionStore) -> SessionSummary:
    try:
        return store.find(launch.session_id)
    except SessionError:
        if not any(summary.id.startswith(launch.session_id) for summary in store.list()):
            _say_if_it_is_elsewhere(launch)
        raise


def _say_if_it_is_elsewhere(launch: Launch) -> None:
    """The sessions of the demo have a folder of their own, so that an id of one is none here."""
    other = SessionStore(paths.sessions_folder(os.environ, demo=not launch.demo))
    try:
        found = other.find(launch.session_id)
    except SessionError:
        return
    whose, command = ("no", "midturn") if launch.demo else ("a", "midturn demo")
    raise SessionError(f"{found.id} is {whose} session of the demo: {command} -r {found.id}")
