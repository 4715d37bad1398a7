"""Reads what a search engine prints, in bounded memory, however much and however long it is.

Both engines, ripgrep and our own (``_search_child.py``), print the same: JSON records for lines,
paths that end with NUL for files, with a count and a line end after the NUL for counts.
"""

from __future__ import annotations

import base64
import bisect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from midturn_core.model.messages import JsonValue

LINE_WIDTH = 400
"""Characters of one line that are shown, around the first match."""
_READ_WHOLE = 256 * 1024
"""Bytes of a record up to which it is read as JSON: a longer one would stop the loop for too long
(a line of megabytes with a match in every word)."""
_KEPT = 16 * 1024 * 1024
_TAIL = 64 * 1024
_AFTER_THE_LINE = re.compile(
    rb'\},"line_number":(?P<number>\d+|null),(?:"absolute_offset":\d+,)?'
    rb'"submatches":\[(?:\{"match":\{"text":"(?P<needle>(?:[^"\\]|\\.){1,1000})"\})?'
)
_CONTROL = re.compile("[\0-\x1f\x7f\x80-\x9f\u2028\u2029]")

Accept = Callable[[bytes], bool]
"""Whether the file of a path counts."""


def path_order(path: bytes) -> bytes:
    """Sorts paths folder by folder, so that ``a/b`` comes before ``a.b``."""
    return path.replace(b"/", b"\0")


def shown_name(path: bytes) -> str:
    """A path as one line of text: what is no text or no printable character is escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line of a file: its number (1-based), its text (cut to ``LINE_WIDTH``), whether it
    matched or is context.
    """

    number: int | None
    text: str
    matched: bool


@dataclass(slots=True)
class LineCollector:
    """Takes JSON records until more than ``limit`` matching lines came."""

    accept: Accept
    limit: int
    files: dict[bytes, list[FoundLine]] = field(default_factory=dict[bytes, list[FoundLine]])
    binary: set[bytes] = field(default_factory=set[bytes])
    matches: int = 0
    _splitter: _RecordSplitter = field(default_factory=lambda: _RecordSplitter())
    _accepted: bool = True

    def feed(self, data: bytes) -> bool:
        for record in self._splitter.feed(data):
            if self.matches > self.limit:
                break
            self._take(record)
        return self.matches > self.limit

    def first(self, limit: int) -> list[tuple[bytes, list[FoundLine]]]:
        """The files in path order with their lines, until ``limit`` of these have matched."""
        kept: list[tuple[bytes, list[FoundLine]]] = []
        left = limit
        for path, lines in sorted(self.files.items(), key=lambda item: path_order(item[0])):
            if left <= 0:
                break
            kept.append((path, _until(lines, left)))
            left -= sum(line.matched for line in lines)
        return kept

    def _take(self, record: _Record) -> None:
        fields = record.fields()
        path = _bytes_of(fields.get("path"))
        match record.kind:
            case "begin":
                self._accepted = self.accept(path)
            case "match" | "context" if self._accepted:
                matched = record.kind == "match"
                self.matches += matched
                if self.matches <= self.limit:
                    self.files.setdefault(path, []).extend(_lines(fields, matched))
            case "end" if fields.get("binary_offset") is not None and path in self.files:
                self.binary.add(path)
            case _:
                pass


def _until(lines: list[FoundLine], matches: int) -> list[FoundLine]:
    """The lines before the match that would be one too many."""
    for index, line in enumerate(lines):
        matches -= line.matched
        if matches < 0:
            return lines[:index]
    return lines


@dataclass(slots=True)
class PathCollector:
    """Takes paths; keeps the first ``limit`` in path order and counts them all."""

    accept: Accept
    limit: int
    with_counts: bool = False
    paths: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    """Order key and path."""
    counts: dict[bytes, int] = field(default_factory=dict[bytes, int])
    total: int = 0
    matches: int = 0
    _rest: bytes = b""

    def feed(self, data: bytes) -> bool:
        *entries, self._rest = (self._rest + data).split(b"\n" if self.with_counts else b"\0")
        for entry in entries:
            self._take(*self._parts(entry))
        return False

    def _parts(self, entry: bytes) -> tuple[bytes, int]:
        path, _, count = entry.rpartition(b"\0") if self.with_counts else (entry, b"", b"1")
        return path, int(count)

    def _take(self, path: bytes, count: int) -> None:
        if not self.accept(path):
            return
        self.total += 1
        self.matches += count
        entry = (path_order(path), path)
        if len(self.paths) < self.limit or entry < self.paths[-1]:
            bisect.insort(self.paths, entry)
            self.counts[path] = count
            for _, dropped in self.paths[self.limit :]:
                del self.counts[dropped]
            del self.paths[self.limit :]


@dataclass(frozen=True, slots=True)
class _Record:
    """One line of JSON; of more than ``_KEPT`` bytes only the two ends are there."""

    kept: bytes
    tail: bytes
    size: int

    @property
    def kind(self) -> str:
        """ripgrep writes the type first; only its closing summary does otherwise."""
        return self.kept[:40].partition(b'{"type":"')[2].partition(b'"')[0].decode()

    def fields(self) -> dict[str, JsonValue]:
        if self.size > _READ_WHOLE:
            return _long_fields(self)
        try:
            data: JsonValue = json.loads(self.kept).get("data")
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


class _RecordSplitter:
    """Cuts a byte stream at line ends."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._tail = b""
        self._size = 0

    def feed(self, data: bytes) -> list[_Record]:
        *ended, rest = data.split(b"\n")
        records: list[_Record] = []
        for piece in ended:
            self._add(piece)
            records.append(_Record(bytes(self._kept), self._tail, self._size))
            self._kept, self._tail, self._size = bytearray(), b"", 0
        self._add(rest)
        return records

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        room = max(_KEPT - len(self._kept), 0)
        self._kept += piece[:room]
        if len(piece) > room:
            self._tail = (self._tail + piece[room:])[-_TAIL:]


def _bytes_of(value: JsonValue) -> bytes:
    """ripgrep writes text as ``{"text": …}``, and what is no UTF-8 as ``{"bytes": base64}``."""
    if not isinstance(value, dict):
        return b""
    text, encoded = value.get("text"), value.get("bytes")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    return base64.b64decode(encoded) if isinstance(encoded, str) else b""


def _lines(fields: dict[str, JsonValue], matched: bool) -> list[FoundLine]:
    """The lines of a record: one, or as many as a multi-line match spans."""
    ready = fields.get("excerpt")
    number = fields.get("line_number")
    first = number if isinstance(number, int) else None
    if isinstance(ready, str):
        return [FoundLine(first, ready, matched)]
    raw = _bytes_of(fields.get("lines"))
    start = _first_start(fields.get("submatches"))
    found: list[FoundLine] = []
    for index, line in enumerate(raw.removesuffix(b"\n").split(b"\n")):
        text = cut_line(line.removesuffix(b"\r"), start if index == 0 else 0)
        found.append(FoundLine(None if first is None else first + index, text, matched))
    return found


def _first_start(submatches: JsonValue) -> int:
    first = submatches[0] if isinstance(submatches, list) and submatches else None
    start = first.get("start") if isinstance(first, dict) else None
    return start if isinstance(start, int) else 0


def cut_line(line: bytes, start: int) -> str:
    """A line as text; of a long one ``LINE_WIDTH`` characters around the byte ``start``, and how
    many are missing on each side.
    """
    text = line.decode("utf-8", "replace").replace("\0", "\ufffd")
    if len(text) <= LINE_WIDTH:
        return text
    middle = len(line[:start].decode("utf-8", "ignore"))
    begin = max(min(middle - LINE_WIDTH // 4, len(text) - LINE_WIDTH), 0)
    shown = text[begin : begin + LINE_WIDTH]
    return _marked(shown, f"{begin:,}" if begin else "", f"{len(text) - begin - len(shown):,}")


def _marked(shown: str, before: str, after: str) -> str:
    left = f"[{before} characters before] " if before else ""
    right = f" [{after} characters after]" if after not in ("", "0") else ""
    return f"{left}{shown}{right}"


def _long_fields(record: _Record) -> dict[str, JsonValue]:
    """The same fields of a record that is too long to be read as JSON."""
    start = record.kept[:_READ_WHOLE].decode("utf-8", "replace")
    begin = start.find('"path":') + len('"path":')
    try:
        path, path_end = json.JSONDecoder().raw_decode(start, begin)
    except ValueError:
        return {}
    begin = len(start[:path_end].encode()) + len(b',"lines":{"text":"')
    after = _AFTER_THE_LINE.search(record.kept, begin)
    end = after.start() if after else len(record.kept)
    size = (end if after else record.size) - begin
    after = after or _AFTER_THE_LINE.search(record.tail)
    number, needle = (after["number"], after["needle"]) if after else (b"null", None)
    excerpt = _window(record.kept, begin, end, needle)
    return {
        "path": path,
        "line_number": int(number) if number.isdigit() else None,
        "excerpt": f"{excerpt} [a line of about {size:,} bytes]",
    }


def _window(kept: bytes, begin: int, end: int, needle: bytes | None) -> str:
    """Text around the first match of a long line, or the start of the line."""
    at = max(kept.find(needle, begin, end), begin) if needle else begin
    low = max(at - LINE_WIDTH // 4, begin)
    window = kept[low : min(low + LINE_WIDTH, end)]
    return f"{'… ' if low > begin else ''}{_unescaped(window)} …"


def _unescaped(window: bytes) -> str:
    """A piece out of the middle of a JSON string; what was torn at its ends stays as it is."""
    text = window.decode("utf-8", "replace")
    return text.replace('\\"', '"').replace("\\t", "\t").replace("\\\\", "\\")
