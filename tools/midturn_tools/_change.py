"""Changing a file that the agent has read: looking at it, and putting the new bytes in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from midturn_core.permission.access import PathAccess
from midturn_core.read_files import ReadStamp, content_hash
from midturn_core.tool import ToolContext
from midturn_tools._atomic import FileState, write_file
from midturn_tools._paths import FileProblem, open_regular
from midturn_tools._text import (
    MAX_TEXT_BYTES,
    DecodedText,
    NotTextError,
    decode,
    encode,
    size_text,
)

MAX_SHOWN_BYTES = 4_000_000
"""A larger file is not compared for a question."""


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """A file as it is now; its content is what the agent last saw."""

    data: bytes
    decoded: DecodedText
    state: FileState
    other_names: bool
    """Hard links: they keep the old content when this name gets the new one."""


def load(access: PathAccess, context: ToolContext, fallbacks: Sequence[str]) -> ExistingFile | None:
    """The file that is to be changed; None when there is none.

    Raises:
        FileProblem: the agent has not read it, it has changed since, or it is no text.
        OSError: it cannot be opened.
    """
    try:
        descriptor = open_regular(access.resolved)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if status.st_size > MAX_TEXT_BYTES:
            size = size_text(status.st_size)
            raise FileProblem(
                f"has {size}; files beyond {size_text(MAX_TEXT_BYTES)} are not changed"
            )
        data = file.read()
    decoded = _decode(data, fallbacks)
    stamp = context.read_files.get(access.resolved)
    if stamp is None:
        raise FileProblem("has not been read in this conversation; read it before changing it")
    if stamp.content_hash != content_hash(data):
        raise FileProblem("was changed since it was last read; read it again")
    return ExistingFile(data, decoded, FileState.of(status), status.st_nlink > 1)


def text_before(access: PathAccess, fallbacks: Sequence[str]) -> str:
    """The text that is about to change, for showing the change; empty when there is none to show.

    Whether it may be changed is decided by ``load``.
    """
    try:
        with os.fdopen(open_regular(access.resolved), "rb") as file:
            data = file.read(MAX_SHOWN_BYTES + 1)
        return "" if len(data) > MAX_SHOWN_BYTES else decode(data, fallbacks).text
    except (OSError, FileProblem, NotTextError):
        return ""


def _decode(data: bytes, fallbacks: Sequence[str]) -> DecodedText:
    try:
        decoded = decode(data, fallbacks)
    except NotTextError as error:
        raise FileProblem(f"is {error}; only text files can be changed") from None
    if encode(decoded.text, decoded.format) != data:
        # Some encodings write one character in several ways; bytes elsewhere would move.
        encoding = decoded.format.encoding
        raise FileProblem(f"cannot be changed safely: {encoding} would not give back its bytes")
    return decoded


def save(
    access: PathAccess, data: bytes, existing: ExistingFile | None, context: ToolContext
) -> None:
    """Write the file and remember its new state, so that the next edit needs no new read.

    Raises:
        FileProblem, OSError: as ``write_file``.
    """
    write_file(access.resolved, data, existing.state if existing else None)
    context.read_files.record(access.resolved, ReadStamp(content_hash(data)))


def was_removed(access: PathAccess, context: ToolContext) -> bool:
    """Whether a file that does not exist is one the agent has read."""
    return context.read_files.get(access.resolved) is not None
