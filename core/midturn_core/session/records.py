"""The lines of a session log: writing one, and reading a file that may be damaged.

A record is one line: ``{"v":1,"seq":7,"crc":"9f3c01aa","type":"user_text","data":{...}}``. The
sequence number, not the place in the file, decides the order; a record that occurs twice counts
once; ``crc`` covers number, type and data. Unknown fields are ignored.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from midturn_core.model.messages import JsonObject, JsonValue

VERSION = 1
RECORD_START = b'{"v":'


class NewerVersionError(ValueError):
    """The log was written by a newer release; it is not touched."""


@dataclass(frozen=True, slots=True)
class Record:
    seq: int
    type: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class ReadLog:
    """What could be read, in order of the sequence numbers, and what was wrong."""

    records: tuple[Record, ...]
    bad_lines: int = 0
    repeated: int = 0
    misplaced: int = 0
    torn_tail: bytes = b""
    """What stands after the last complete line."""
    clean_end: int = 0
    """The offset where the torn tail begins."""

    @property
    def problems(self) -> tuple[str, ...]:
        """One phrase per kind of damage, for the user."""
        found = [
            (self.bad_lines, "{} unreadable line(s) skipped"),
            (self.repeated, "{} repeated record(s) counted once"),
            (self.misplaced, "{} record(s) put back in order"),
            (bool(self.torn_tail), "the torn end was cut off"),
        ]
        return tuple(text.format(int(count)) for count, text in found if count)


def encode(record: Record) -> bytes:
    """One line with its line end."""
    data = _canonical(record.data)
    crc = _checksum(record.seq, record.type, data)
    line = (
        f'{{"v":{VERSION},"seq":{record.seq},"crc":"{crc}",'
        f'"type":{json.dumps(record.type)},"data":{data}}}\n'
    )
    return line.encode()


def read_log(content: bytes) -> ReadLog:
    """Every record that is whole.

    Raises:
        NewerVersionError: a record has a version that this release does not know.
    """
    clean_end = content.rfind(b"\n") + 1
    tail = content[clean_end:]
    records: dict[int, Record] = {}
    bad = repeated = misplaced = highest = 0
    lines = [*content[:clean_end].split(b"\n"), *([tail] if _decode(tail) else [])]
    if lines[-1:] == [tail] and tail:
        tail, clean_end = b"", len(content)  # whole but for its line end
    for line in lines:
        if not line.strip():
            continue
        found, damaged = _records_of(line)
        bad += damaged
        for record in found:
            if record.seq in records:
                repeated += 1
                continue
            misplaced += record.seq < highest
            highest = max(highest, record.seq)
            records[record.seq] = record
    ordered = tuple(records[seq] for seq in sorted(records))
    return ReadLog(ordered, bad, repeated, misplaced, tail, clean_end)


def _records_of(line: bytes) -> tuple[list[Record], bool]:
    """The records on a line, and whether something on it could not be read.

    A stub that a later record was glued to is skipped: reading resumes at the next record start.
    """
    whole = _decode(line)
    if whole is not None:
        return [whole], False
    starts = list(_occurrences(line, RECORD_START))
    for start in starts[1:] or (starts if starts and starts[0] > 0 else []):
        record = _decode(line[start:])
        if record is not None:
            return [record], True
    return [], True


def _occurrences(line: bytes, needle: bytes) -> Iterator[int]:
    at = line.find(needle)
    while at >= 0:
        yield at
        at = line.find(needle, at + 1)


def _decode(line: bytes) -> Record | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, JsonValue], value)
    version = fields.get("v")
    if isinstance(version, int) and version > VERSION:
        raise NewerVersionError(f"it has format {version}, this release knows {VERSION}")
    match fields:
        case {"seq": int(seq), "crc": str(crc), "type": str(kind), "data": dict(data)}:
            intact = crc == _checksum(seq, kind, _canonical(data))
            return Record(seq, kind, data) if intact else None
        case _:
            return None


def _canonical(data: JsonObject) -> str:
    text = json.dumps(dict(data), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(dict(data), separators=(",", ":"), sort_keys=True)
    return text


def _checksum(seq: int, kind: str, data: str) -> str:
    return f"{zlib.crc32(f'{seq}:{kind}:{data}'.encode()):08x}"
