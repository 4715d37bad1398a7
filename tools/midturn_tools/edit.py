"""Edit: exact text of a file the agent has read becomes another text; nothing else moves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from midturn_core.model.messages import DiffDetail, JsonObject
from midturn_core.permission.access import Access, PathAccess
from midturn_core.tool import (
    DEFAULT_TIME_LIMIT,
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._change import ExistingFile, load, save, text_before, was_removed
from midturn_tools._diff import describe_change
from midturn_tools._input import check_input, flag, text
from midturn_tools._notebook import would_break
from midturn_tools._paths import FileProblem, check_file_path, explain, path_access, short_path
from midturn_tools._replace import Mismatch, Replaced, replace_text
from midturn_tools._text import (
    TextFormat,
    UnencodableError,
    check_encodable,
    encode,
    known_encodings,
)

_DESCRIPTION = """\
Replaces exact text in a file that was read in this conversation and has not changed since. \
old_string must stand for one place in the file, blanks and indentation included, without the line \
numbers that Read shows; replace_all changes every place instead. A line break matches whichever \
line end the file uses. Encoding, byte order mark, line ends and permissions of the file stay as \
they are. An empty old_string makes a new file, or fills an empty one."""

_BROKEN_NOTEBOOK = (
    'The notebook would no longer be valid JSON. Cells stand in strings there: a quote is \\", a '
    "backslash \\\\, a line break \\n, and each line of a cell is a string of its own."
)
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: absolute, below ~, or relative to the workspace.",
        },
        "old_string": {"type": "string", "description": "The text to replace, exactly."},
        "new_string": {"type": "string", "description": "The text to put there; may be empty."},
        "replace_all": {
            "type": "boolean",
            "description": "Replace every occurrence; false when not given.",
        },
    },
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Request:
    path: str
    old: str
    new: str
    every: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """A change that can be made as things are."""

    request: _Request
    access: PathAccess
    data: bytes
    replaced: Replaced
    existing: ExistingFile | None = None


class EditTool:
    """Edits text files. ``fallbacks`` are encodings to try when a file is not UTF-8."""

    name = "Edit"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self, fallbacks: Sequence[str] = ()) -> None:
        self._fallbacks = known_encodings(fallbacks)

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.NON_INTERRUPTIBLE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return DEFAULT_TIME_LIMIT

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, _SCHEMA)
        check_file_path("file_path", text(tool_input, "file_path"))
        if text(tool_input, "old_string") == text(tool_input, "new_string"):
            raise InvalidInputError("old_string and new_string are the same: nothing would change")

    def describe(self, tool_input: JsonObject) -> str:
        return short_path(text(tool_input, "file_path"))

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[PathAccess]:
        return (path_access(text(tool_input, "file_path"), context, writes=True),)

    def preview(self, tool_input: JsonObject, accesses: Sequence[Access]) -> DiffDetail:
        """The change in its place; the two texts alone where they cannot be put there."""
        before, after = text(tool_input, "old_string"), text(tool_input, "new_string")
        for access in accesses:
            if isinstance(access, PathAccess) and before:
                whole = text_before(access, self._fallbacks)
                with contextlib.suppress(Mismatch):
                    every = flag(tool_input, "replace_all")
                    before, after = whole, replace_text(whole, before, after, every=every).text
        return describe_change(self.describe(tool_input), before, after).detail

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        request = _request(tool_input)
        return await context.run_blocking(partial(self._edit, request, context))

    def foreseen_error(self, tool_input: JsonObject, context: ToolContext) -> str | None:
        return self._attempt(_request(tool_input), context, lambda _: ToolResult()).error

    def _edit(self, request: _Request, context: ToolContext) -> ToolResult:
        return self._attempt(request, context, lambda plan: _carry_out(plan, context))

    def _attempt(
        self, request: _Request, context: ToolContext, then: Callable[[_Plan], ToolResult]
    ) -> ToolResult:
        """What would be written goes to ``then``; why it cannot be is the result."""
        access = path_access(request.path, context, writes=True)
        try:
            existing = load(access, context, self._fallbacks)
            if existing is None:
                return then(_plan_new(request, access, context))
            return then(_plan_change(request, existing, access))
        except (Mismatch, UnencodableError) as error:
            return ToolResult(error=f"{request.path}: {error} Nothing was changed.")
        except (OSError, FileProblem) as error:
            return ToolResult(error=explain(error, request.path, access, context.workspace))


def _request(tool_input: JsonObject) -> _Request:
    return _Request(
        path=text(tool_input, "file_path"),
        old=text(tool_input, "old_string"),
        new=text(tool_input, "new_string"),
        every=flag(tool_input, "replace_all"),
    )


def _plan_new(request: _Request, access: PathAccess, context: ToolContext) -> _Plan:
    if request.old:
        if was_removed(access, context):
            raise FileProblem("was removed since it was last read")
        raise FileNotFoundError(request.path)
    plain = TextFormat()
    check_encodable(request.new, plain)
    return _Plan(request, access, encode(request.new, plain), Replaced(request.new, 1, 0))


def _plan_change(request: _Request, existing: ExistingFile, access: PathAccess) -> _Plan:
    before, form = existing.decoded.text, existing.decoded.format
    replaced = _replaced(request, before)
    if access.resolved.suffix == ".ipynb" and would_break(before, replaced.text):
        raise Mismatch(_BROKEN_NOTEBOOK)
    check_encodable(request.new, form)
    return _Plan(request, access, encode(replaced.text, form), replaced, existing)


def _carry_out(plan: _Plan, context: ToolContext) -> ToolResult:
    path, existing = plan.request.path, plan.existing
    save(plan.access, plan.data, existing, context)
    before = "" if existing is None else existing.decoded.text
    change = describe_change(path, before, plan.replaced.text)
    added, removed = change.detail.added, change.detail.removed
    if existing is None:
        return ToolResult(f"Created {path}.", summary=f"created, +{added}", detail=change.detail)
    return ToolResult(
        _report(path, plan.replaced, existing, change.region),
        summary=f"+{added} -{removed}",
        detail=change.detail,
    )


def _replaced(request: _Request, before: str) -> Replaced:
    if request.old:
        return replace_text(before, request.old, request.new, every=request.every)
    if before:
        raise Mismatch("An empty old_string is for a new or an empty file; this one has content.")
    return Replaced(request.new, 1, 0)


def _report(path: str, replaced: Replaced, existing: ExistingFile, region: str) -> str:
    places = "1 replacement" if replaced.count == 1 else f"{replaced.count:,} replacements"
    notes = ""
    if replaced.skipped:
        notes += f" Left alone, as they end inside a combined character: {replaced.skipped:,}."
    if existing.other_names:
        notes += " The file has another name (a hard link), which keeps the old content."
    now = f"It now reads:\n\n{region}" if region else "Nothing is left around it."
    return f"Edited {path}: {places}.{notes} {now}"
