"""What runs behind a simple command: ``env X``, ``xargs X``, ``sh -c '…'``, ``find -exec X``."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

from midturn_core.permission.shell_split import LEADING_KEYWORDS, Word
from midturn_core.permission.word_set import word_set

SHELLS = word_set("sh bash zsh dash ksh ash fish rbash mksh")

# Wrappers that run their operand, each with the options that take a value of their own.
_WRAPPERS: dict[str, str] = {
    "env": "uCS",
    "nohup": "",
    "timeout": "ks",
    "nice": "n",
    "ionice": "cnp",
    "chrt": "TPD",
    "time": "fo",
    "exec": "a",
    "command": "",
    "builtin": "",
    "xargs": "adEILnPs",
    "sudo": "ugpCDhRrtTU",
    "doas": "uC",
    "stdbuf": "ioe",
    "setsid": "",
    "strace": "eopsPuE",
    "ltrace": "eopsu",
    "busybox": "",
    "toybox": "",
    "coproc": "",
    "unbuffer": "",
    "chroot": "",
    "flock": "wEc",
    "run0": "",
    "pkexec": "",
    "rlwrap": "",
}
WRAPPERS = frozenset(_WRAPPERS)
# Wrappers whose first operand is not the program: a duration, a folder, a lock file.
_FIRST_OPERAND_IS_OWN = frozenset({"timeout", "chroot", "flock", "chrt"})

# Programs that run what is written elsewhere, so that the text of the command cannot tell.
_OPAQUE = word_set(
    "eval source . alias trap hash enable ssh su script at batch crontab docker podman "
    "nsenter unshare systemd-run screen tmux expect watch parallel "
    "mapfile readarray complete compgen bind"
)
GIT_OPTIONS_WITH_VALUE = word_set(
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env --attr-source"
)
_FIND_ACTIONS = word_set("-exec -execdir -ok -okdir")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_MAX_OPTIONS_LOOKED_PAST = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """Words that run as a command: ``words[start:]``."""

    words: tuple[Word, ...]
    start: int = 0


@dataclass(slots=True)
class Unwrapped:
    """What one simple command runs.

    ``possible`` stands for every rest of its words from ``start`` on; ``nested`` is shell text.
    """

    certain: list[Candidate] = field(default_factory=list[Candidate])
    possible: list[Candidate] = field(default_factory=list[Candidate])
    alternatives: list[Candidate] = field(default_factory=list[Candidate])
    nested: list[str] = field(default_factory=list[str])
    opaque: bool = False


def program_name(word: Word | str) -> str:
    """The name a rule would use: without folders, and without case where disks may ignore it."""
    text = word if isinstance(word, str) else word.text
    return posixpath.basename(posixpath.normpath(text)).casefold() if text else ""


def unwrap(words: tuple[Word, ...]) -> Unwrapped:
    """Everything that the words of a simple command visibly run."""
    found = Unwrapped()
    todo = [0]
    while todo:
        start = _skip_prefixes(words, todo.pop())
        if start >= len(words):
            continue
        found.certain.append(Candidate(words, start))
        if words[start].dynamic:
            found.opaque = True
            continue
        name = program_name(words[start])
        if name in _WRAPPERS:
            todo.append(_wrapped(name, words, start, found))
        elif name == "find":
            todo.extend(
                place + 1
                for place in range(start, len(words))
                if words[place].text in _FIND_ACTIONS
            )
        else:
            _look_inside(name, words, start, found)
    return found


def _skip_prefixes(words: tuple[Word, ...], start: int) -> int:
    while start < len(words):
        text = words[start].text
        if text == "function":
            start += 2
        elif text in LEADING_KEYWORDS or _ASSIGNMENT.match(text):
            start += 1
        else:
            break
    return start


def _wrapped(name: str, words: tuple[Word, ...], start: int, found: Unwrapped) -> int:
    """Where the wrapped command begins if options are read as usual; any later word may be it."""
    if not found.possible:
        found.possible.append(Candidate(words, start + 1))
    place = start + 1
    while place < len(words) and words[place].text.startswith(("-", "+")):
        option = words[place].text
        place += 1
        if name == "env" and option.startswith(("-S", "--split-string")):
            glued = option.partition("=")[2] if option.startswith("--") else option[2:]
            found.nested.append(" ".join([glued, *(word.text for word in words[place:])]))
        if option == "--":
            break
        if len(option) == 2 and option[1] in _WRAPPERS[name]:
            place += 1
    return place + 1 if name in _FIRST_OPERAND_IS_OWN else place


def _look_inside(name: str, words: tuple[Word, ...], start: int, found: Unwrapped) -> None:
    if name in SHELLS:
        _look_inside_shell(words, start, found)
    elif name in _OPAQUE:
        found.opaque = True
        found.nested.append(" ".join(word.text for word in words[start + 1 :]))
    elif name == "git":
        place = start + 1
        while place < len(words) and words[place].text.startswith("-"):
            place += 2 if words[place].text in GIT_OPTIONS_WITH_VALUE else 1
        found.certain.append(Candidate((words[start], *words[place:])))
    elif start + 1 < len(words) and words[start + 1].text.startswith("-"):
        last = min(len(words), start + 2 + _MAX_OPTIONS_LOOKED_PAST)
        found.alternatives.extend(
            Candidate((words[start], *words[place:])) for place in range(start + 2, last)
        )


def _look_inside_shell(words: tuple[Word, ...], start: int, found: Unwrapped) -> None:
    """``-c`` with readable text is looked into; a script file is a program; else it reads input."""
    place = start + 1
    runs_text = False
    while place < len(words) and words[place].text.startswith(("-", "+")):
        option = words[place].text
        runs_text = runs_text or (not option.startswith("--") and "c" in option)
        place += 2 if option in ("-o", "+o", "-O", "+O") else 1
    if place >= len(words) or words[place].dynamic or (not runs_text and _reads_input(words)):
        found.opaque = True
    elif runs_text:
        found.nested.append(words[place].text)


def _reads_input(words: tuple[Word, ...]) -> bool:
    return any(word.text in ("-s", "-", "/dev/stdin") for word in words)
