"""Read: one window of numbered lines of a file, and the stamp that Edit and Write ask for."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from midturn_core.model.messages import JsonObject
from midturn_core.permission.access import PathAccess
from midturn_core.pictures import HEAD_BYTES, dimensions, media_type_of
from midturn_core.read_files import ReadStamp, content_hasher
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, ToolContext, ToolResult
from midturn_tools._input import check_input, integer, text
from midturn_tools._lines import MAX_BYTES, MAX_LINE, REACH, LineWindow, ShownLine, read_window
from midturn_tools._notebook import MAX_NOTEBOOK_BYTES, NotANotebookError, read_cells
from midturn_tools._paths import (
    FileProblem,
    check_file_path,
    explain,
    open_regular,
    path_access,
    short_path,
)
from midturn_tools._text import (
    HOW_TO_NAME_ENCODINGS,
    MAX_TEXT_BYTES,
    NotTextError,
    TextFormat,
    binary_kind,
    blocks,
    decode,
    detect,
    known_encodings,
    size_text,
)

DEFAULT_LIMIT = 2_000
_OUT_OF_REACH = f"Read looks through the first {size_text(REACH)} of a file only; in a shell, tail and sed go on."

_DESCRIPTION = f"""\
Shows a text file as numbered lines (number, tab, text). Answers hold {DEFAULT_LIMIT:,} lines \
unless limit says otherwise, and at most {MAX_BYTES:,} bytes; when lines follow, the answer names \
the offset at which they begin. Lines beyond {MAX_LINE:,} characters are cut and say how long they \
are. The number and the tab are not part of the file. A notebook (.ipynb) is shown as cells when \
neither offset nor limit is given, otherwise as its raw lines. Pictures and other binary files are \
named with their type and size, not shown."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: absolute, below ~, or relative to the workspace.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "The first line to show, counted from 1.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": f"How many lines to show; {DEFAULT_LIMIT} when not given.",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Request:
    path: str
    offset: int
    limit: int
    whole: bool
    """Neither offset nor limit was given."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A text file ready to be cut into lines: UTF-8 from byte ``start`` of ``stream``.

    ``total`` and ``content_hash`` are None for a file too large to be read as a whole.
    """

    stream: BinaryIO
    start: int
    size: int
    format: TextFormat
    total: int | None
    content_hash: str | None


class ReadTool:
    """Reads text files. ``fallbacks`` are encodings to try when a file is not UTF-8."""

    name = "Read"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self, fallbacks: Sequence[str] = ()) -> None:
        self._fallbacks = known_encodings(fallbacks)

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        # The S1.26 checklist:
        # (a) no side effects: files are opened for reading only;
        # (b) shared mutable state: READ_FILES alone, which is thread-safe; the rest is per call;
        # (c) NON_INTERRUPTIBLE, see below;
        # (d) hooks: their own duty, Read adds nothing to what they see;
        # (e) no contention: two readers of one file do not disturb each other.
        return ConcurrencyBehavior.CONCURRENT_SAFE

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.NON_INTERRUPTIBLE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return None

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, _SCHEMA)
        check_file_path("file_path", text(tool_input, "file_path"))

    def describe(self, tool_input: JsonObject) -> str:
        return short_path(text(tool_input, "file_path"))

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[PathAccess]:
        return (path_access(text(tool_input, "file_path"), context, writes=False),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        request = _Request(
            path=text(tool_input, "file_path"),
            offset=max(1, integer(tool_input, "offset", 1)),
            limit=integer(tool_input, "limit", DEFAULT_LIMIT),
            whole=tool_input.get("offset") is None and tool_input.get("limit") is None,
        )
        return await context.run_blocking(partial(self._read, request, context))

    def _read(self, request: _Request, context: ToolContext) -> ToolResult:
        access = path_access(request.path, context, writes=False)
        try:
            descriptor = open_regular(access.resolved)
            with os.fdopen(descriptor, "rb") as file:
                return self._read_open(file, request, access, context)
        except (OSError, FileProblem) as error:
            return ToolResult(error=explain(error, request.path, access, context.workspace))

    def _read_open(
        self, file: BinaryIO, request: _Request, access: PathAccess, context: ToolContext
    ) -> ToolResult:
        before = os.fstat(file.fileno())
        try:
            source = _survey(file, before.st_size, self._fallbacks)
        except NotTextError as error:
            raise FileProblem(_not_shown(file, str(error), before.st_size)) from None
        result, seen = _answer(source, request, access)
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            # A log that grows is still worth showing, but no stamp may vouch for a mixture.
            note = "[The file changed while it was being read; an edit needs a new read.]"
            return replace(result, output=f"{result.output}\n\n{note}")
        if source.content_hash is not None:
            context.read_files.record(access.resolved, ReadStamp(source.content_hash, seen))
        return result


def _not_shown(file: BinaryIO, kind: str, size: int) -> str:
    """Tool results hold text alone: a picture reaches the model in what the user says."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if media_type_of(head) is None:
        return f"is {kind} ({size_text(size)}); Read shows text only"
    pixels = dimensions(head)
    measure = f"{pixels[0]}×{pixels[1]}, {size_text(size)}" if pixels else size_text(size)
    return (
        f"is {kind} ({measure}); Read shows text only. To show you the picture, the user can write "
        "@ and its path in a prompt, or drag the file into the terminal"
    )


def _survey(file: BinaryIO, size: int, fallbacks: Sequence[str]) -> _Source:
    """Find out what must be known of the whole file, without holding all of it.

    Raises:
        NotTextError: it is no text.
    """
    if size > MAX_TEXT_BYTES:
        return _survey_large(file, size)
    found = detect(file, fallbacks)
    file.seek(0)
    hasher, breaks, last = content_hasher(), 0, b"\n"
    for block in blocks(file):
        hasher.update(block)
        breaks, last = breaks + block.count(b"\n"), block[-1:]
    stream, start = file, len(found.bom)
    if found.encoding != "utf-8":
        # Rare and bounded: these are read as a whole, so that line numbers come out the same way.
        file.seek(0)
        whole = decode(file.read(), fallbacks).text.encode()
        stream, start = io.BytesIO(whole), 0
        breaks, last = whole.count(b"\n"), whole[-1:] or b"\n"
    total = breaks + (last != b"\n" and size > start)
    return _Source(stream, start, size, found, total, hasher.hexdigest())


def _survey_large(file: BinaryIO, size: int) -> _Source:
    head = file.read(1 << 13)
    kind = binary_kind(head)
    if kind is None and head.startswith((b"\xff\xfe", b"\xfe\xff")):
        kind = "UTF-16 text too large to be shown"
    if kind is not None:
        raise NotTextError(kind)
    bom = b"\xef\xbb\xbf" if head.startswith(b"\xef\xbb\xbf") else b""
    return _Source(file, len(bom), size, TextFormat("utf-8", bom), None, None)


def _answer(
    source: _Source, request: _Request, access: PathAccess
) -> tuple[ToolResult, tuple[tuple[int, int], ...]]:
    """The result, and the line ranges it shows."""
    if request.whole and access.resolved.suffix == ".ipynb" and source.size <= MAX_NOTEBOOK_BYTES:
        source.stream.seek(source.start)
        try:
            return _notebook_result(source.stream.read().decode("utf-8", "replace")), ()
        except NotANotebookError:
            # A broken notebook is still a text that someone may want to repair.
            pass
    window = read_window(source.stream, source.start, request.offset, request.limit)
    if not window.lines:
        return _nothing(source, request, window), ()
    first, last = window.lines[0].number, window.lines[-1].number
    body = "\n".join(_numbered(line) for line in window.lines)
    notes = "\n".join(f"[{note}]" for note in _notes(source, window, first, last))
    output = f"{body}\n\n{notes}" if notes else body
    return ToolResult(output, summary=_summary(source, first, last)), ((first, last),)


def _numbered(line: ShownLine) -> str:
    whole = f"{'more than ' if line.endless else ''}{line.full_length:,}"
    cut = f" … [{len(line.text):,} of {whole} characters shown]" if line.cut else ""
    return f"{line.number:>6}\t{line.text}{cut}"


def _nothing(source: _Source, request: _Request, window: LineWindow) -> ToolResult:
    if source.total == 0:
        return ToolResult("[The file is empty.]", summary="empty")
    if window.out_of_reach:
        beyond = f"[Line {request.offset} was not found. {_OUT_OF_REACH}]"
        return ToolResult(beyond, summary="out of reach")
    length = f"the file has {_lines(source.total)}" if source.total is not None else "no such line"
    return ToolResult(f"[Line {request.offset} is past the end: {length}.]", summary="past the end")


def _notes(source: _Source, window: LineWindow, first: int, last: int) -> list[str]:
    notes: list[str] = []
    if source.total is None:
        notes.append(
            f"The file has {size_text(source.size)}. Its lines were not counted, and Edit and "
            f"Write do not change files beyond {size_text(MAX_TEXT_BYTES)}."
        )
    if window.out_of_reach:
        notes.append(f"Lines {first}-{last}. {_OUT_OF_REACH}")
    elif window.more:
        whole = f" of {source.total}" if source.total is not None else ""
        cut = f", cut at {MAX_BYTES:,} bytes" if window.bytes_limit_hit else ""
        notes.append(f"Lines {first}-{last}{whole}{cut}. More follow at offset {last + 1}.")
    elif first > 1 and source.total is not None:
        notes.append(f"Lines {first}-{last} of {source.total}, up to the end.")
    long = next((line for line in window.lines if line.cut), None)
    if long is not None:
        begin, end = MAX_LINE + 1, 2 * MAX_LINE
        notes.append(
            f"Lines beyond {MAX_LINE:,} characters are cut. In a shell, for example, "
            f"sed -n {long.number}p FILE | cut -c {begin}-{end} shows how one goes on."
        )
    if source.format.lossy or window.lossy:
        replaced = "The file has bytes that are not valid UTF-8; they are shown as U+FFFD."
        notes.append(f"{replaced} {HOW_TO_NAME_ENCODINGS}")
    elif source.format.encoding != "utf-8":
        notes.append(f"The file is encoded as {source.format.encoding}.")
    return notes


def _summary(source: _Source, first: int, last: int) -> str:
    shown = last - first + 1
    if source.total is None or shown == source.total:
        return _lines(shown)
    return f"{shown:,} of {_lines(source.total)}"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _notebook_result(notebook: str) -> ToolResult:
    cells = read_cells(notebook)
    shown: list[str] = []
    room = MAX_BYTES
    for cell in cells:
        room -= len(cell.encode()) + 2
        if room < 0 and shown:
            break
        shown.append(cell)
    notes = ["[Cells, not raw lines; with offset 1 the file's own lines are shown.]"]
    if len(shown) < len(cells):
        notes.append(f"[Cells 1-{len(shown)} of {len(cells)}, cut at {MAX_BYTES:,} bytes.]")
    summary = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
    return ToolResult("\n\n".join([*shown, "\n".join(notes)]), summary=summary)
