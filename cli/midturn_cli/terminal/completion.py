"""Completion of slash commands and of ``@`` files."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from midturn_cli.terminal.file_index import FileIndex

if TYPE_CHECKING:
    from midturn_cli.ports import CommandInfo

MAX_MATCHES = 50
_COMMAND = re.compile(r"/[^\s/]*\Z")
_FILE = re.compile(r"(?:^|(?<=[\s(]))@([^\s@]*)\Z")


def file_token(text_before_cursor: str) -> str | None:
    """What stands after the ``@`` that the cursor is in; None when it is in none."""
    found = _FILE.search(text_before_cursor)
    return found[1] if found else None


def command_token(text_before_cursor: str) -> str | None:
    """The slash command being typed, with its slash; None when the text is no command."""
    return text_before_cursor if _COMMAND.match(text_before_cursor) else None


def wants_completion(document: Document) -> bool:
    """Whether the menu should open by itself while typing."""
    before = document.text_before_cursor
    return command_token(before) is not None or file_token(before) is not None


def match_rank(folded: str, query: str) -> int | None:
    """How well a path fits, 0 best; None when it does not. ``query`` is case-folded.

    Besides plain parts of the path, ``ma/ro`` finds ``main/router.py``: each part of the query
    is found in a later part of the path.
    """
    name = folded.rstrip("/").rpartition("/")[2]
    if name.startswith(query):
        return 0
    if query in name:
        return 1
    if query in folded:
        return 2
    if "/" not in query:
        return None
    segments = iter(folded.split("/"))
    wanted = [part for part in query.split("/") if part]
    return 3 if all(any(part in segment for segment in segments) for part in wanted) else None


def best_matches(paths: Sequence[str], token: str) -> list[str]:
    """At most ``MAX_MATCHES`` paths for ``token``, the best first.

    Hidden ones only for a token that begins or has a part that begins with a dot.
    """
    query = token.casefold()
    hidden = _is_hidden(token)
    ranked = (
        (rank, len(path), path)
        for path in paths
        if (hidden or not _is_hidden(path))
        and (rank := match_rank(path.casefold(), query)) is not None
    )
    return [path for _, _, path in heapq.nsmallest(MAX_MATCHES, ranked)]


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def quoted(path: str) -> str:
    """A path as it is written after ``@``: in quotes when it holds white space."""
    return f'"{path}"' if re.search(r"\s", path) else path


class InputCompleter(Completer):
    """Offers commands at once and files as soon as they are known; never blocks typing."""

    def __init__(
        self,
        commands: Callable[[], Sequence[CommandInfo]],
        files: FileIndex,
        is_pasted: Callable[[], bool],
        on_gathered: Callable[[], None] = lambda: None,
    ) -> None:
        self._commands = commands
        self._files = files
        self._is_pasted = is_pasted
        self._on_gathered = on_gathered

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        token = command_token(before)
        if token is not None and not self._is_pasted():
            return self._command_completions(token)
        path = file_token(before)
        if path is not None:
            self._files.refresh()
            return _file_completions(best_matches(self._files.paths, path), path)
        return []

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        path = file_token(document.text_before_cursor)
        if path is None:
            for completion in self.get_completions(document, complete_event):
                yield completion
            return
        gathering = self._files.refresh()
        if gathering is not None and not self._files.paths:
            await asyncio.wrap_future(gathering)
            self._on_gathered()
        matches = await asyncio.to_thread(best_matches, self._files.paths, path)
        for completion in _file_completions(matches, path):
            yield completion

    def _command_completions(self, token: str) -> Iterable[Completion]:
        typed = token[1:].casefold()
        commands = self._commands()
        starting = [command for command in commands if command.name.startswith(typed)]
        containing = [c for c in commands if c not in starting and typed in c.name]
        for command in [*starting, *containing]:
            yield Completion(
                f"/{command.name}",
                start_position=-len(token),
                display=f"/{command.name} {command.arguments}".rstrip(),
                display_meta=command.summary,
            )


def _file_completions(matches: Sequence[str], token: str) -> Iterable[Completion]:
    for path in matches:
        yield Completion(quoted(path), start_position=-len(token), display=path)
