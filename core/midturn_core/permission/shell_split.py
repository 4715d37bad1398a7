"""Splitting shell text into simple commands, for rules that deny or ask.

Lenient where ``shell_words`` is strict: it follows quotes, substitutions, groups and here
documents as well as text allows, in one pass without recursion, and says where it cannot tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from midturn_core.permission.word_set import word_set

_FD = re.compile(r"\d+|\{\w+\}")
_REDIRECTION = re.compile(r"&>>?|[<>]+[&|]?")
_HERE_DOCUMENT = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s\\'\"|&;()<>`])+)")
_ANSI_C_QUOTED = re.compile(r"\$'((?:\\.|[^'\\])*)'", re.DOTALL)
_CODED_CHARACTER = re.compile(r"\\[0-7xuUc]")
_BACKTICKS = re.compile(r"`((?:\\.|[^`\\])*)`", re.DOTALL)
_ESCAPED = re.compile(r"\\([$`\\])")
_ESCAPED_IN_QUOTED_BACKTICKS = re.compile(r"\\([$`\\\"])")
_SIMPLE_PARAMETER = re.compile(
    r"\$(?:\w|[@*#?$!-]"
    r"|\{[#!]?\w+(?:\[[\w@*]+\])?(?:(?:%%?|##?|:?[-+=?]|//?|:|\^\^?|,,?)[\w./:=%+,*?-]*)?\})"
)

LEADING_KEYWORDS = word_set("if then else elif do while until ! {")
"""Words after which a command begins."""
_BEFORE_CASE = LEADING_KEYWORDS | word_set("time -p coproc")


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its quotes taken off; ``dynamic`` when the shell would change the text."""

    text: str
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class _HereDocument:
    """``expanded``: its delimiter is not quoted, so that the shell runs substitutions in it."""

    delimiter: str
    tabs_ignored: bool
    expanded: bool


@dataclass(slots=True)
class _Frame:
    """A list of commands: the text itself, or the inside of a substitution or a group."""

    closer: str
    words: list[Word] = field(default_factory=list[Word])
    buffer: list[str] | None = None
    dynamic: bool = False
    braces: bool = False
    in_double_quotes: bool = False
    target_follows: bool = False
    open_cases: int = 0


@dataclass(slots=True)
class ShellSplitter:
    """Call ``run`` once; the results are then in the public fields.

    ``commands`` are simple commands; ``targets`` what redirections name; ``documents`` the bodies
    of here documents that the shell expands; ``nested`` the insides of backticks; ``opaque`` says
    that the text was not understood. ``is_document`` reads such a body: only substitutions count.
    """

    text: str
    is_document: bool = False
    commands: list[tuple[Word, ...]] = field(default_factory=list[tuple[Word, ...]])
    targets: list[Word] = field(default_factory=list[Word])
    documents: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    opaque: bool = False
    _place: int = 0
    _frames: list[_Frame] = field(default_factory=lambda: [_Frame("")])
    _awaited: list[_HereDocument] = field(default_factory=list[_HereDocument])

    def run(self) -> None:
        self._frame.in_double_quotes = self.is_document
        while self._place < len(self.text):
            if self._frame.in_double_quotes:
                self._read_in_double_quotes()
            else:
                self._read()
        is_open = self._frame.in_double_quotes and not self.is_document
        self.opaque = self.opaque or len(self._frames) > 1 or is_open
        if self.is_document:
            self._frames[0] = _Frame("")
        while self._frames:
            self._end_command()
            self._frames.pop()

    @property
    def _frame(self) -> _Frame:
        return self._frames[-1]

    def _read(self) -> None:
        char = self.text[self._place]
        match char:
            case " " | "\t":
                self._end_word()
                self._place += 1
            case "'":
                self._read_single_quoted()
            case '"':
                self._frame.in_double_quotes = True
                self._add("")
            case "\\":
                self._read_escaped()
            case "$":
                self._read_dollar()
            case "`":
                self._read_backticks()
            case "#" if self._frame.buffer is None:
                self._skip_comment()
            case "\n" | ";" | "|" | "&" | "(" | ")" | "<" | ">":
                self._read_operator(char)
            case _:
                self._frame.dynamic = self._frame.dynamic or char in "*?["
                self._frame.braces = self._frame.braces or char == "{"
                self._add(char)

    def _read_in_double_quotes(self) -> None:
        char = self.text[self._place]
        match char:
            case '"' if len(self._frames) > 1 or not self.is_document:
                self._frame.in_double_quotes = False
                self._add("")
            case "\\":
                self._read_escaped(keep="abcdefghijklmnopqrstuvwxyz")
            case "$":
                self._read_dollar()
            case "`":
                self._read_backticks()
            case _:
                self._add(char)

    def _read_single_quoted(self) -> None:
        end = self.text.find("'", self._place + 1)
        if end < 0:
            self.opaque = True
            end = len(self.text)
        self._add(self.text[self._place + 1 : end], skip=end + 1 - self._place)

    def _read_escaped(self, keep: str = "") -> None:
        escaped = self.text[self._place + 1 : self._place + 2]
        if escaped == "\n":
            self._place += 2
        else:
            self._add("\\" + escaped if escaped in keep else escaped, skip=2)

    def _read_dollar(self) -> None:
        rest = self.text[self._place : self._place + 64]
        in_quotes = self._frame.in_double_quotes
        if rest.startswith("$("):
            self._mark_dynamic()
            self._place += 2
            self._frames.append(_Frame(")"))
        elif rest.startswith("$'") and not in_quotes:
            self._read_ansi_c_quoted()
        elif rest.startswith('$"') and not in_quotes:
            self._place += 1
        elif rest.startswith(("${", "$[")):
            self._mark_dynamic()
            self.opaque = self.opaque or _SIMPLE_PARAMETER.match(rest) is None
            self._place += 2
        elif _SIMPLE_PARAMETER.match(rest):
            self._mark_dynamic()
            self._place += 1
        else:
            self._add("$")

    def _read_ansi_c_quoted(self) -> None:
        quoted = _ANSI_C_QUOTED.match(self.text, self._place)
        self._mark_dynamic()
        if quoted is None:
            self.opaque = True
            self._place = len(self.text)
        else:
            self.opaque = self.opaque or _CODED_CHARACTER.search(quoted[1]) is not None
            self._add(quoted[1], skip=len(quoted[0]))

    def _read_backticks(self) -> None:
        """The text up to the next backtick without a backslash, which loses one level of them."""
        quoted = _BACKTICKS.match(self.text, self._place)
        self._mark_dynamic()
        if quoted is None:
            self.opaque = True
            self.nested.append(self.text[self._place + 1 :])
            self._place = len(self.text)
        else:
            escapes = _ESCAPED_IN_QUOTED_BACKTICKS if self._frame.in_double_quotes else _ESCAPED
            self.nested.append(escapes.sub(r"\1", quoted[1]))
            self._place = quoted.end()

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self._place)
        self._place = len(self.text) if end < 0 else end

    def _read_operator(self, char: str) -> None:
        if self.text.startswith(("<(", ">("), self._place):
            self._mark_dynamic()
            self._place += 2
            self._frames.append(_Frame(")"))
        elif char in "<>" or self.text.startswith("&>", self._place):
            self._read_redirection()
        else:
            self._end_command()
            self._place += 1
            if char == "\n":
                self._read_here_documents()
            elif char == "(":
                self._frames.append(_Frame(")"))
            elif char == ")" and self._frame.closer == ")" and not self._frame.open_cases:
                self._close_frame()

    def _read_redirection(self) -> None:
        frame = self._frame
        if frame.buffer is not None and _FD.fullmatch("".join(frame.buffer)):
            frame.buffer = None
        self._end_word()
        document = _HERE_DOCUMENT.match(self.text, self._place)
        if document is not None and not self.text.startswith("<<<", self._place):
            delimiter = re.sub(r"[\\'\"]", "", document[2])
            self._awaited.append(
                _HereDocument(delimiter, bool(document[1]), delimiter == document[2])
            )
            self._place = document.end()
            return
        operator = _REDIRECTION.match(self.text, self._place)
        self._place = self._place + 1 if operator is None else operator.end()
        frame.target_follows = True

    def _read_here_documents(self) -> None:
        for awaited in self._awaited:
            lines: list[str] = []
            while self._place < len(self.text):
                end = self.text.find("\n", self._place)
                end = len(self.text) if end < 0 else end
                line = self.text[self._place : end]
                self._place = end + 1
                if (line.lstrip("\t") if awaited.tabs_ignored else line) == awaited.delimiter:
                    break
                lines.append(line)
            if awaited.expanded:
                self.documents.append("\n".join(lines))
        self._awaited.clear()

    def _add(self, text: str, skip: int = 1) -> None:
        if self._frame.buffer is None:
            self._frame.buffer = []
        self._frame.buffer.append(text)
        self._place += skip

    def _mark_dynamic(self) -> None:
        self._frame.dynamic = True
        if self._frame.buffer is None:
            self._frame.buffer = []

    def _end_word(self) -> None:
        frame = self._frame
        if frame.buffer is None:
            return
        text = "".join(frame.buffer)
        expands = frame.braces and ("," in text or ".." in text)
        is_test = text in ("[", "[[") and not frame.words
        word = Word(text, (frame.dynamic or expands) and not is_test)
        (self.targets if frame.target_follows else frame.words).append(word)
        frame.buffer = None
        frame.dynamic = frame.braces = frame.target_follows = False

    def _end_command(self) -> None:
        self._end_word()
        frame = self._frame
        frame.target_follows = False
        if frame.words:
            if _opens_case(frame.words):
                frame.open_cases += 1
            elif frame.words[0].text == "esac":
                frame.open_cases = max(0, frame.open_cases - 1)
            self.commands.append(tuple(frame.words))
            frame.words.clear()

    def _close_frame(self) -> str:
        self._end_command()
        return self._frames.pop().closer


def _opens_case(words: list[Word]) -> bool:
    """Then a closing parenthesis ends a pattern, not what surrounds the command."""
    first = next((word.text for word in words if word.text not in _BEFORE_CASE), "")
    return first == "case"
