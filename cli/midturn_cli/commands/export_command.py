"""/export: the whole session as a document."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import assert_never

from midturn_cli.commands.arguments import quoted
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.engine import Engine
from midturn_cli.export.private_file import PrivateFileError, write_private
from midturn_cli.export.transcript import CallWords, Head, Part, Transcript, parts_of
from midturn_core.errors import SessionError
from midturn_core.model.messages import DiffDetail, Message, ToolUse
from midturn_core.tool import InvalidInputError, PreviewingTool, ToolRegistry
from midturn_core.version import VERSION

EXAMPLE = "/export notes.md --format markdown"


class ExportFormat(Enum):
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


ENDINGS = {
    ".md": ExportFormat.MARKDOWN,
    ".markdown": ExportFormat.MARKDOWN,
    ".json": ExportFormat.JSON,
    ".html": ExportFormat.HTML,
    ".htm": ExportFormat.HTML,
}
DEFAULT_ENDING = {
    ExportFormat.MARKDOWN: ".md",
    ExportFormat.JSON: ".json",
    ExportFormat.HTML: ".html",
}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """``file`` is as typed, empty for the usual name."""

    file: str
    format: ExportFormat
    force: bool


def read_request(arguments: str) -> ExportRequest:
    """
    Raises:
        CommandError: they cannot be understood; says what is allowed.
    """
    try:
        words = iter(shlex.split(arguments))
    except ValueError as error:
        raise CommandError(
            f"/export: a quotation mark is missing in {quoted(arguments)}"
        ) from error
    files: list[str] = []
    chosen: ExportFormat | None = None
    force = False
    for word in words:
        if word == "--force":
            force = True
        elif word.partition("=")[0] == "--format":
            chosen = _format_named(word, words)
        elif word.startswith("-"):
            raise CommandError(
                f"/export does not know {quoted(word)}: it takes --format and --force ({EXAMPLE})"
            )
        else:
            files.append(word)
    if len(files) > 1:
        raise CommandError(
            '/export takes one file; a name with blanks needs quotes: /export "my notes.md"'
        )
    file = files[0] if files else ""
    return ExportRequest(file, chosen or _format_of(file), force)


def _format_named(word: str, words: Iterator[str]) -> ExportFormat:
    name = word.partition("=")[2] if "=" in word else next(words, "")
    try:
        return ExportFormat(name)
    except ValueError as error:
        raise CommandError(
            f"--format takes markdown, json or html, not {quoted(name)} ({EXAMPLE})"
        ) from error


def _format_of(file: str) -> ExportFormat:
    if not file:
        return ExportFormat.MARKDOWN
    found = ENDINGS.get(Path(file).suffix.lower())
    if found is None:
        raise CommandError(
            f"The format of {quoted(file)} is not clear: end it with {', '.join(ENDINGS)} or add "
            "--format markdown, json or html"
        )
    return found


async def export(use: Use) -> None:
    request, engine = read_request(use.arguments), use.engine
    messages = engine.conversation.messages
    if engine.session.log.empty and not messages:
        raise CommandError("There is nothing to export: the session is empty")
    name = request.file or f"midturn-{engine.session.id}{DEFAULT_ENDING[request.format]}"
    head = _head(engine)
    use.say(await asyncio.to_thread(_write, engine, head, messages, replace(request, file=name)))


def _head(engine: Engine) -> Head:
    status, session = engine.status(), engine.session.head
    return Head(
        session_id=engine.session.id,
        folder=session.workspace,
        started=_to_seconds(session.created),
        exported=_to_seconds(datetime.now().astimezone().isoformat()),
        version=VERSION,
        model=status.model,
        usage=engine.agent.session_usage,
    )


def _to_seconds(time: str) -> str:
    try:
        return datetime.fromisoformat(time).isoformat(timespec="seconds")
    except ValueError:
        return time


def _write(
    engine: Engine, head: Head, messages: tuple[Message, ...], request: ExportRequest
) -> str:
    """Blocking: reads the session's file and writes the document; what to say about it."""
    parts, warning = _parts(engine, messages)
    transcript = Transcript(head, parts, engine.reminders)
    data = _document(transcript, request.format, engine.registry).encode(errors="replace")
    # An absolute name stays what it is.
    path = engine.workspace / Path(request.file).expanduser()
    try:
        write_private(path, data, replace=request.force)
    except PrivateFileError as error:
        raise CommandError(f"Nothing was exported: {error}") from error
    return (
        f"Exported to {path}: {transcript.message_count:,} messages, {_size(len(data))}, readable "
        f"by you alone; it holds what the tools have read.{warning}"
    )


def _parts(engine: Engine, messages: tuple[Message, ...]) -> tuple[tuple[Part, ...], str]:
    try:
        return parts_of(engine.store.recorded(engine.session)), ""
    except SessionError as error:
        return (Part(messages),), f" What /compact replaced is missing in it: {error}."


def _document(transcript: Transcript, wanted: ExportFormat, registry: ToolRegistry) -> str:
    # Imported here: each loads a parser or a highlighter that no other command needs.
    def describe(tool_use: ToolUse) -> CallWords:
        return words_of(tool_use, registry)

    match wanted:
        case ExportFormat.MARKDOWN:
            from midturn_cli.export.as_markdown import to_markdown

            return to_markdown(transcript, describe)
        case ExportFormat.JSON:
            from midturn_cli.export.as_json import to_json

            return to_json(transcript)
        case ExportFormat.HTML:
            from midturn_cli.export.as_html import to_html
            from midturn_cli.export.html_child import markdown_child

            with markdown_child() as html_of:
                return to_html(transcript, describe, html_of)
        case _:
            assert_never(wanted)


def words_of(tool_use: ToolUse, registry: ToolRegistry) -> CallWords:
    """What the tool says of a call; nothing for a tool or an input that it does not know."""
    tool = registry.get(tool_use.name)
    if tool is None:
        return CallWords("")
    try:
        tool.validate(tool_use.input)
    except InvalidInputError:
        return CallWords("")
    # From the input alone: the files have gone on since.
    preview = tool.preview(tool_use.input, ()) if isinstance(tool, PreviewingTool) else None
    diff = preview if isinstance(preview, DiffDetail) else None
    return CallWords(tool.describe(tool_use.input), diff)


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < 10_000 else f"{count / 1000:,.0f} kB"


EXPORT = Command(
    "export",
    "write the session to a file",
    "[FILE] [--format F] [--force]",
    beside=export,
    forms=(
        Form("/export", "write the whole session to midturn-ID.md in this folder, as Markdown"),
        Form("/export FILE", "write it there; .md, .json or .html is the format"),
        Form("/export --format F", "markdown, json or html, whatever the file is called"),
        Form("/export FILE --force", "replace the file if it exists"),
    ),
)
