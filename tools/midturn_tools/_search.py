"""Runs a search in a child process: ripgrep where there is one, our own otherwise."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from midturn_core.permission.access import PathAccess
from midturn_core.tool import ToolContext
from midturn_tools._bounded_output import BoundedOutput
from midturn_tools._child_environment import child_environment
from midturn_tools._globs import PathFilter
from midturn_tools._paths import FileProblem, explain, shown_path
from midturn_tools._process import (
    ChildCommand,
    ChildLimits,
    ChildResult,
    Consumer,
    Ending,
    run_child,
)
from midturn_tools._ripgrep import RipgrepInfo, SearchRequest, ripgrep_arguments
from midturn_tools._search_results import shown_name

SEARCH_SECONDS = 25.0
"""Below the limit of a call (D22), so that what was found until then is not lost. A second pass
starts only after a first one that had found plenty."""
_OWN_SEARCH = Path(__file__).with_name("_search_child.py")
_NICENESS = 10
_ERROR_BYTES = 8_000
_UNREADABLE = re.compile(r"^(?:rg: )?(?P<path>.+): (?P<why>.+) \(os error \d+\)$", re.MULTILINE)
_FAILED = 2

FindRipgrep = Callable[[Path], RipgrepInfo | None]


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """How a search ended: ``problem`` says why it could not be done (empty: it could),
    ``unreadable`` counts what was passed over, ``first_unreadable`` names the first.
    """

    ending: Ending
    seconds: float
    problem: str = ""
    unreadable: int = 0
    first_unreadable: str = ""


@dataclass(slots=True)
class SearchEngine:
    """Finds ripgrep once per workspace. ``find`` may return None: then our own search runs.
    ``seconds`` is what one search may take.
    """

    find: FindRipgrep
    seconds: float = SEARCH_SECONDS
    _found: dict[Path, RipgrepInfo | None] = field(default_factory=dict[Path, "RipgrepInfo | None"])

    async def search(
        self,
        request: SearchRequest,
        context: ToolContext,
        consume: Consumer,
        *,
        by_path: bool = False,
    ) -> SearchEnd:
        """Run one search; what it prints goes to ``consume``. ``by_path``: in path order, which
        is slower. Raises nothing; a problem is told in the result.
        """
        errors = BoundedOutput(_ERROR_BYTES, _ERROR_BYTES)

        def complain(data: bytes) -> bool:
            errors.feed(data)
            return False

        limits = ChildLimits(self.seconds, context.signal)
        ripgrep = await self._ripgrep(context)
        child: ChildResult | None = None
        if ripgrep is not None:
            arguments = ripgrep_arguments(request, by_path=by_path)
            command = _command((str(ripgrep.path), *arguments), request)
            try:
                child = await run_child(command, limits, consume, complain)
            except OSError:
                # A binary for another machine, or removed meanwhile.
                self._found[context.workspace] = None
        if child is None:
            try:
                child = await run_child(_own_command(request), limits, consume, complain)
            except OSError as error:
                return SearchEnd(Ending.EXITED, 0.0, f"the search could not be started: {error}")
        return _end(child, errors.text())

    async def _ripgrep(self, context: ToolContext) -> RipgrepInfo | None:
        if context.workspace not in self._found:
            found = await context.run_blocking(partial(self.find, context.workspace))
            self._found[context.workspace] = found
        return self._found[context.workspace]


def _command(argv: tuple[str, ...], request: SearchRequest) -> ChildCommand:
    folder = request.root if request.root.is_dir() else request.root.parent
    return ChildCommand(argv, folder, child_environment(), _NICENESS)


def _own_command(request: SearchRequest) -> ChildCommand:
    paths = PathFilter(request.glob)
    # The fields of its Request. It is not imported: it needs pathspec, which is slow to load.
    argument = json.dumps(
        {
            "root": str(request.root),
            "mode": request.mode.value,
            "pattern": request.pattern,
            "names": paths.expression() if request.glob else ".*",
            "negative": paths.negative,
            "depth": paths.depth,
            "file_type": request.file_type,
            "before": request.before,
            "after": request.after,
            "ignore_case": request.ignore_case,
            "multiline": request.multiline,
            "hidden": request.hidden,
            "ignored": request.ignored,
        }
    )
    return _command((sys.executable, "-I", "-X", "utf8", str(_OWN_SEARCH), argument), request)


def _end(child: ChildResult, errors: str) -> SearchEnd:
    unreadable = list(_UNREADABLE.finditer(errors))
    first = unreadable[0] if unreadable else None
    problem = ""
    rest = _UNREADABLE.sub("", errors).strip()
    if child.ending is Ending.EXITED and child.exit_code == _FAILED and rest:
        problem = _in_our_words(rest)
    elif child.ending is Ending.EXITED and child.exit_code not in (0, 1, _FAILED):
        problem = f"the search ended with code {child.exit_code}: {rest or 'no reason given'}"
    return SearchEnd(
        child.ending,
        child.seconds,
        problem,
        len(unreadable),
        f"{first['path']}: {first['why']}" if first else "",
    )


def _in_our_words(problem: str) -> str:
    """The engine's message, with its flags replaced by what the tool offers."""
    said = re.split(r"\n\s*\nConsider enabling", problem.removeprefix("rg: "))[0].rstrip()
    said = said.replace(" without --multiline", "")
    if "--multiline" in problem:
        return f"{said}\nSet multiline to true to match across lines."
    if "--pcre2" in problem:
        return f"{said}\nLook-around and back-references are not available: search in two steps."
    return said


def accept_paths(request: SearchRequest) -> Callable[[bytes], bool]:
    """Whether a path that an engine printed passes ``request.glob``.

    Raises:
        GlobError: the pattern cannot be read.
    """
    paths = PathFilter(request.glob)
    if not request.glob or paths.negative or not request.root.is_dir():
        return lambda _: True
    root = len(os.fsencode(request.root).rstrip(b"/")) + 1
    matches = paths.compiled().fullmatch
    return lambda path: matches(os.fsdecode(path[root:])) is not None


def accept_readable(request: SearchRequest, context: ToolContext) -> Callable[[bytes], bool]:
    """As ``accept_paths``, and no rule closes the file: a search must not read for the model what
    Read would refuse or ask about.
    """
    accepted, searched = accept_paths(request), context.accesses
    return lambda path: accepted(path) and not context.withholds(Path(os.fsdecode(path)), searched)


def root_problem(access: PathAccess, path: str, context: ToolContext) -> str:
    """Why a search cannot start at ``path``; empty when it can. Blocking."""
    try:
        mode = os.stat(access.resolved).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise FileProblem("a pipe, socket or device")
    except (OSError, FileProblem) as error:
        return explain(error, path, access, context.workspace)
    return ""


@dataclass(frozen=True, slots=True)
class Names:
    """How the paths of a search are shown: as the model wrote the folder, one line each."""

    access: PathAccess
    workspace: Path

    def show(self, path: bytes) -> str:
        root = os.fsencode(self.access.resolved)
        start = shown_path(self.access.written, self.workspace)
        below = path[len(root) :].lstrip(b"/") if path.startswith(root) else path
        prefix = b"" if start == "." else os.fsencode(start) + (b"/" if below else b"")
        return shown_name(prefix.replace(b"//", b"/") + below)
