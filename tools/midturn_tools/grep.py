"""Grep: searches file contents with a regular expression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.permission.access import Access, PathAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._globs import GlobError, PathFilter
from midturn_tools._input import check_input, flag, integer, text
from midturn_tools._paths import check_path_text, path_access
from midturn_tools._process import Ending
from midturn_tools._ripgrep import SearchMode, SearchRequest, find_ripgrep
from midturn_tools._search import (
    SEARCH_SECONDS,
    FindRipgrep,
    Names,
    SearchEngine,
    accept_readable,
    root_problem,
)
from midturn_tools._search_report import MAX_HEAD_LIMIT, Search, content_result, files_result
from midturn_tools._search_results import LINE_WIDTH, LineCollector, PathCollector

DEFAULT_HEAD_LIMIT = 200
MAX_CONTEXT = 50
_UNSORTED_MATCHES = 2_000
"""As many matching lines are collected as they come, on all cores; with more, the search runs
again in path order, where it can stop at the limit."""

_DESCRIPTION = f"""Searches the contents of files with a regular expression (ripgrep's syntax, \
Rust flavour: no look-around; escape ( [ {{ . to take them literally).
path: file or folder, default the workspace. glob: only files such as *.py, src/**/*.ts, \
*.{{js,jsx}} or !*.min.js (without a slash: a name at any depth; with one: below path).
mode: "content" (default) shows matching lines with their numbers, "files" only the paths, "count" \
the matching lines of each file.
Hidden files and files that .gitignore or .ignore name are left out unless asked for with hidden \
or ignored, or named as path; links in folders are not followed. Files that need the user's \
permission, such as .env and keys, are searched only when named as path. Results come in path order. Lines \
over {LINE_WIDTH} characters are cut around the match; head_limit (default {DEFAULT_HEAD_LIMIT}, at \
most {MAX_HEAD_LIMIT}) bounds matching lines or files, and the result says so when there are more."""


def _field(kind: str, description: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"type": kind, "description": description, **more}


_CONTEXT: dict[str, JsonValue] = {"minimum": 0, "maximum": MAX_CONTEXT}
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "pattern": _field("string", "The regular expression.", minLength=1),
        "path": _field("string", "File or folder; default: the workspace."),
        "glob": _field("string", "Only files whose path matches."),
        "type": _field("string", "Only files of a type, such as py, js, rust."),
        "mode": _field("string", "Default content.", enum=["content", "files", "count"]),
        "context": _field("integer", "Lines around each match.", **_CONTEXT),
        "before": _field("integer", "Lines before each match.", **_CONTEXT),
        "after": _field("integer", "Lines after each match.", **_CONTEXT),
        "ignore_case": _field("boolean", "Upper and lower case alike."),
        "multiline": _field("boolean", "The match may span lines; . matches line ends too."),
        "hidden": _field("boolean", "Also hidden files (never .git)."),
        "ignored": _field("boolean", "Also files that ignore files name."),
        "head_limit": _field(
            "integer", "Matching lines or files shown.", minimum=1, maximum=MAX_HEAD_LIMIT
        ),
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class GrepTool:
    """The content search. ``find`` tells which ripgrep to use; when it finds None, our own search
    runs. ``seconds`` is what one search may take.
    """

    name = "Grep"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self, find: FindRipgrep = find_ripgrep, seconds: float = SEARCH_SECONDS) -> None:
        self._engine = SearchEngine(find, seconds)

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        # S1.26: (a) it only reads; (b) all state of a call is local, the engine's cache is written
        # on the loop only; (c) COOPERATIVE; (d) it has no hooks of its own; (e) each call has its
        # own child process, niced, and several readers of one file do not disturb each other.
        return ConcurrencyBehavior.CONCURRENT_SAFE

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.COOPERATIVE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return None

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, self.input_schema)
        check_path_text("path", text(tool_input, "path", "."))
        for key in ("pattern", "glob", "type"):
            _check_argument(key, text(tool_input, key))
        try:
            PathFilter(text(tool_input, "glob")).compiled()
        except GlobError as error:
            raise InvalidInputError(f"glob: {error}") from None

    def describe(self, tool_input: JsonObject) -> str:
        parts = [_one_line(text(tool_input, "pattern"))]
        if path := text(tool_input, "path"):
            parts.append(f"in {_one_line(path)}")
        if glob := text(tool_input, "glob"):
            parts.append(f"({_one_line(glob)})")
        return " ".join(parts)

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return (self._access(tool_input, context),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        access = self._access(tool_input, context)
        path = text(tool_input, "path", ".")
        problem = await context.run_blocking(partial(root_problem, access, path, context))
        if problem:
            return ToolResult(error=problem)
        search = Search(
            _request(tool_input, access),
            Names(access, context.workspace),
            integer(tool_input, "head_limit", DEFAULT_HEAD_LIMIT),
        )
        if search.request.mode is SearchMode.CONTENT:
            return await self._content(search, context)
        return await self._files(search, context)

    def _access(self, tool_input: JsonObject, context: ToolContext) -> PathAccess:
        return path_access(text(tool_input, "path", "."), context, writes=False)

    async def _content(self, search: Search, context: ToolContext) -> ToolResult:
        accept = accept_readable(search.request, context)
        lines = LineCollector(accept, _UNSORTED_MATCHES)
        end = await self._engine.search(search.request, context, lines.feed)
        if end.ending is Ending.ENOUGH:
            lines = LineCollector(accept, search.limit)
            end = await self._engine.search(
                search.request,
                context,
                lines.feed,
                by_path=True,
            )
        return content_result(search, lines, end)

    async def _files(self, search: Search, context: ToolContext) -> ToolResult:
        counting = search.request.mode is SearchMode.COUNT
        paths = PathCollector(
            accept_readable(search.request, context), search.limit, with_counts=counting
        )
        end = await self._engine.search(search.request, context, paths.feed)
        return files_result(search, paths, end)


def _check_argument(key: str, value: str) -> None:
    if "\0" in value:
        raise InvalidInputError(f"{key} must not contain a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{key} contains a lone surrogate character") from None


def _one_line(value: str) -> str:
    return value.replace("\r", "\\r").replace("\n", "\\n")


def _request(tool_input: JsonObject, access: PathAccess) -> SearchRequest:
    around = integer(tool_input, "context", 0)
    return SearchRequest(
        root=access.resolved,
        mode=SearchMode(text(tool_input, "mode") or "content"),
        pattern=text(tool_input, "pattern"),
        glob=text(tool_input, "glob"),
        file_type=text(tool_input, "type"),
        before=integer(tool_input, "before", around),
        after=integer(tool_input, "after", around),
        ignore_case=flag(tool_input, "ignore_case"),
        multiline=flag(tool_input, "multiline"),
        hidden=flag(tool_input, "hidden"),
        ignored=flag(tool_input, "ignored"),
    )
