"""A conservative reading of shell commands: only a plain list of words is understood.

An allow rule for Bash is a promise about what runs. It is kept only for commands in which nothing
is left to the shell but taking quotes off: no operator, expansion, redirection, assignment or
second line. Whatever else a command holds, it is not read here, and the user is asked.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from midturn_core.permission.word_set import word_set

OPERATORS = frozenset("|&;()<>\n")
_JOINING = word_set("&& || ; |")
_EXPANDING = frozenset("$`*?[]{}")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_TILDE_STARTS = re.compile(r"(?:^|[:=])~")

RESERVED_WORDS = word_set(
    "if then else elif fi do done case esac while until for in select function time coproc"
) | {"{", "}", "!", "[[", "]]"}


class UnreadableCommandError(ValueError):
    """A command is more than a list of plain words; the text says what it holds."""


@dataclass(slots=True)
class _Reader:
    """One pass over the text; ``word`` is None between words."""

    text: str
    place: int = 0
    words: list[str] = field(default_factory=list[str])
    word: list[str] | None = None
    program_quoted: bool = False
    joined: bool = False
    """Operators that only join commands are taken; ``joints`` is where they stand."""
    joints: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def read(self) -> tuple[str, ...]:
        while self.place < len(self.text):
            self._read_next()
        self._end_word()
        return tuple(self.words)

    def _read_next(self) -> None:
        char = self.text[self.place]
        if char in " \t":
            self._end_word()
            self.place += 1
        elif char == "'":
            self._read_single_quoted()
        elif char == '"':
            self._read_double_quoted()
        elif char == "\\":
            self._read_escaped()
        elif char == "#" and self.word is None:
            self._read_comment()
        elif char in OPERATORS:
            self._read_operator()
        elif char in _EXPANDING:
            raise UnreadableCommandError(f"the shell would expand its {char}")
        else:
            self._add(char)
            self.place += 1

    def _read_operator(self) -> None:
        operator = self._operator()
        if not self.joined or operator not in _JOINING:
            raise UnreadableCommandError(f"it holds the shell operator {operator}")
        self._end_word()
        end = self.place + len(operator)
        self.joints.append((self.place, end))
        self.place = end

    def _operator(self) -> str:
        """The operator here as a person calls it: ``&&``, not its first character."""
        char = self.text[self.place]
        return (
            "line break"
            if char == "\n"
            else char * (1 + self.text.startswith(char * 2, self.place))
        )

    def _read_single_quoted(self) -> None:
        end = self.text.find("'", self.place + 1)
        if end < 0:
            raise UnreadableCommandError("a quote is not closed")
        self._add_quoted(self.text[self.place + 1 : end])
        self.place = end + 1

    def _read_double_quoted(self) -> None:
        self._add_quoted("")
        self.place += 1
        while self.place < len(self.text):
            char = self.text[self.place]
            self.place += 1
            if char == '"':
                return
            if char in "$`":
                raise UnreadableCommandError(f"the shell would expand its {char}")
            if char == "\\" and self.text[self.place : self.place + 1] in ("$", "`", '"', "\\"):
                char = self.text[self.place]
                self.place += 1
            elif char == "\\" and self.text[self.place : self.place + 1] == "\n":
                raise UnreadableCommandError("it continues on another line")
            self._add(char)
        raise UnreadableCommandError("a quote is not closed")

    def _read_escaped(self) -> None:
        escaped = self.text[self.place + 1 : self.place + 2]
        if not escaped or escaped == "\n":
            raise UnreadableCommandError("it continues on another line")
        self._add_quoted(escaped)
        self.place += 2

    def _read_comment(self) -> None:
        if "\n" in self.text[self.place :]:
            raise UnreadableCommandError("it has more than one line")
        self.place = len(self.text)

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def _add_quoted(self, text: str) -> None:
        self.program_quoted = self.program_quoted or not self.words
        self._add(text)

    def _end_word(self) -> None:
        if self.word is not None:
            self.words.append("".join(self.word))
            self.word = None


def plain_words(command: str) -> tuple[str, ...]:
    """The words of a command in which the shell has nothing to do but take quotes off.

    Raises:
        UnreadableCommandError: it is anything else; the text is a sentence fragment.
    """
    text = command.strip(" \t\n")
    refuse_invisible(text)
    reader = _Reader(text)
    words = reader.read()
    if not words:
        raise UnreadableCommandError("it is empty")
    if reader.program_quoted or not _PROGRAM.fullmatch(words[0]) or words[0] in RESERVED_WORDS:
        raise UnreadableCommandError("it does not start with the plain name of a program")
    # A quoted tilde is harmless, but quotes are gone here; asking once too often is not.
    if any(_TILDE_STARTS.search(word) for word in words):
        raise UnreadableCommandError("the shell would expand its ~")
    return words


def joined_words(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each command of a chain of plain ones: ``a && b | c; d``.

    Raises:
        UnreadableCommandError: it holds anything but plain commands and what joins them.
    """
    reader = _Reader(command, joined=True)
    reader.read()
    starts = [0, *(end for _, end in reader.joints)]
    ends = [*(start for start, _ in reader.joints), len(command)]
    return tuple(plain_words(command[start:end]) for start, end in zip(starts, ends, strict=True))


def refuse_invisible(text: str) -> None:
    """What a person cannot see in a question must not be allowed without one either."""
    for char in text:
        if char in " \t\n" or " " < char < "\x7f":
            continue
        if unicodedata.category(char)[0] in "CZ":
            raise UnreadableCommandError(f"it holds the invisible character U+{ord(char):04X}")
