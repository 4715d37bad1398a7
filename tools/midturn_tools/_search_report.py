"""What a search tells the model: results in path order, bounded, and everything left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midturn_core.tool import ToolResult
from midturn_tools._paths import shown_path
from midturn_tools._process import Ending
from midturn_tools._ripgrep import SearchMode, SearchRequest
from midturn_tools._search import Names, SearchEnd
from midturn_tools._search_results import FoundLine, LineCollector, PathCollector

MAX_HEAD_LIMIT = 2_000
_MAX_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True)
class Search:
    """One validated call; ``limit`` is how many lines or files are shown."""

    request: SearchRequest
    names: Names
    limit: int


def content_result(search: Search, lines: LineCollector, end: SearchEnd) -> ToolResult:
    """The matching lines under their files, bounded, with what was left out."""
    if end.problem:
        return ToolResult(error=end.problem)
    kept = lines.first(search.limit)
    body, cut = _render(search, kept, lines.binary)
    if end.ending is Ending.CANCELLED:
        return ToolResult(body, summary="stopped", stopped=True)
    if not lines.matches:
        return _nothing(search, end)
    shown = sum(line.matched for _, found in kept for line in found)
    heading = (
        f"{shown:,} matching {plural(shown, 'line')} in {plural(len(kept), 'file', counted=True)}"
    )
    notes = end_notes(end)
    if lines.matches > shown:
        heading = f"The first {heading}; there are more"
        notes.append(
            "MORE lines match: narrow path, glob or pattern, raise head_limit "
            f"(at most {MAX_HEAD_LIMIT}), or use mode files or count."
        )
    if cut:
        notes.append(
            f"CUT at {_MAX_CHARACTERS:,} characters: narrow the search or use mode files or count."
        )
    output = joined(f"{heading}:", f"\n{body}", [*notes, skipped_note(search.request)])
    more = "+" if lines.matches > shown else ""
    return ToolResult(output, summary=f"{shown:,}{more} {plural(shown, 'match', 'es')}")


def _render(
    search: Search, files: list[tuple[bytes, list[FoundLine]]], binary: set[bytes]
) -> tuple[str, bool]:
    """The lines under their files, and whether they had to be cut."""
    out: list[str] = []
    size = 0
    for path, found in files:
        heading = search.names.show(path) + (" (binary)" if path in binary else "")
        for piece in ("", heading, *_file_lines(found)) if out else (heading, *_file_lines(found)):
            size += len(piece) + 1
            if size > _MAX_CHARACTERS:
                return "\n".join(out), True
            out.append(piece)
    return "\n".join(out), False


def _file_lines(found: list[FoundLine]) -> list[str]:
    """``12:text`` for a match, ``12-text`` for its context, ``--`` where lines are left out."""
    context = any(not line.matched for line in found)
    out: list[str] = []
    last: int | None = None
    for line in found:
        if context and last is not None and line.number is not None and line.number > last + 1:
            out.append("--")
        number = "?" if line.number is None else line.number
        out.append(f"{number}{':' if line.matched else '-'}{line.text}")
        last = line.number
    return out


def files_result(search: Search, paths: PathCollector, end: SearchEnd) -> ToolResult:
    """The files, with counts if asked for, bounded, with what was left out."""
    if end.problem:
        return ToolResult(error=end.problem)
    counting = search.request.mode is SearchMode.COUNT
    names = [
        f"{search.names.show(path)}{f':{paths.counts[path]}' if counting else ''}"
        for _, path in paths.paths
    ]
    body = "\n".join(names)
    if end.ending is Ending.CANCELLED:
        return ToolResult(body, summary="stopped", stopped=True)
    if not paths.total:
        return _nothing(search, end)
    heading = f"{paths.total:,} {plural(paths.total, 'file')}"
    if counting:
        heading = f"{paths.matches:,} matching {plural(paths.matches, 'line')} in {heading}"
    notes = end_notes(end)
    if paths.total > len(names):
        notes.append(
            f"Only the first {len(names)} files are listed: narrow path, glob or pattern, or "
            f"raise head_limit (at most {MAX_HEAD_LIMIT})."
        )
    output = joined(f"{heading}:", body, [*notes, skipped_note(search.request)])
    return ToolResult(output, summary=heading)


def _nothing(search: Search, end: SearchEnd) -> ToolResult:
    listing = search.request.mode is SearchMode.LIST
    if end.ending is Ending.TIMED_OUT:
        hint = "" if listing else ", or use a simpler pattern (one like (a+)+ can take for ever)"
        return ToolResult(
            error=f"The search was ended after {end.seconds:.0f} s and had found nothing until "
            f"then: narrow the path or the file pattern{hint}."
        )
    where = shown_path(search.names.access.written, search.names.workspace)
    notes = [*end_notes(end), skipped_note(search.request)]
    place = "the workspace" if where == "." else where
    what = f"No files match {search.request.glob.lstrip('/')}" if listing else "No matches"
    summary = "no files" if listing else "no matches"
    return ToolResult(joined(f"{what} in {place}.", "", notes), summary=summary)


def joined(heading: str, body: str, notes: Sequence[str]) -> str:
    """Heading, body and the notes that are not empty, each part on lines of its own."""
    return "\n".join(part for part in (heading, body, *(f"[{n}]" for n in notes if n)) if part)


def plural(count: int, word: str, ending: str = "s", *, counted: bool = False) -> str:
    """The word in the right number, with the count before it if wanted."""
    number = f"{count:,} " if counted else ""
    return f"{number}{word if count == 1 else word + ending}"


def skipped_note(request: SearchRequest) -> str:
    """What a folder search leaves out, and how to have it."""
    if not request.root.is_dir():
        return ""
    match request.hidden, request.ignored:
        case False, False:
            return (
                "Hidden and ignored files were left out (hidden: true, ignored: true include them)."
            )
        case False, True:
            return "Hidden files were left out (hidden: true includes them)."
        case True, False:
            return "Ignored files were left out (ignored: true includes them)."
        case _:
            return ""


def end_notes(end: SearchEnd) -> list[str]:
    """What the reader of the results must know about how the search went."""
    notes: list[str] = []
    if end.ending is Ending.TIMED_OUT:
        notes.append(f"INCOMPLETE: the search was ended after {end.seconds:.0f} s.")
    if end.unreadable:
        more = f" and {end.unreadable - 1} more" if end.unreadable > 1 else ""
        notes.append(f"Could not be read: {end.first_unreadable}{more}.")
    return notes
