"""What sessions of a folder that do not run have left in the queue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from midturn_cli.outside_queue import running_sessions, session_stores, shared_store
from midturn_core.config import QueueConfig
from midturn_core.errors import QueueStoreError, SessionError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import QueuedInputPriority, QueueFilter
from midturn_core.session.store import SessionStore

MAIN = "main"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A session that does not run, and how many inputs wait in it."""

    id: str
    waiting: int
    demo: bool

    @property
    def way_back(self) -> str:
        return _way_back(self.id, demo=self.demo)


def way_back(session_id: str) -> str:
    """The command that goes on with a session; one that is not stored here counts as none of the
    demo.
    """
    _, demos = session_stores()
    return _way_back(session_id, demo=demos.named(session_id) is not None)


def _way_back(session_id: str, *, demo: bool) -> str:
    return f"midturn {'demo ' if demo else ''}-r {session_id}"


def find_leftovers(config: QueueConfig, workspace: Path) -> list[Leftover]:
    """The newest session first. Waits for the store, so it is for a thread.

    Raises:
        MidturnError: nothing is shared.
        QueueStoreError: the store cannot be used.
    """
    with shared_store(config) as repository:
        return leftovers_in(repository, workspace)


def leftover_notice(config: QueueConfig, workspace: Path) -> str:
    """One line about them for a new session; empty when there is nothing to say, or no store that
    could be asked: whoever uses it tells what is wrong with it. Waits for the store.
    """
    if config.backend == "memory":
        return ""
    try:
        left = find_leftovers(config, workspace)
    except QueueStoreError:
        return ""
    if not left:
        return ""
    newest = left[0]
    one = newest.waiting == 1
    waits, them = ("1 input waits", "it") if one else (f"{newest.waiting} inputs wait", "them")
    more = f" ({len(left) - 1} more such: midturn sessions)" if len(left) > 1 else ""
    return (
        f"{waits} in an earlier session of this folder: {newest.way_back} goes on with it, "
        f"midturn queue --to {newest.id} shows {them}, "
        f"midturn queue clear --to {newest.id} removes {them}{more}"
    )


def leftovers_in(repository: MessageQueueRepository, workspace: Path) -> list[Leftover]:
    """The same, of a store that is open.

    Raises:
        QueueStoreError: it cannot be used.
    """
    running = {session.id for session in running_sessions().list()}
    sessions = {
        context.session
        for context in repository.contexts()
        if context.agent == MAIN and context.session not in running
    }
    found: list[Leftover] = []
    for demo, store in enumerate(session_stores()):
        for session_id in sessions:
            if count := _left_in(repository, store, session_id, workspace):
                found.append(Leftover(session_id, count, bool(demo)))
    return sorted(found, key=lambda leftover: leftover.id, reverse=True)


def _left_in(
    repository: MessageQueueRepository, store: SessionStore, session_id: str, workspace: Path
) -> int:
    summary = store.named(session_id)
    if summary is None or summary.damaged or summary.workspace != str(workspace):
        return 0
    context = AgentRuntimeId(session_id, MAIN)
    # What a killed run had claimed is in the queue again, unless its log holds it.
    repository.recover(context)
    everything = QueueFilter(context, exclude_held=False)
    waiting = repository.list_by_max_priority(QueuedInputPriority.LATER, everything)
    if not waiting:
        return 0
    try:
        store.check(summary)
        delivered = store.delivered(summary)
    except SessionError:
        return 0  # it runs after all, or cannot be read
    return sum(item.uuid not in delivered and not item.expired for item in waiting)
