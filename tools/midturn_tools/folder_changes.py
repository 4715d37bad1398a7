"""What has changed in a folder since the last commit, as git sees it; for the user's own question.

No tool, and never run by itself: it starts git in the folder. What the repository's configuration
could make git start is switched off: pager, external diff, text conversion, the file system
monitor, hooks, filters of the repository, fetching.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midturn_core.interrupt import Signal
from midturn_tools._child_environment import child_environment, find_program
from midturn_tools._process import ChildCommand, ChildLimits, Ending, run_child

SECONDS = 20.0
"""For each of the git commands."""
MAX_BYTES = 2_000_000
"""Of the output of each."""

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.quotePath", "false"),
    ("diff.autoRefreshIndex", "false"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
)
_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--relative",
)
_TOUCHED_ONLY = re.compile(r"^diff --git .*\n(?=diff --git |\Z)", re.MULTILINE)
"""A file of another time stamp and the same content: without refreshing the index, which would
write to the repository, git names it."""
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"


class NoRepositoryError(Exception):
    """git cannot say what has changed; the text says why."""


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """Relative to the folder. ``cut`` says that there is more than is held here."""

    diff: str
    """Unified, of tracked files; empty when none has changed."""
    untracked: tuple[str, ...]
    """Files and folders that git does not know and is not told to ignore."""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    output: str
    errors: str
    cut: bool

    @property
    def complaint(self) -> str:
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return lines[0].removeprefix("fatal: ") if lines else "git failed without a word"


async def find_folder_changes(folder: Path, signal: Signal) -> FolderChanges:
    """Ask git about ``folder``.

    Raises:
        NoRepositoryError: git is missing, the folder is in no repository, or git fails.
    """
    program = find_program("git", folder)
    if program is None:
        raise NoRepositoryError("git is not installed")
    git = _Git(program, folder, signal)
    if (await git.ask("rev-parse", "--is-inside-work-tree")).output.strip() != "true":
        raise NoRepositoryError(f"{folder} is in no working copy of a git repository")
    git = git.without_filters(await git.repository_filters())
    tree = await git.last_tree()
    diff = await git.require(*_DIFF, tree, "--", ".")
    names = await git.require(
        "ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory",
        "-z", "--", ".",
    )  # fmt: skip
    untracked = names.output.split("\0")[:-1]
    shown = _TOUCHED_ONLY.sub("", diff.output)
    return FolderChanges(shown, tuple(untracked), diff.cut or names.cut)


@dataclass(frozen=True, slots=True)
class _Git:
    """Runs git in a folder with ``settings`` on top of every configuration file."""

    program: Path
    folder: Path
    signal: Signal
    settings: tuple[tuple[str, str], ...] = _SETTINGS

    async def ask(self, *arguments: str) -> _Answer:
        output, errors = _Collector(), _Collector()
        argv = (str(self.program), "--no-pager", *arguments)
        command = ChildCommand(argv, self.folder, _environment(self.settings))
        try:
            result = await run_child(command, ChildLimits(SECONDS, self.signal), output, errors)
        except OSError as error:
            raise NoRepositoryError(f"git cannot be started: {error.strerror}") from error
        if result.ending is Ending.TIMED_OUT:
            raise NoRepositoryError(f"git took more than {SECONDS:g} seconds")
        if result.ending is Ending.CANCELLED:
            raise NoRepositoryError("it was interrupted")
        cut = result.ending is Ending.ENOUGH
        return _Answer(0 if cut else result.exit_code, output.text, errors.text, cut)

    async def require(self, *arguments: str) -> _Answer:
        answer = await self.ask(*arguments)
        if answer.code != 0:
            raise NoRepositoryError(answer.complaint)
        return answer

    async def last_tree(self) -> str:
        """What to compare with: the last commit, or before the first one the empty tree."""
        if (await self.ask("rev-parse", "--quiet", "--verify", "HEAD")).code == 0:
            return "HEAD"
        return (await self.require("hash-object", "-t", "tree", "--stdin")).output.strip()

    async def repository_filters(self) -> set[str]:
        """The filters that the repository itself defines; the user's own are trusted."""
        names = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", _FILTERS)
        fields = (await self.ask(*names)).output.split("\0")
        pairs = zip(fields[0::2], fields[1::2], strict=False)
        return {key.rpartition(".")[0] for scope, key in pairs if scope in ("local", "worktree")}

    def without_filters(self, names: set[str]) -> _Git:
        off = [
            (f"{name}.{key}", value)
            for name in sorted(names)
            for key, value in (
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            )
        ]
        return _Git(self.program, self.folder, self.signal, (*self.settings, *off))


class _Collector:
    """Takes at most ``MAX_BYTES``."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __call__(self, data: bytes) -> bool:
        self._data += data
        return len(self._data) > MAX_BYTES

    @property
    def text(self) -> str:
        return self._data[:MAX_BYTES].decode("utf-8", errors="replace")


def _environment(settings: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """No variable of git's own passes: one such as GIT_EXTERNAL_DIFF starts programs."""
    kept = {name: v for name, v in child_environment().items() if not name.startswith("GIT_")}
    pairs = {f"GIT_CONFIG_KEY_{place}": key for place, (key, _) in enumerate(settings)}
    values = {f"GIT_CONFIG_VALUE_{place}": value for place, (_, value) in enumerate(settings)}
    return {**kept, **_VARIABLES, "GIT_CONFIG_COUNT": str(len(settings)), **pairs, **values}
