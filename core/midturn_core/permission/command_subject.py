"""How rules look at a shell command (D42)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from midturn_core.permission.access import CommandAccess
from midturn_core.permission.decision import Decision, Match, PermissionMode, Verdict
from midturn_core.permission.escape_flags import escape_in
from midturn_core.permission.path_patterns import path_matches
from midturn_core.permission.removal import removal
from midturn_core.permission.rules import (
    AnyUse,
    CommandPattern,
    ExactCommand,
    PathPattern,
    Rule,
)
from midturn_core.permission.shell_scan import ShellScan, scan_command
from midturn_core.permission.shell_split import Word
from midturn_core.permission.shell_words import UnreadableCommandError, plain_words
from midturn_core.permission.shell_wrappers import Candidate, program_name
from midturn_core.permission.subjects import ALLOWED, Surroundings, covers_tool
from midturn_core.permission.word_set import word_set

_FOLDER_CHANGING = word_set("cd pushd popd")
_MAX_FOLDER_CHANGES = 4
_MAX_FOLLOWED = 2_000
"""Words of a command that changes the folder: each is looked at in every folder it may run in."""
_SHOWING = word_set("cat head tail less more bat tac nl od xxd hexdump strings base64 cp")
_LOOKING = (_SHOWING - {"cp"}) | word_set(
    "ls find fd grep egrep fgrep rg ag ack wc stat file du tree git cd pwd echo printf test diff "
    "cmp sort uniq cut"
)


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """``words`` is the command if it is a list of plain words, else ``unreadable`` says why not."""

    tool: str
    access: CommandAccess
    around: Surroundings
    scan: ShellScan
    words: tuple[str, ...]
    unreadable: str

    @classmethod
    def read(cls, tool: str, access: CommandAccess, around: Surroundings) -> CommandSubject:
        words: tuple[str, ...] = ()
        unreadable = ""
        try:
            words = plain_words(access.command)
        except UnreadableCommandError as error:
            unreadable = str(error)
        return cls(tool, access, around, scan_command(access.command), words, unreadable)

    @property
    def changes(self) -> bool:
        return True

    def denied_by(self, rule: Rule) -> Match:
        match rule.pattern:
            case AnyUse():
                return Match.YES if covers_tool(rule, self.tool) else Match.NO
            case CommandPattern() if covers_tool(rule, self.tool):
                return self._runs(rule.pattern)
            case ExactCommand(text) if covers_tool(rule, self.tool):
                return Match.YES if self.access.command == text else Match.NO
            case PathPattern(pattern):
                return self._touches(pattern, reads=rule.tool == "Read")
            case _:
                return Match.NO

    def asked_by(self, rule: Rule) -> Match:
        return Match.NO if isinstance(rule.pattern, PathPattern) else self.denied_by(rule)

    def allowed_by(self, rule: Rule) -> bool:
        if not covers_tool(rule, self.tool):
            return False
        match rule.pattern:
            case ExactCommand(text):
                # What the shell makes of it, the person who allowed it has judged.
                return self.access.command == text
            case _ if not self.words:
                return False
            case AnyUse():
                return True
            case CommandPattern(words, prefix):
                return self._starts_with(words, prefix) and not (
                    prefix and escape_in(self.words, len(words))
                )
            case _:
                return False

    def guard(self, mode: PermissionMode) -> str:
        changes = len(self._folder_changes())
        if changes > _MAX_FOLDER_CHANGES or (changes and len(self.scan.words) > _MAX_FOLLOWED):
            return "it changes the folder, and is too long to be followed"
        changing = [
            word.text
            for candidate in self.scan.certain
            if not _only_looks(candidate)
            for word in candidate.words[candidate.start + 1 :]
        ]
        texts = (*changing, *(word.text for word in self.scan.targets))
        reasons = (self._guard_in(folder, texts) for folder in self._folders())
        return next(filter(None, reasons), "")

    def _guard_in(self, folder: Path, texts: Iterable[str]) -> str:
        for path in self._paths(texts, folder):
            if reason := self.around.protects(path):
                return reason
        kept = (self.around.home, self.around.workspace)
        removals = (
            removal(
                program_name(candidate.words[candidate.start]),
                candidate.words[candidate.start + 1 :],
                folder,
                kept,
            )
            for candidate in self.scan.certain
        )
        return next(filter(None, removals), "")

    def _folders(self) -> tuple[Path, ...]:
        """Where its commands may run: in the folder of the call, or where it says that it goes."""
        folders = [self.access.cwd]
        for candidate in self._folder_changes():
            rest = candidate.words[candidate.start + 1 :]
            gone = next((word.text for word in rest if not word.text.startswith("-")), "~")
            target = str(self.around.home) + gone[1:] if gone[:2] in ("~", "~/") else gone
            for start in (folders[-1], self.access.cwd):
                folders.append(Path(os.path.normpath(start / target)))
        return tuple(dict.fromkeys(folders))

    def _folder_changes(self) -> list[Candidate]:
        return [
            candidate
            for candidate in self.scan.certain
            if program_name(candidate.words[candidate.start]) in _FOLDER_CHANGING
        ]

    def named_by(self, rule: Rule) -> bool:
        pattern = rule.pattern
        return isinstance(pattern, CommandPattern) and not pattern.prefix and self.allowed_by(rule)

    def default(self, mode: PermissionMode) -> Decision:
        if mode is PermissionMode.YOLO:
            return ALLOWED
        if self.unreadable:
            return Decision(
                Verdict.ASK, f"no rule by words can allow this command: {self.unreadable}"
            )
        if escape := escape_in(self.words, 0):
            return Decision(
                Verdict.ASK, f"no rule allows this command; {escape} can run or write more"
            )
        return Decision(Verdict.ASK, "no rule allows this command")

    def _starts_with(self, words: tuple[str, ...], prefix: bool) -> bool:
        return self.words[: len(words)] == words and (prefix or len(self.words) == len(words))

    def _runs(self, pattern: CommandPattern) -> Match:
        best = Match.MAYBE if self.scan.opaque else Match.NO
        for candidate in self.scan.certain:
            best = max(best, _match(pattern, candidate.words, candidate.start))
            if best is Match.YES:
                return best
        starts = (
            *((candidate.words, candidate.start) for candidate in self.scan.alternatives),
            *_rests(self.scan.possible),
        )
        if any(_match(pattern, words, start) is not Match.NO for words, start in starts):
            return Match.MAYBE
        return best

    def _touches(self, pattern: str, *, reads: bool) -> Match:
        around = self.around

        def is_named(words: Iterable[Word]) -> bool:
            paths = self._paths((word.text for word in words), self.access.cwd)
            return any(path_matches(pattern, path, around.workspace, around.home) for path in paths)

        shown = (
            word
            for candidate in self.scan.certain
            if program_name(candidate.words[candidate.start]) in _SHOWING
            for word in candidate.words[candidate.start + 1 :]
        )
        if reads and is_named(shown):
            return Match.YES
        words = (*self.scan.words, *self.scan.targets)
        unknown = any(word.dynamic for word in words) or self._goes_elsewhere()
        return Match.MAYBE if unknown or is_named(words) else Match.NO

    def _goes_elsewhere(self) -> bool:
        """Relative paths behind a change of folder are not those that the text shows."""
        return bool(self._folder_changes())

    def _paths(self, texts: Iterable[str], folder: Path) -> Iterator[Path]:
        """What words name if they are paths, alone or behind the ``=`` of an option or the ``:``
        of a revision.
        """
        for text in dict.fromkeys(texts):
            for part in dict.fromkeys((text, text.rpartition("=")[2], text.rpartition(":")[2])):
                if part and "\0" not in part:
                    expanded = f"{self.around.home}{part[1:]}" if part.startswith("~/") else part
                    yield Path(os.path.normpath(folder / expanded))


def _only_looks(candidate: Candidate) -> bool:
    words = [word.text for word in candidate.words[candidate.start :]]
    return program_name(words[0]) in _LOOKING and not escape_in(words, 0)


def _rests(possible: Iterable[Candidate]) -> Iterator[tuple[tuple[Word, ...], int]]:
    for candidate in possible:
        for start in range(candidate.start, len(candidate.words)):
            yield candidate.words, start


def _match(pattern: CommandPattern, words: tuple[Word, ...], start: int) -> Match:
    end = start + len(pattern.words)
    for offset, expected in enumerate(pattern.words):
        if start + offset >= len(words):
            return Match.NO
        word = words[start + offset]
        if word.dynamic:
            return Match.MAYBE
        same = (
            program_name(word) == program_name(expected) if offset == 0 else word.text == expected
        )
        if not same:
            return Match.NO
    if pattern.prefix or len(words) == end:
        return Match.YES
    return Match.MAYBE if all(word.dynamic for word in words[end:]) else Match.NO
