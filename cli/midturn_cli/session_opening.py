"""Opening the session that a launch asks for: a new one, or an earlier one as it was."""

from __future__ import annotations

import os
from dataclasses import dataclass

from midturn_cli.launch import Launch, SessionStart
from midturn_core import paths
from midturn_core.conversation import Conversation
from midturn_core.read_files import ReadFiles
from midturn_core.session.store import Resumed, Session, SessionStore


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
            return store.resume(store.find(launch.session_id), launch.workspace)
