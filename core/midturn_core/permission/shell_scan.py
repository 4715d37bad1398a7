"""Which programs a shell command visibly runs, for rules that deny or ask.

The opposite of ``shell_words``: it looks as deep as text can show, through operators, grouping,
substitutions, wrappers and nested shells. What it finds is certain or possible, and when the text
cannot tell what runs, the reading is opaque. There is no cap beyond which a verdict gets softer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from midturn_core.permission.shell_split import ShellSplitter, Word
from midturn_core.permission.shell_wrappers import Candidate, unwrap


@dataclass(frozen=True, slots=True)
class ShellScan:
    """What a command runs, as far as its text shows.

    ``certain`` run as commands. ``alternatives`` may; of ``possible``, every rest may. ``words``
    are all words of all commands; ``targets`` is what redirections name.
    """

    certain: tuple[Candidate, ...]
    alternatives: tuple[Candidate, ...]
    possible: tuple[Candidate, ...]
    words: tuple[Word, ...]
    targets: tuple[Word, ...]
    opaque: bool


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    is_certain: bool = True
    is_document: bool = False


def _may_be_evaluated(word: Word) -> bool:
    """Quotes do not make text inert: prompts, array subscripts and arithmetic run it later."""
    return "$(" in word.text or "`" in word.text or "${" in word.text


def scan_command(command: str) -> ShellScan:
    """Read a command for rules that deny or ask; never raises."""
    certain: list[Candidate] = []
    alternatives: list[Candidate] = []
    possible: list[Candidate] = []
    words: list[Word] = []
    targets: list[Word] = []
    opaque = False
    # Each nested text is shorter than the one it was quoted in, so this ends.
    texts = deque([_Text(command)])
    while texts:
        text = texts.popleft()
        splitter = ShellSplitter(text.text, text.is_document)
        splitter.run()
        opaque = opaque or splitter.opaque
        targets.extend(splitter.targets)
        texts.extend(_Text(nested, text.is_certain) for nested in splitter.nested)
        texts.extend(_Text(body, text.is_certain, True) for body in splitter.documents)
        for simple in splitter.commands:
            found = unwrap(simple)
            opaque = opaque or found.opaque
            words.extend(simple)
            (certain if text.is_certain else alternatives).extend(found.certain)
            alternatives.extend(found.alternatives)
            possible.extend(found.possible)
            texts.extend(_Text(nested, text.is_certain) for nested in found.nested)
            texts.extend(_Text(word.text, False) for word in simple if _may_be_evaluated(word))
    return ShellScan(
        tuple(certain),
        tuple(alternatives),
        tuple(possible),
        tuple(words),
        tuple(targets),
        opaque,
    )
