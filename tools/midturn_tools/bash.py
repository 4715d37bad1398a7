"""Bash: runs one shell command to its end, or to the end of its time."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import JsonObject, OutputDetail
from midturn_core.permission.access import Access, CommandAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._bounded_output import BoundedOutput
from midturn_tools._child_environment import child_environment, find_program
from midturn_tools._input import check_input, integer, text
from midturn_tools._paths import shown_path
from midturn_tools._process import (
    ChildCommand,
    ChildLimits,
    ChildResult,
    Ending,
    run_child,
    settle_session,
)

DEFAULT_TIMEOUT = 120
MAX_TIMEOUT = 600
_GRACE = 1.0
_TIME_LIMIT_MARGIN = 5.0
"""The tool ends a command itself, with its output; the dispatcher's limit stands behind that."""
_HEAD_BYTES = 10_000
_TAIL_BYTES = 20_000
_MAX_COMMAND_BYTES = 100_000
"""Below the kernel's limit of 128 KiB for one argument."""
_TAIL_LINES_ON_SCREEN = 20
_PROGRESS_INTERVAL = 0.1
_PROGRESS_WIDTH = 200
_START_FILE = Path(__file__).with_name("_bash_start.sh")

_DESCRIPTION = f"""Runs a command with bash and returns its output (stdout and stderr together) \
and its exit code.

What persists between calls: the current folder, and nothing else. Each call is a fresh shell: \
variables, exports, functions, aliases, activated virtual environments and shell options of \
earlier calls are gone; combine commands with && where one needs them.
There is no terminal and no input: programs that ask something see the end of file at once, \
editors and pagers do not open (give `git commit` its message with -m). Variables that look like \
keys, tokens or passwords are not passed on.
timeout: seconds until the command and all it started are ended (default {DEFAULT_TIMEOUT}, at \
most {MAX_TIMEOUT}).
A job started with & keeps running after the call and is ended when Midturn exits; its output is \
only kept if redirected to a file.
Output over {(_HEAD_BYTES + _TAIL_BYTES) // 1000} kB is shortened in the middle; redirect it to a \
file to see all of it."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The bash command.", "minLength": 1},
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TIMEOUT,
            "description": f"Seconds; default {DEFAULT_TIMEOUT}.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a command runs, and a sentence when that is not where the last one ended."""

    folder: Path
    note: str = ""


@dataclass(slots=True)
class _Run:
    """One command on its way: its output, and what the screen was told of it."""

    context: ToolContext
    output: BoundedOutput = field(default_factory=lambda: BoundedOutput(_HEAD_BYTES, _TAIL_BYTES))
    told_at: float = 0.0

    def take(self, data: bytes) -> bool:
        self.output.feed(data)
        now = time.monotonic()
        if now - self.told_at >= _PROGRESS_INTERVAL:
            self.told_at = now
            line = self.output.newest_line(_PROGRESS_WIDTH)
            if line:
                self.context.progress(line)
        return False


class BashTool:
    """The shell tool. Keeps the current folder of each context, nothing else."""

    name = "Bash"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self) -> None:
        self._folders: dict[AgentRuntimeId, Path] = {}

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.EXTERNALLY_TERMINATED

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return integer(tool_input, "timeout", DEFAULT_TIMEOUT) + _TIME_LIMIT_MARGIN

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, self.input_schema)
        command = text(tool_input, "command")
        if not command.strip():
            raise InvalidInputError("command must not be blank")
        if "\0" in command:
            raise InvalidInputError("command must not contain a NUL character")
        try:
            size = len(command.encode())
        except UnicodeEncodeError:
            raise InvalidInputError("command contains a lone surrogate character") from None
        if size > _MAX_COMMAND_BYTES:
            raise InvalidInputError(
                f"command has {size:,} bytes, allowed are {_MAX_COMMAND_BYTES:,}: "
                "write the data to a file with Write and use that"
            )

    def describe(self, tool_input: JsonObject) -> str:
        return " ⏎ ".join(text(tool_input, "command").strip().splitlines())

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return (CommandAccess(text(tool_input, "command"), self._start(context).folder),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        program = find_program("bash", context.workspace)
        if program is None:
            return ToolResult(error="bash was not found on the search path; install it.")
        start = self._start(context)
        limits = ChildLimits(
            float(integer(tool_input, "timeout", DEFAULT_TIMEOUT)), context.signal, _GRACE
        )
        run = _Run(context)
        with _folder_pipe() as (reader, writer):
            command = _command(program, text(tool_input, "command"), start.folder, writer)
            try:
                child = await run_child(command, limits, run.take)
            except OSError as error:
                return ToolResult(error=f"bash could not be started in {start.folder}: {error}")
            folder = _folder_told(reader)
        notes = [start.note, self._note_folder(folder, start.folder, context)]
        if child.ending is Ending.EXITED:
            jobs = await context.run_blocking(partial(settle_session, child.session))
            notes.append(_note_jobs(jobs))
        return _result(child, run, limits.timeout, [note for note in notes if note])

    def _start(self, context: ToolContext) -> _Start:
        """The folder that was asked about, else the one the last command ended in."""
        kept = self._folders.get(context.context_id, context.workspace)
        asked = next((a.cwd for a in context.accesses if isinstance(a, CommandAccess)), kept)
        folder = next(place for place in (asked, context.workspace, Path("/")) if place.is_dir())
        if kept.is_dir() and folder == asked:
            return _Start(folder)
        return _Start(folder, f"The folder {kept} is gone; this command ran in {folder}.")

    def _note_folder(self, told: Path | None, before: Path, context: ToolContext) -> str:
        folder = before if told is None else told
        self._folders[context.context_id] = folder
        if folder == before:
            return ""
        return f"The current folder is now {shown_path(folder, context.workspace)}."


@contextmanager
def _folder_pipe() -> Generator[tuple[int, int]]:
    """A pipe through which the shell tells its last folder: reading and writing end."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def _folder_told(reader: int) -> Path | None:
    """The folder in which the shell ended; None when it did not say (killed, or own EXIT trap)."""
    try:
        told = os.read(reader, 64 * 1024)
    except BlockingIOError:
        return None
    folder = Path(os.fsdecode(told.removesuffix(b"\n")))
    return folder if folder.is_absolute() else None


def _command(program: Path, command: str, folder: Path, writer: int) -> ChildCommand:
    return ChildCommand(
        argv=(str(program), "--norc", "--noprofile", "-c", command),
        cwd=folder,
        environment={
            **child_environment(),
            "BASH_ENV": str(_START_FILE),
            "MIDTURN_FOLDER_PIPE": str(writer),
        },
        keep_descriptors=(writer,),
        may_leave_jobs=True,
    )


def _note_jobs(jobs: tuple[int, ...]) -> str:
    if not jobs:
        return ""
    numbers = ", ".join(map(str, jobs))
    return (
        f"Still running in the background: process {numbers}. It lives until it ends or Midturn "
        "exits; its further output is not kept."
    )


def _result(child: ChildResult, run: _Run, timeout: float, notes: list[str]) -> ToolResult:
    output = run.output
    body = output.text().rstrip("\n") or "(no output)"
    detail = OutputDetail(output.last_lines(_TAIL_LINES_ON_SCREEN), output.lines_total)
    tail = "".join(f"\n[{note}]" for note in notes)
    match child.ending:
        case Ending.TIMED_OUT:
            cause = f"The command was ended after {timeout:g} s, its time limit"
            error = f"{cause}, with all it had started. Output until then:\n{body}{tail}"
            return ToolResult(error=error, summary="timed out", detail=detail)
        case Ending.CANCELLED:
            note = "\n[The command and all it had started were ended.]"
            return ToolResult(f"{body}{note}{tail}", summary="stopped", detail=detail, stopped=True)
        case Ending.EXITED | Ending.ENOUGH:
            pass
    if child.exit_code == 0:
        return ToolResult(f"{body}{tail}", summary="exit 0", detail=detail)
    error = f"{_exit_sentence(child.exit_code)}\n{body}{tail}"
    return ToolResult(error=error, summary=_exit_words(child.exit_code), detail=detail)


def _exit_words(code: int) -> str:
    return f"exit {code}" if code > 0 else f"signal {-code}"


def _exit_sentence(code: int) -> str:
    if code < 0:
        return f"The shell was ended by signal {-code}."
    return f"Exit code {code}."
