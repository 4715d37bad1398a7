"""The folder of all sessions: starting one, finding them, resuming one.

A session is one file ``<id>.jsonl``. Its first record says in which folder it began. Its pictures
are files in the folder ``<id>.files``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from midturn_core.conversation import (
    AssistantAdded,
    Conversation,
    ConversationChange,
    ResultsAdded,
    UserTextAdded,
)
from midturn_core.errors import ConversationError, SessionError
from midturn_core.ids import new_id
from midturn_core.ledger.entries import LedgerBatch
from midturn_core.model.messages import JsonObject, JsonValue, Outcome, ToolUseResult, Usage
from midturn_core.queue.attachments import AttachmentFinder
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.read_files import ReadStamp
from midturn_core.session.codec import (
    change_from_json,
    change_to_json,
    stamp_from_json,
    stamp_to_json,
    usage_from_json,
    usage_to_json,
)
from midturn_core.session.files import SessionFiles, files_folder
from midturn_core.session.ledger_codec import BATCH_RECORD, batch_to_json
from midturn_core.session.log import SessionLog, read_regular
from midturn_core.session.records import NewerVersionError, Record, read_log

SUFFIX = ".jsonl"
PREVIEW_BYTES = 65_536
LOST_RESULT = (
    "stopped: the program ended while this call was open; it may or may not have taken effect"
)
LOST_MESSAGE = "(A message here was lost when the session file was damaged.)"


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A line of the session list."""

    id: str
    path: Path
    workspace: str
    """Empty when the record that says it is lost."""
    modified: float
    """Seconds since the epoch, for display and for sorting."""
    first_prompt: str
    damaged: bool = False
    """Nothing in the file can be read."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What the first record says. ``nonce`` marks the reminders of the session's history."""

    id: str
    workspace: str
    nonce: str
    created: str

    @classmethod
    def new(cls, session_id: str, workspace: Path) -> SessionHead:
        created = datetime.now().astimezone().isoformat()
        return cls(session_id, str(workspace), SystemReminderFormatter.new_nonce(), created)

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "workspace": self.workspace,
            "nonce": self.nonce,
            "created": self.created,
        }

    def seen_in(self, data: JsonObject) -> SessionHead:
        """This head with what a record says; what is missing there stays."""
        known = {key: data.get(key) for key in ("workspace", "nonce", "created")}
        return replace(self, **{key: v for key, v in known.items() if isinstance(v, str) and v})


class Session:
    """One open session: records what changes. Nothing is written before the first change."""

    def __init__(self, head: SessionHead, log: SessionLog) -> None:
        self.head = head
        self.log = log
        self._keeping = threading.Lock()
        self.files = SessionFiles(files_folder(log.path))

    @property
    def id(self) -> str:
        return self.head.id

    def record_change(self, change: ConversationChange) -> None:
        """The journal of the session's conversation."""
        self._append(*change_to_json(change))

    def record_stamp(self, path: Path, stamp: ReadStamp) -> None:
        self._append("read_file", stamp_to_json(path, stamp))

    def record_usage(self, usage: Usage) -> None:
        """The tokens of one turn."""
        self._append("usage", usage_to_json(usage))

    def record_batch(self, batch: LedgerBatch) -> None:
        """An entry of the ledger; the results themselves follow in the history."""
        self._append(BATCH_RECORD, batch_to_json(batch))

    def keep(self) -> None:
        """Make a session that can be resumed of one in which nothing was said yet. Any thread."""
        with self._keeping:
            if self.log.empty:
                self.log.append("session", self.head.to_json())

    def sync(self) -> None:
        self.log.sync()

    def close(self) -> None:
        self.log.close()

    def _append(self, kind: str, data: JsonObject) -> None:
        self.keep()
        self.log.append(kind, data)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A session as it was: the changes that rebuild it, what it had read, what to tell."""

    session: Session
    changes: tuple[ConversationChange, ...]
    stamps: dict[Path, ReadStamp]
    usage: Usage
    warnings: tuple[str, ...]
    delivered: frozenset[str] = frozenset()
    """The uuids of all queued inputs that the log holds (D12)."""


class SessionStore:
    """All sessions of a user, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, workspace: Path) -> Session:
        session_id = _new_session_id()
        log = SessionLog(self.folder / f"{session_id}{SUFFIX}")
        return Session(SessionHead.new(session_id, workspace), log)

    def set_aside(self, session: Session) -> str:
        """Keep what an open session has recorded under a new id, which is returned; the session
        itself goes on with its id and an empty log.

        Raises:
            SessionError: it cannot be kept; nothing was changed.
        """
        old, kept_id = session.log, _new_session_id()
        if old.unsaved:
            raise SessionError("the history so far is not saved, so it was not set aside")
        kept_path = old.path.with_name(f"{kept_id}{SUFFIX}")
        try:
            # Both have the files: what waits in the queue may refer to them too.
            session.files.copy_to(files_folder(kept_path))
            old.path.rename(kept_path)
        except OSError as error:
            raise SessionError(f"the history cannot be set aside: {error.strerror}") from error
        old.close()
        session.log = SessionLog(old.path, old.on_trouble)
        return kept_id

    def list(self, workspace: Path | None = None) -> list[SessionSummary]:
        """The newest first. With a folder: its sessions, and those whose damage hides whose they
        are.
        """
        found = [_summarise(path) for path in self.folder.glob(f"*{SUFFIX}")]
        wanted = [s for s in found if workspace is None or s.workspace in (str(workspace), "")]
        return sorted(wanted, key=lambda summary: summary.modified, reverse=True)

    def latest(self, workspace: Path) -> SessionSummary:
        """The session of this folder that was used last.

        Raises:
            SessionError: there is none.
        """
        usable = [s for s in self.list(workspace) if s.workspace]
        if not usable:
            raise SessionError(f"there is no earlier session of {workspace}")
        return usable[0]

    def find(self, text: str) -> SessionSummary:
        """The session with this id or this beginning of an id.

        Raises:
            SessionError: none or several fit.
        """
        fitting = [summary for summary in self.list() if summary.id.startswith(text)]
        exact = [summary for summary in fitting if summary.id == text]
        if len(exact or fitting) != 1:
            how_many = "no session" if not fitting else f"{len(fitting)} sessions"
            raise SessionError(f"{how_many} with an id that begins with {text!r}; see /resume")
        return (exact or fitting)[0]

    def named(self, session_id: str) -> SessionSummary | None:
        """The session with exactly this id."""
        path = self.folder / f"{session_id}{SUFFIX}"
        return _summarise(path) if path.parent == self.folder and path.is_file() else None

    def delivered(self, summary: SessionSummary) -> frozenset[str]:
        """The uuids of all queued inputs that the session's log holds (D12). Reads only.

        Raises:
            SessionError: the file cannot be read.
        """
        try:
            records = read_log(read_regular(summary.path)).records
        except (OSError, NewerVersionError) as error:
            raise SessionError(f"cannot read the session {summary.path}: {error}") from error
        return frozenset(_read_records(records, lambda ref: ref.name).delivered)

    def check(self, summary: SessionSummary) -> None:
        """
        Raises:
            SessionError: ``resume`` would fail now.
        """
        SessionLog.check(summary.path)

    def recorded(self, session: Session) -> tuple[ConversationChange, ...]:
        """Everything that an open session has recorded, also what a compaction replaced; the
        calls that are open now have no results in it. Reads only; may be called on any thread.

        Raises:
            SessionError: the file cannot be read, or it lacks what the disk refused.
        """
        if session.log.unsaved:
            raise SessionError(f"the session is not saved completely ({session.log.path})")
        try:
            records = read_log(read_regular(session.log.path)).records
        except (OSError, NewerVersionError) as error:
            raise SessionError(f"cannot read the session {session.log.path}: {error}") from error
        # Of its own, since the session's is used on the loop meanwhile.
        files = SessionFiles(session.files.folder)
        return tuple(_read_records(records, files.find).changes)

    def resume(self, summary: SessionSummary, workspace: Path) -> Resumed:
        """Open a session again; its history is made valid whatever the file lost.

        Raises:
            SessionError: it cannot be read, is too new, or another Midturn has it open.
        """
        opened = SessionLog.open(summary.path)
        head = SessionHead.new(summary.id, workspace)
        heads = [record for record in opened.records if record.type == "session"]
        for record in heads:
            head = head.seen_in(record.data)
        if not heads and not opened.log.empty:
            opened.log.append("session", head.to_json())  # damage has taken the first one
        return _rebuild(Session(head, opened.log), opened.records, opened.warnings)


def _new_session_id() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}-{new_id('x')[2:8]}"


@dataclass(slots=True)
class _Recorded:
    """What the records of a session say, made valid as far as they go."""

    changes: list[ConversationChange] = field(default_factory=list[ConversationChange])
    stamps: dict[Path, ReadStamp] = field(default_factory=dict[Path, ReadStamp])
    usage: Usage = Usage()
    delivered: set[str] = field(default_factory=set[str])
    unknown: int = 0
    mended: int = 0
    conversation: Conversation = field(init=False)

    def __post_init__(self) -> None:
        self.conversation = Conversation(self.changes.append)


def _read_records(records: Iterable[Record], find: AttachmentFinder) -> _Recorded:
    found = _Recorded()
    for record in records:
        try:
            if record.type == "read_file":
                path, stamp = stamp_from_json(record.data)
                found.stamps[path] = stamp
            elif record.type == "usage":
                found.usage += usage_from_json(record.data)
            else:
                change = change_from_json(record.type, record.data, find)
                if isinstance(change, UserTextAdded | ResultsAdded):
                    found.delivered.update(change.inputs)
                found.mended += 0 if change is None else _apply_mending(found.conversation, change)
        except (ValueError, ConversationError):
            found.unknown += 1
    return found


def _rebuild(session: Session, records: Iterable[Record], warnings: tuple[str, ...]) -> Resumed:
    found = _read_records(records, session.files.find)
    if closed := found.conversation.close_pending(LOST_RESULT, Outcome.STOPPED):
        # Written too, so that the next resume has nothing to mend here and nothing to say.
        session.record_change(found.changes[-1])
        found.mended += closed
    said = [
        (found.unknown, "{} record(s) could not be used"),
        (session.files.lost, "{} picture(s) are missing or damaged and were left out"),
        (
            found.mended,
            "{} place(s) where the end of a call or a message was missing were filled in",
        ),
    ]
    notes = [text.format(count) for count, text in said if count]
    told = (*warnings, f"Resuming the session: {'; '.join(notes)}.") if notes else warnings
    return Resumed(
        session,
        tuple(found.changes),
        found.stamps,
        found.usage,
        told,
        frozenset(found.delivered),
    )


def _apply_mending(conversation: Conversation, change: ConversationChange) -> int:
    """Apply a change to a history in which records before it may be missing.

    Returns how many stand-ins were needed.
    """
    mended = 0
    if isinstance(change, ResultsAdded):
        return _apply_results(conversation, change)
    if isinstance(change, UserTextAdded | AssistantAdded):
        mended += conversation.close_pending(LOST_RESULT, Outcome.STOPPED)
    if isinstance(change, AssistantAdded) and not conversation.awaits_model:
        conversation.add_user_text(LOST_MESSAGE)
        mended += 1
    conversation.apply(change)
    return mended


def _apply_results(conversation: Conversation, change: ResultsAdded) -> int:
    given = {result.tool_use_id: result for result in change.results}
    pending = conversation.pending
    missing = sum(use.id not in given for use in pending)
    if pending:
        results = [
            given.get(use.id) or ToolUseResult(use.id, use.name, Outcome.STOPPED, LOST_RESULT)
            for use in pending
        ]
        conversation.add_results(results, change.parts, change.inputs)
        return missing
    conversation.add_user_text(*change.parts, inputs=change.inputs)
    return 1


def _summarise(path: Path) -> SessionSummary:
    """What the list shows, from the first records if they say it; a file without any is marked."""
    session_id = path.name.removesuffix(SUFFIX)
    workspace = prompt = ""
    readable = False
    try:
        modified = path.stat().st_mtime
        records = _preview(read_regular(path, PREVIEW_BYTES))
        if not any(record.type == "session" for record in records):
            records = _preview(read_regular(path))
    except OSError:
        return SessionSummary(session_id, path, "", 0.0, "", damaged=True)
    for record in sorted(records, key=_is_no_head):
        readable = True
        if record.type == "session":
            workspace = str(record.data.get("workspace", ""))
        elif record.type == "user_text":
            texts = record.data.get("texts")
            prompt = str(texts[0]) if isinstance(texts, list) and texts else ""
            break
    return SessionSummary(session_id, path, workspace, modified, prompt, damaged=not readable)


def _is_no_head(record: Record) -> bool:
    return record.type != "session"


def _preview(head: bytes) -> tuple[Record, ...]:
    try:
        return read_log(head).records
    except NewerVersionError:
        return ()
