"""The user's own editor on the draft."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


class EditorError(Exception):
    """The editor could not be used. ``str(error)`` is one sentence for the user."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """$VISUAL, else $EDITOR, else vi or nano.

    Raises:
        EditorError: there is none, or the variable cannot be read.
    """
    for name in ("VISUAL", "EDITOR"):
        value = environ.get(name, "").strip()
        if value:
            try:
                return shlex.split(value)
            except ValueError as error:
                raise EditorError(f"${name} cannot be read: {error}.") from error
    for program in ("vi", "nano"):
        found = shutil.which(program)
        if found:
            return [found]
    raise EditorError("There is no editor: set $VISUAL or $EDITOR.")


async def edit(text: str, command: list[str]) -> str:
    """Let the user change ``text``; the terminal must be free.

    Raises:
        EditorError: the editor did not start, or it failed; the text is unchanged.
    """
    with tempfile.TemporaryDirectory(prefix="midturn-") as folder:
        path = Path(folder, "draft.md")
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(
                *command, os.fspath(path), stdin=0, stdout=1, stderr=2
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise EditorError(f"The editor {command[0]} did not start: {reason}.") from error
        status = await process.wait()
        if status != 0:
            raise EditorError(f"The editor {command[0]} ended with status {status}; draft kept.")
        edited = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
        # Editors end the last line of a file; that is no change of the draft.
        return edited if text.endswith("\n") else edited.removesuffix("\n")
