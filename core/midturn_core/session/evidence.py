"""``read_evidence``: everything that a session's log says, as it stands there, mended nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from midturn_core.conversation import ConversationChange
from midturn_core.errors import SessionError
from midturn_core.ledger.entries import LedgerBatch
from midturn_core.model.messages import UserPart
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.session.codec import change_from_json
from midturn_core.session.ledger_codec import BATCH_RECORD, batch_from_json
from midturn_core.session.log import read_regular
from midturn_core.session.records import NewerVersionError, ReadLog, Record, read_log

MISSING_NAMED = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """The changes and the ledger in the order of their numbers; one sentence per damage."""

    changes: tuple[ConversationChange, ...]
    ledger: tuple[LedgerBatch, ...]
    damage: tuple[str, ...]


def read_evidence(path: Path) -> Evidence:
    """Read a log and change nothing; another Midturn may be writing to it.

    Raises:
        SessionError: it cannot be read, holds no record, or a newer release wrote it.
    """
    try:
        log = read_log(read_regular(path))
    except (OSError, NewerVersionError) as error:
        raise SessionError(f"cannot read the session {path}: {error}") from error
    if not log.records:
        raise SessionError(f"cannot read the session {path}: there is no record in it")
    changes: list[ConversationChange] = []
    ledger: list[LedgerBatch] = []
    damage = list(_damage(log))
    for record in log.records:
        try:
            _sort(record, changes, ledger)
        except ValueError as error:
            damage.append(f"Record {record.seq} ({record.type}) cannot be used: {error}.")
    return Evidence(tuple(changes), tuple(ledger), tuple(damage))


def _sort(record: Record, changes: list[ConversationChange], ledger: list[LedgerBatch]) -> None:
    if record.type == BATCH_RECORD:
        ledger.append(batch_from_json(record.data))
    elif (change := change_from_json(record.type, record.data, _named)) is not None:
        changes.append(change)


def _damage(log: ReadLog) -> Iterator[str]:
    for phrase in log.problems:
        yield f"The file is damaged: {phrase}."
    missing = _missing([record.seq for record in log.records])
    if missing:
        named = ", ".join(map(str, missing[:MISSING_NAMED]))
        more = len(missing) - MISSING_NAMED
        yield f"Records are missing: {named}{f' and {more} more' if more > 0 else ''}."


def _missing(present: Sequence[int]) -> list[int]:
    """A log counts its records from 1."""
    known = set(present)
    return [seq for seq in range(1, max(known)) if seq not in known]


def _named(ref: AttachmentRef) -> UserPart:
    """Stands for a picture, whose file is not looked at."""
    return f"[{ref.name}]"
