"""Takes a picture from the machine's clipboard through a program; for the user's own key.

No tool: the model neither calls it nor hears of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midturn_core.errors import NotAPictureError, PictureError
from midturn_core.interrupt import Signal
from midturn_core.model.messages import PICTURE_KINDS, ImageBlock
from midturn_core.pictures import media_type_of, read_picture, size_text
from midturn_tools._child_environment import find_program
from midturn_tools._process import ChildCommand, ChildLimits, Ending, run_child

SECONDS = 3.0
"""For one run of a program: without its display, or without an owner that answers, some wait for
ever.
"""
MOST_BYTES = 32_000_000
"""Of a picture, so that the size of one that is too large can still be told."""
NAME = "clipboard"
"""Of the picture, before the ending of its kind."""

_LIST_BYTES = 64 * 1024
_ERROR_BYTES = 4096
_WANTED = ("image/png", "image/jpeg", "image/webp", "image/gif")
"""The kinds that the service takes, the one to prefer first."""
_NOTHING_COPIED = re.compile(r"nothing is copied|no selection|target \S+ not available", re.I)
_APPLESCRIPT = "the clipboard as «class PNGf»"
_APPLE_DATA = re.compile(rb"\xc2\xabdata PNGf([0-9A-Fa-f]*)\xc2\xbb")


class ClipboardPictureError(Exception):
    """No picture could be taken. ``str(error)`` is a clause: "the clipboard holds no picture"."""


@dataclass(frozen=True, slots=True)
class ReadingWay:
    """How a program is asked for a picture."""

    take: tuple[str, ...]
    """Arguments that make it write the picture; ``{}`` stands for the media type."""
    list_kinds: tuple[str, ...] = ()
    """Arguments that make it list the media types; empty where it knows only PNG."""
    decode: Callable[[bytes], bytes] = bytes


@dataclass(frozen=True, slots=True)
class PictureProgram:
    """A program that writes what is on the clipboard. ``path`` is absolute."""

    name: str
    path: str
    way: ReadingWay


async def clipboard_picture(workspace: Path, environ: Mapping[str, str]) -> ImageBlock:
    """The picture on the clipboard of the person who sits in front of the screen.

    The programs run beside the loop, each run of one for at most ``SECONDS``; none of them lies
    in ``workspace`` (resolved).

    Raises:
        ClipboardPictureError: there is none, it cannot be had, or the service would not take it.
    """
    problems: list[str] = []
    for program in picture_programs(workspace, environ):
        try:
            return _read(await _take(program))
        except _ProgramFailed as error:
            problems.append(str(error))
    raise ClipboardPictureError("; ".join(problems) or _no_program(environ))


def picture_programs(workspace: Path, environ: Mapping[str, str]) -> list[PictureProgram]:
    """The programs that can read the user's clipboard from here, the best first."""
    found: list[PictureProgram] = []
    for name, way in _fitting(environ):
        path = find_program(name, workspace)
        if path is not None:
            found.append(PictureProgram(name, str(path), way))
    return found


def _fitting(environ: Mapping[str, str]) -> Iterator[tuple[str, ReadingWay]]:
    if environ.get("WAYLAND_DISPLAY"):
        yield "wl-paste", ReadingWay(("--type", "{}"), ("--list-types",))
    if environ.get("DISPLAY"):
        of_clipboard = ("-selection", "clipboard", "-out", "-target")
        yield "xclip", ReadingWay((*of_clipboard, "{}"), (*of_clipboard, "TARGETS"))
    if not _from_afar(environ):
        yield "pngpaste", ReadingWay(("-",))
        yield "osascript", ReadingWay(("-e", _APPLESCRIPT), decode=_from_applescript)


def _from_afar(environ: Mapping[str, str]) -> bool:
    """Over SSH the clipboard of the machine is not the one of the person in front of the screen."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def _no_program(environ: Mapping[str, str]) -> str:
    if _from_afar(environ) and not environ.get("DISPLAY"):
        return "over SSH the clipboard of your own machine cannot be read; copy the file here"
    return "reading the clipboard needs wl-paste (of wl-clipboard), xclip or, on macOS, osascript"


class _ProgramFailed(Exception):
    """Another program may do better."""


async def _take(program: PictureProgram) -> bytes:
    kind = await _offered(program) if program.way.list_kinds else "image/png"
    run = await _run(program, [word.replace("{}", kind) for word in program.way.take], MOST_BYTES)
    if run.exit_code and not program.way.list_kinds:
        # Such a program says with its exit code that there is no picture.
        raise ClipboardPictureError("the clipboard holds no picture")
    run.check(program)
    return program.way.decode(run.output)


async def _offered(program: PictureProgram) -> str:
    """The media type to ask for."""
    run = await _run(program, program.way.list_kinds, _LIST_BYTES)
    if run.exit_code and _NOTHING_COPIED.search(run.errors):
        raise ClipboardPictureError("the clipboard is empty")
    run.check(program)
    kinds = run.output.decode(errors="replace").split()
    for kind in _WANTED:
        if kind in kinds:
            return kind
    raise ClipboardPictureError(_no_picture(kinds))


def _no_picture(kinds: Sequence[str]) -> str:
    foreign = next((kind for kind in kinds if kind.startswith("image/")), "")
    if foreign:
        known = ", ".join(PICTURE_KINDS.values())
        return f"the clipboard holds {_shown(foreign)}, and the service takes {known}"
    if "text/uri-list" in kinds:
        return "the clipboard holds the address of a file; paste that as text"
    return "the clipboard holds no picture"


@dataclass(frozen=True, slots=True)
class _Run:
    exit_code: int
    output: bytes
    errors: str

    def check(self, program: PictureProgram) -> None:
        if self.exit_code:
            why = _shown(self.errors.strip().partition("\n")[0])
            raise _ProgramFailed(f"{program.name} failed: {why or f'exit code {self.exit_code}'}")


async def _run(program: PictureProgram, arguments: Sequence[str], most: int) -> _Run:
    output, errors = bytearray(), bytearray()

    def take(data: bytes) -> bool:
        output.extend(data)
        return len(output) > most

    def complain(data: bytes) -> bool:
        errors.extend(data[: _ERROR_BYTES - len(errors)])
        return False

    command = ChildCommand((program.path, *arguments), Path("/"))
    try:
        child = await run_child(command, ChildLimits(SECONDS, Signal()), take, complain)
    except OSError as error:
        raise _ProgramFailed(f"{program.name} cannot be started") from error
    if child.ending is Ending.TIMED_OUT:
        raise _ProgramFailed(f"{program.name} took longer than {SECONDS:g} s")
    if child.ending is Ending.ENOUGH:
        raise ClipboardPictureError(f"what is on the clipboard has more than {size_text(most)}")
    return _Run(child.exit_code, bytes(output), errors.decode(errors="replace"))


def _from_applescript(data: bytes) -> bytes:
    """``«data PNGf8950…»``"""
    match = _APPLE_DATA.search(data)
    return bytes.fromhex(match[1].decode()) if match and len(match[1]) % 2 == 0 else b""


def _read(data: bytes) -> ImageBlock:
    if not data:
        raise ClipboardPictureError("the picture on the clipboard came without content")
    ending = (media_type_of(data) or "").removeprefix("image/")
    try:
        return read_picture(data, f"{NAME}.{ending}")
    except NotAPictureError as error:
        raise ClipboardPictureError("what the clipboard gave as a picture is none") from error
    except PictureError as error:
        raise ClipboardPictureError(f"what is on the clipboard {error}") from error


def _shown(text: str) -> str:
    """What a program wrote, short and on one line."""
    return "".join(letter for letter in text if letter.isprintable())[:120]
