"""The files of the workspace for completion: gathered off the loop, bounded, cached."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_PATHS = 100_000
"""Paths that are kept for completion; those in the fewest folders, where there are more."""
MAX_GATHERED = 5 * MAX_PATHS
MAX_SECONDS = 10.0
FRESH_SECONDS = 15.0


class FileIndex:
    """Gathers in a thread of its own; ``paths`` returns at once what is known so far."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._paths: tuple[str, ...] = ()
        self._gathered_at = float("-inf")
        self._gathering: Future[None] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Relative to the workspace, ``/`` between the parts; a folder ends with one.

        Plain strings: a hundred thousand objects of our own would call the garbage collector, and
        for as long as that looks at everything no key is taken.
        """
        return self._paths

    @property
    def begun(self) -> bool:
        """The files are being gathered for the first time: nothing is known yet."""
        return self._gathering is not None and not self._gathering.done() and not self._paths

    def refresh(self) -> Future[None] | None:
        """Gather anew unless what is known is fresh or on its way; the newest work, if any."""
        running = self._gathering is not None and not self._gathering.done()
        if not running and time.monotonic() - self._gathered_at >= FRESH_SECONDS:
            self._gathering = Future()
            # A daemon: leaving the program never waits for a slow file system.
            threading.Thread(
                target=self._gather, args=(self._gathering,), name="file-index", daemon=True
            ).start()
        return self._gathering

    def _gather(self, done: Future[None]) -> None:
        try:
            files = gather_files(self._workspace)
            self._paths = tuple(shallowest([*_folders_of(files), *files], MAX_PATHS))
        except OSError:
            # Completion is a courtesy: without the files it offers nothing.
            self._paths = ()
        finally:
            self._gathered_at = time.monotonic()
            if done.set_running_or_notify_cancel():
                done.set_result(None)


def gather_files(workspace: Path) -> list[str]:
    """The files that git would not ignore, at most ``MAX_GATHERED``, within ``MAX_SECONDS``."""
    program = _ripgrep(workspace)
    walk = _walk_with_ripgrep(program, workspace) if program else _walk(workspace)
    deadline = time.monotonic() + MAX_SECONDS
    files: list[str] = []
    for path in walk:
        files.append(path)
        if len(files) >= MAX_GATHERED or time.monotonic() > deadline:
            break
    return files


def shallowest(paths: Iterable[str], most: int) -> list[str]:
    """At most so many paths: those in the fewest folders.

    In small steps: while so many are sorted at once no key would be taken.
    """
    by_depth: dict[int, list[str]] = {}
    for path in paths:
        by_depth.setdefault(path.rstrip("/").count("/"), []).append(path)
    kept: list[str] = []
    for depth in sorted(by_depth):
        kept += by_depth[depth][: most - len(kept)]
    return kept


def _ripgrep(workspace: Path) -> str | None:
    """The ``rg`` of the system; one that lies in the workspace is nothing to trust."""
    found = shutil.which("rg")
    if found is None:
        return None
    program = Path(found).resolve()
    return None if program.is_relative_to(workspace.resolve()) else str(program)


def _walk_with_ripgrep(program: str, workspace: Path) -> Iterator[str]:
    arguments = [program, "--no-config", "--files", "--null", "--no-messages", "--color=never"]
    arguments += ["--hidden", "--glob=!.git"]
    with subprocess.Popen(
        arguments,
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.fileno()
        try:
            rest = b""
            while chunk := os.read(output, 65536):
                *names, rest = (rest + chunk).split(b"\0")
                for name in names:
                    yield os.fsdecode(name)
        finally:
            process.kill()


def _walk(workspace: Path) -> Iterator[str]:
    """The same without ripgrep: the .gitignore files on the way down are honoured."""
    pending = [("", [*_ignore_rules(workspace, "")])]
    while pending:
        folder, rules = pending.pop()
        for entry in _scan(workspace / folder):
            path = f"{folder}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or _ignored(f"{path}/" if is_folder else path, rules):
                continue
            if is_folder:
                below = f"{path}/"
                pending.append((below, [*rules, *_ignore_rules(workspace, below)]))
            elif entry.is_file():
                yield path


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _ignore_rules(workspace: Path, folder: str) -> Iterator[tuple[str, GitIgnoreSpec]]:
    # Imported where it is needed: it costs more than the whole terminal part at start-up.
    from pathspec import GitIgnoreSpec

    try:
        text = (workspace / folder / ".gitignore").read_text("utf-8", "replace")
    except OSError:
        return
    yield folder, GitIgnoreSpec.from_lines(text.splitlines())


def _ignored(path: str, rules: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """The innermost .gitignore that says something about the path decides."""
    for folder, spec in reversed(rules):
        verdict = spec.check_file(path[len(folder) :]).include
        if verdict is not None:
            return verdict
    return False


def _folders_of(files: list[str]) -> set[str]:
    folders: set[str] = set()
    for path in files:
        end = path.rfind("/")
        while end > 0 and path[: end + 1] not in folders:
            folders.add(path[: end + 1])
            end = path.rfind("/", 0, end)
    return folders
