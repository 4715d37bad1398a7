"""Write: a whole file at once, new or in place of one that the agent has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from midturn_core.model.messages import DiffDetail, JsonObject
from midturn_core.permission.access import Access, PathAccess
from midturn_core.tool import (
    DEFAULT_TIME_LIMIT,
    ConcurrencyBehavior,
    InterruptBehavior,
    ToolContext,
    ToolResult,
)
from midturn_tools._change import ExistingFile, load, save, text_before
from midturn_tools._diff import describe_change
from midturn_tools._input import check_input, text
from midturn_tools._paths import FileProblem, check_file_path, explain, path_access, short_path
from midturn_tools._text import (
    DecodedText,
    TextFormat,
    UnencodableError,
    check_encodable,
    encode,
    known_encodings,
)

_DESCRIPTION = """\
Writes a whole text file. Missing folders are made. An existing file is replaced only when it was \
read in this conversation and has not changed since; it keeps its permissions, its encoding, its \
byte order mark and, when all its line ends are of one kind, that kind. A new file is UTF-8 \
without a byte order mark, exactly as given. Edit is the cheaper way to change a part of a file."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: absolute, below ~, or relative to the workspace.",
        },
        "content": {"type": "string", "description": "The whole text of the file."},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """A file that can be written as things are."""

    path: str
    access: PathAccess
    content: str
    data: bytes
    existing: ExistingFile | None


class WriteTool:
    """Writes text files. ``fallbacks`` are encodings to try when a file is not UTF-8.

    The rule for an existing file: mode, encoding, byte order mark and uniform line ends stay. A
    file whose bytes fit no known encoding is replaced by UTF-8, since nothing of it remains.
    """

    name = "Write"
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

    def describe(self, tool_input: JsonObject) -> str:
        return short_path(text(tool_input, "file_path"))

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[PathAccess]:
        return (path_access(text(tool_input, "file_path"), context, writes=True),)

    def preview(self, tool_input: JsonObject, accesses: Sequence[Access]) -> DiffDetail:
        """What would change in the file, all of it when it is new."""
        before = "".join(
            text_before(access, self._fallbacks)
            for access in accesses
            if isinstance(access, PathAccess)
        )
        path, content = self.describe(tool_input), text(tool_input, "content")
        return describe_change(path, before, content).detail

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        path, content = text(tool_input, "file_path"), text(tool_input, "content")
        return await context.run_blocking(partial(self._write, path, content, context))

    def foreseen_error(self, tool_input: JsonObject, context: ToolContext) -> str | None:
        path, content = text(tool_input, "file_path"), text(tool_input, "content")
        return self._attempt(path, content, context, lambda _: ToolResult()).error

    def _write(self, path: str, content: str, context: ToolContext) -> ToolResult:
        return self._attempt(path, content, context, lambda plan: _carry_out(plan, context))

    def _attempt(
        self,
        path: str,
        content: str,
        context: ToolContext,
        then: Callable[[_Plan], ToolResult],
    ) -> ToolResult:
        """What would be written goes to ``then``; why it cannot be is the result."""
        access = path_access(path, context, writes=True)
        try:
            existing = load(access, context, self._fallbacks)
            kept = existing.decoded if existing else DecodedText("", TextFormat())
            target = TextFormat(kept.format.encoding, kept.format.bom)
            wanted = _as_kept(content, kept)
            check_encodable(wanted, target)
            return then(_Plan(path, access, wanted, encode(wanted, target), existing))
        except UnencodableError as error:
            return ToolResult(error=f"{path}: {error} Nothing was written.")
        except (OSError, FileProblem) as error:
            return ToolResult(error=explain(error, path, access, context.workspace))


def _carry_out(plan: _Plan, context: ToolContext) -> ToolResult:
    existing = plan.existing
    if existing is not None and existing.data == plan.data:
        return ToolResult(f"{plan.path} already has exactly this content.", summary="unchanged")
    save(plan.access, plan.data, existing, context)
    before = "" if existing is None else existing.decoded.text
    return _report(plan.path, existing, before, plan.content)


def _as_kept(content: str, kept: DecodedText) -> str:
    """The content with the line ends of the file that it replaces, when these are uniform."""
    if kept.format.bom:
        content = content.removeprefix("\ufeff")
    breaks = kept.text.count("\n")
    pairs = kept.text.count("\r\n")
    if breaks == 0 or pairs not in (0, breaks):
        return content
    with_line_feeds = content.replace("\r\n", "\n")
    return with_line_feeds if pairs == 0 else with_line_feeds.replace("\n", "\r\n")


def _report(path: str, existing: ExistingFile | None, before: str, after: str) -> ToolResult:
    detail = describe_change(path, before, after).detail
    if existing is None:
        lines = "1 line" if detail.added == 1 else f"{detail.added:,} lines"
        return ToolResult(
            f"Created {path} with {lines}.", summary=f"created, +{detail.added}", detail=detail
        )
    note = ""
    if existing.other_names:
        note = " The file has another name (a hard link), which keeps the old content."
    counts = f"+{detail.added} -{detail.removed}"
    return ToolResult(f"Replaced {path} ({counts} lines).{note}", summary=counts, detail=detail)
