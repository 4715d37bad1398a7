"""Hands text to the machine's clipboard through a program; for the user's own command.

No tool: the model neither calls it nor hears of it. Without such a program only the terminal can
be asked, which is the front end's business.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from midturn_tools._child_environment import child_environment, find_program

SECONDS = 3.0
"""For one program: without its display some wait for ever."""


class ClipboardProgramError(Exception):
    """A program did not take the text; the text says which and why."""


@dataclass(frozen=True, slots=True)
class ClipboardProgram:
    """A program that takes text on its standard input. ``argv[0]`` is an absolute path."""

    name: str
    argv: tuple[str, ...]
    encoding: str = "utf-8"

    def copy(self, text: str) -> None:
        """Run it (blocking, at most ``SECONDS``).

        It keeps running behind us where it serves the clipboard itself, as under X11 and Wayland:
        what was copied outlives Midturn.

        Raises:
            ClipboardProgramError: it cannot be started, failed, or took too long.
        """
        try:
            done = subprocess.run(
                self.argv,
                input=text.encode(self.encoding, errors="replace"),
                # A pipe would be held open by the part that stays behind.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=child_environment(),
                start_new_session=True,
                timeout=SECONDS,
                check=False,
            )
        except OSError as error:
            raise ClipboardProgramError(f"{self.name} cannot be started") from error
        except subprocess.TimeoutExpired as error:
            raise ClipboardProgramError(f"{self.name} took too long") from error
        if done.returncode != 0:
            raise ClipboardProgramError(f"{self.name} failed with exit code {done.returncode}")


def clipboard_programs(workspace: Path, environ: Mapping[str, str]) -> list[ClipboardProgram]:
    """The programs that can reach the user's clipboard from here, the best first.

    None of them lies in ``workspace`` (resolved). Over SSH the clipboard of the machine is not
    the one of the person in front of the screen, so only a forwarded display and tmux count there.
    """
    found: list[ClipboardProgram] = []
    for name, arguments, encoding in _fitting(environ):
        path = find_program(name, workspace)
        if path is not None:
            found.append(ClipboardProgram(name, (str(path), *arguments), encoding))
    return found


def _fitting(environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    if environ.get("WAYLAND_DISPLAY"):
        yield "wl-copy", (), "utf-8"
    if environ.get("DISPLAY"):
        yield "xclip", ("-selection", "clipboard", "-in"), "utf-8"
        yield "xsel", ("--clipboard", "--input"), "utf-8"
    if not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY")):
        yield "pbcopy", (), "utf-8"
        if os.name == "posix":
            # Windows seen from WSL; it takes bytes for its old code page unless they are UTF-16.
            yield "clip.exe", (), "utf-16-le"
    if environ.get("TMUX"):
        # tmux drops what a program in it sends to the terminal's clipboard, unless set-clipboard
        # is "on"; with -w it sends the text to the terminal around it by itself.
        yield "tmux", ("load-buffer", "-w", "-"), "utf-8"
