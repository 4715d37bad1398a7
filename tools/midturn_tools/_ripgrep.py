"""Where ripgrep is, and how it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from midturn_tools._child_environment import child_environment, find_program
from midturn_tools._globs import PathFilter

_VERSION_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class RipgrepInfo:
    """A usable ripgrep. ``origin`` tells where it was found, in words."""

    path: Path
    origin: str

    def version(self) -> str:
        """What ``rg --version`` says on its first line (blocking).

        Raises:
            OSError: it cannot be started.
            subprocess.SubprocessError: it failed or hung.
        """
        answer = subprocess.run(
            [str(self.path), "--no-config", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            cwd="/",
            env=child_environment(),
            timeout=_VERSION_WAIT,
        )
        return answer.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def find_ripgrep(workspace: Path) -> RipgrepInfo | None:
    """The ripgrep to use: of the search path, but never one that lies in ``workspace``
    (resolved); else the one beside our interpreter (the extra ``midturn[rg]``); else None.
    """
    found = find_program("rg", workspace)
    if found is not None:
        return RipgrepInfo(found, "search path")
    bundled = Path(sys.executable).with_name("rg")
    if bundled.is_file() and os.access(bundled, os.X_OK):
        return RipgrepInfo(bundled, "midturn[rg]")
    return None


class SearchMode(Enum):
    CONTENT = "content"
    FILES = "files"
    COUNT = "count"
    LIST = "list"
    """All files, whatever is in them."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to look for below ``root`` (resolved; a file or a folder)."""

    root: Path
    mode: SearchMode
    pattern: str = ""
    glob: str = ""
    file_type: str = ""
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    multiline: bool = False
    hidden: bool = False
    ignored: bool = False


def ripgrep_arguments(request: SearchRequest, *, by_path: bool) -> tuple[str, ...]:
    """The arguments after the program: patterns behind ``-e``, the path behind ``--``.

    A positive ``--glob`` of ripgrep would reopen hidden and ignored files. So the pattern is
    given as a file type of its own, which only narrows; what it cannot say is left to the
    caller's ``PathFilter``.
    """
    arguments = ["--no-config", "--color=never", "--no-require-git"]
    arguments += ["--hidden", "--glob=!.git"] if request.hidden else ["--glob=!.*"]
    arguments += ["--no-ignore"] if request.ignored else []
    arguments += ["--sort=path"] if by_path else []
    arguments += _narrowed(request)
    if request.mode is SearchMode.LIST:
        return (*arguments, "--files", "--null", "--", str(request.root))
    arguments += ["--ignore-case" if request.ignore_case else "--case-sensitive"]
    arguments += ["--multiline", "--multiline-dotall"] if request.multiline else ["--crlf"]
    return (*arguments, *_output(request), "-e", request.pattern, "--", str(request.root))


def _narrowed(request: SearchRequest) -> list[str]:
    paths = PathFilter(request.glob)
    if paths.negative:
        return [f"--glob={request.glob}"]
    arguments = [] if paths.depth is None else [f"--max-depth={paths.depth}"]
    if request.file_type:
        arguments.append(f"--type={request.file_type}")
    elif paths.name_glob:
        arguments += [f"--type-add=midturn:{paths.name_glob}", "--type=midturn"]
    return arguments


def _output(request: SearchRequest) -> list[str]:
    match request.mode:
        case SearchMode.CONTENT | SearchMode.LIST:
            context = [f"--before-context={request.before}", f"--after-context={request.after}"]
            return ["--json", *context]
        case SearchMode.FILES:
            return ["--files-with-matches", "--null"]
        case SearchMode.COUNT:
            return ["--count", "--with-filename", "--null"]
