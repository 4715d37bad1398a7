"""Cleaning foreign text for the screen: the border between what others wrote and the terminal.

Foreign is whatever the model, a tool, a file, a web page, a server or a person wrote. Two ways:
``clean`` removes what could act on the terminal, for text that is read; ``reveal`` shows it
instead of removing it, for text that somebody is about to approve, where hiding is the attack.
"""

from __future__ import annotations

import re
import unicodedata

TAB_WIDTH = 4
"""As in Markdown, so that a tab keeps its meaning there when it becomes spaces."""
LISTED = 300
"""Letters of a text in a list."""
MAX_ACCENTS = 4
"""Combining marks on one character; a taller stack would paint over other rows."""

_STRING_START = "(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])"
_STRING_END = "(?:\x07|\x1b\\\\|\x9c)"
_ESCAPES = re.compile(
    f"{_STRING_START}[^\x07\x1b\x80-\x9f]*{_STRING_END}"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|\x1b[ -/]+[0-~]"
    "|\x1b[0-Z\\\\^-~]"
)
_MAX_HELD = 8_192
"""A sequence that is longer and still open is taken for text."""
_OPEN_ESCAPE = re.compile(
    f"(?:{_STRING_START}[^\x07\x1b\x80-\x9f]*\x1b?|(?:\x1b\\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*)\\Z"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"
    "\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
_ACCENT = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_ACCENT_STACK = re.compile(f"({_ACCENT}{{{MAX_ACCENTS}}}){_ACCENT}+")
_ACCENTS_AT_END = re.compile(f"{_ACCENT}*\\Z")
_FLAG_OR_TONE = re.compile("[\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECT = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u0300-\u036f\u0483-\u0489\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u2028-\u202e\u2060-\u206f\u20d0-\u20ff"
    "\u3164\ud800-\udfff\ufe00-\ufe2f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U000e0000-\U000e0fff]"
)
_BLANK_RUN = re.compile(r"\n(?:[^\S\n]*\n){3,}")
_WIDE_GAP = re.compile(r"[^\S\n]{21,}")
_REVEALED = re.compile(f"{_UNSEEN.pattern}|[\r\x0b\x0c\u2028\u2029]")


def clean(text: str, *, expand_tabs: bool = True) -> str:
    """The text without anything that acts on a terminal or hides in it.

    Escape sequences, control characters other than line end and tab, bidirectional controls and
    invisible characters go; carriage returns become line ends; lone surrogates become U+FFFD;
    stacks of accents are cut; tabs become spaces unless ``expand_tabs`` is False.
    """
    if not _SUSPECT.search(text):
        return text
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _UNSEEN.sub("", text)
    text = _ACCENT_STACK.sub(r"\1", text)
    text = _SURROGATE.sub("\ufffd", text)
    return text.expandtabs(TAB_WIDTH) if expand_tabs else text


def reveal(text: str) -> str:
    """The text with everything that ``clean`` would remove shown in a visible form.

    For questions and banners: a person who approves a command must see all of it. Long runs of
    blanks and of empty lines, which push the end out of sight, are replaced by their length.
    """
    text = _REVEALED.sub(_visible, text.replace("\r\n", "\n").expandtabs(TAB_WIDTH))
    text = _with_unsteady_shown(text)
    text = _SURROGATE.sub("\ufffd", _ACCENT_STACK.sub(r"\1…", text))
    text = _WIDE_GAP.sub(lambda run: f" ⟨{len(run[0])} blanks⟩ ", text)
    return shorten_blank_lines(text)


def shorten_blank_lines(text: str) -> str:
    """Runs of three and more empty lines, replaced by one line that says how many."""
    return _BLANK_RUN.sub(lambda run: f"\n⟨{run[0].count(chr(10)) - 1} empty lines⟩\n", text)


def one_line(text: str, *, line_end: str = "⏎") -> str:
    """The cleaned text on one line; line ends and the blanks around them become ``line_end``."""
    return _joined(clean(text), line_end)


def beginning(text: str, most: int = LISTED) -> str:
    """The cleaned text on one line, or its first ``most`` letters: what a list says of a text that
    can be read whole elsewhere.
    """
    text = text.lstrip()
    return one_line(text) if len(text) <= most else f"{one_line(text[:most])}…"


def reveal_line(text: str) -> str:
    """``reveal`` on one line, for banners."""
    return _joined(reveal(text), "⏎")


def _joined(text: str, line_end: str) -> str:
    separator = f" {line_end} " if line_end.strip() else " "
    return separator.join(line.strip() for line in text.strip().split("\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else _code_point(code)


def _code_point(code: int) -> str:
    return f"⟨U+{code:04X}⟩"


def _with_unsteady_shown(text: str) -> str:
    """Letters that take more cells in one table of widths than in another push the end of their
    row out of the window.
    """
    if text.isascii():
        return text
    unsteady = (letter for letter in set(text) if _is_unsteady(letter))
    return text.translate({ord(letter): _code_point(ord(letter)) for letter in unsteady})


def _is_unsteady(letter: str) -> bool:
    return _FLAG_OR_TONE.match(letter) is not None or unicodedata.category(letter) == "Cn"


class StreamCleaner:
    """``clean`` for text that arrives in pieces: nothing slips through where they join."""

    def __init__(self, *, expand_tabs: bool = True) -> None:
        self._expand_tabs = expand_tabs
        self._held = ""
        self._column = 0
        self._accents = ""

    def feed(self, text: str) -> str:
        """The clean text so far decided; a possible beginning of an escape sequence waits."""
        text = self._held + text
        self._held = ""
        unfinished = _OPEN_ESCAPE.search(text, max(0, len(text) - _MAX_HELD))
        if unfinished is not None:
            text, self._held = text[: unfinished.start()], text[unfinished.start() :]
        elif text.endswith("\r"):
            text, self._held = text[:-1], "\r"
        return self._cleaned(text)

    def end(self) -> str:
        """What was still waiting; the next piece starts a new text."""
        rest, self._held = self._held, ""
        text = self._cleaned(rest)
        self._column = 0
        self._accents = ""
        return text

    def _cleaned(self, text: str) -> str:
        if not text:
            return ""
        shown = len(self._accents)
        text = clean(self._accents + text, expand_tabs=False)
        stack = _ACCENTS_AT_END.search(text)
        self._accents = stack[0] if stack is not None else ""
        return self._expanded(text[shown:])

    def _expanded(self, text: str) -> str:
        if not self._expand_tabs:
            return text
        if "\t" in text:
            shift = self._column % TAB_WIDTH
            text = (" " * shift + text).expandtabs(TAB_WIDTH)[shift:]
        _, line_end, last_line = text.rpartition("\n")
        self._column = len(last_line) + (0 if line_end else self._column)
        return text
