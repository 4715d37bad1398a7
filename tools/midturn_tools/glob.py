"""Glob: finds files by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from midturn_core.model.messages import JsonObject
from midturn_core.permission.access import Access, PathAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._globs import GlobError, PathFilter, split_folder
from midturn_tools._input import check_input, flag, integer, text
from midturn_tools._paths import check_path_text, path_access
from midturn_tools._ripgrep import SearchMode, SearchRequest, find_ripgrep
from midturn_tools._search import (
    SEARCH_SECONDS,
    FindRipgrep,
    Names,
    SearchEngine,
    accept_paths,
    root_problem,
)
from midturn_tools._search_report import MAX_HEAD_LIMIT, Search, files_result
from midturn_tools._search_results import PathCollector

DEFAULT_HEAD_LIMIT = 200

_DESCRIPTION = f"""Finds files by name, in path order.
pattern: such as **/*.py, src/*.ts or *.{{json,toml}}; without a slash it means a name at any \
depth, with one the whole path below path. folder/ lists all files in a folder.
Hidden files and files that .gitignore or .ignore name are left out unless asked for with hidden \
or ignored, or when the pattern or path names their folder; links in folders are not followed, one \
that is named is. Only files are listed, at most head_limit (default {DEFAULT_HEAD_LIMIT}, up to \
{MAX_HEAD_LIMIT}) of them; the result tells how many there are."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "The file pattern.", "minLength": 1},
        "path": {"type": "string", "description": "Folder to look in; default: the workspace."},
        "hidden": {"type": "boolean", "description": "Also hidden files (never .git)."},
        "ignored": {"type": "boolean", "description": "Also files that ignore files name."},
        "head_limit": {
            "type": "integer",
            "description": "How many files to list.",
            "minimum": 1,
            "maximum": MAX_HEAD_LIMIT,
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class GlobTool:
    """The file search. ``find`` tells which ripgrep to use; when it finds None, our own walk runs.
    ``seconds`` is what one search may take.
    """

    name = "Glob"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self, find: FindRipgrep = find_ripgrep, seconds: float = SEARCH_SECONDS) -> None:
        self._engine = SearchEngine(find, seconds)

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        # S1.26: (a) it only reads names; (b) all state of a call is local, the engine's cache is
        # written on the loop only; (c) COOPERATIVE; (d) it has no hooks of its own; (e) each call
        # has its own child process, niced.
        return ConcurrencyBehavior.CONCURRENT_SAFE

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.COOPERATIVE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return None

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, self.input_schema)
        check_path_text("path", text(tool_input, "path", "."))
        pattern = text(tool_input, "pattern")
        check_path_text("pattern", pattern)
        _, rest = split_folder(pattern)
        if ".." in rest.split("/"):
            raise InvalidInputError("pattern: .. may only come before the first wildcard")
        if pattern.startswith("!"):
            raise InvalidInputError("pattern says which files to find; it cannot begin with !")
        try:
            PathFilter(rest).compiled()
        except GlobError as error:
            raise InvalidInputError(f"pattern: {error}") from None

    def describe(self, tool_input: JsonObject) -> str:
        path = text(tool_input, "path")
        shown = f"{text(tool_input, 'pattern')}{f' in {path}' if path else ''}"
        return shown.replace("\r", "\\r").replace("\n", "\\n")

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return (self._access(tool_input, context),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        access = self._access(tool_input, context)
        problem = await context.run_blocking(
            partial(root_problem, access, _folder(tool_input), context)
        )
        if problem:
            return ToolResult(error=problem)
        request = SearchRequest(
            root=access.resolved,
            mode=SearchMode.LIST,
            glob=split_folder(text(tool_input, "pattern"))[1],
            hidden=flag(tool_input, "hidden"),
            ignored=flag(tool_input, "ignored"),
        )
        limit = integer(tool_input, "head_limit", DEFAULT_HEAD_LIMIT)
        paths = PathCollector(accept_paths(request), limit)
        end = await self._engine.search(request, context, paths.feed)
        search = Search(request, Names(access, context.workspace), limit)
        return files_result(search, paths, end)

    def _access(self, tool_input: JsonObject, context: ToolContext) -> PathAccess:
        return path_access(_folder(tool_input), context, writes=False)


def _folder(tool_input: JsonObject) -> str:
    """The folder to search: ``path`` and the plain folders at the start of the pattern."""
    path = text(tool_input, "path", ".")
    folder, _ = split_folder(text(tool_input, "pattern"))
    if not folder:
        return path
    return folder if path == "." else os.path.join(path, folder)
