"""Operands with which an otherwise harmless program runs others or writes files.

A prefix rule such as ``Bash(git log:*)`` is meant for looking at the log, not for
``git log --output=FILE``. What is found here is asked about even under a prefix rule, unless the
rule itself spells it. Long options are also found when they are abbreviated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from midturn_core.permission.shell_wrappers import (
    GIT_OPTIONS_WITH_VALUE,
    SHELLS,
    WRAPPERS,
    program_name,
)
from midturn_core.permission.word_set import word_set

_INTERPRETERS = SHELLS | word_set(
    "python python2 python3 perl ruby node nodejs deno bun php lua tclsh osascript pwsh "
    "powershell npx uvx pipx gdb vi vim nvim emacs ed ex"
)
# Wrappers run their operands; these builtins evaluate theirs, even in single quotes.
_ALWAYS_ASKED = WRAPPERS | word_set(
    "unset let declare typeset local readonly export read mapfile readarray getopts set shopt "
    "bind complete alias unalias trap hash enable eval source . ssh su script"
)


@dataclass(frozen=True, slots=True)
class _Flags:
    """``short`` letters are looked for in every cluster, ``long`` also when abbreviated;
    ``words`` and ``starts`` compare whole operands and their beginnings.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()

    def has(self, word: str) -> bool:
        if word in self.words or (self.starts and word.startswith(self.starts)):
            return True
        if word.startswith("--"):
            name = word.partition("=")[0]
            return len(name) > 2 and any(option.startswith(name) for option in self.long)
        return word.startswith("-") and any(letter in self.short for letter in word[1:])


_FLAGS: dict[str, _Flags] = {
    "find": _Flags(
        words=("-exec", "-execdir", "-ok", "-okdir", "-delete"), starts=("-fls", "-fprint")
    ),
    "fd": _Flags("xX", ("--exec", "--exec-batch")),
    "rg": _Flags("z", ("--pre", "--hostname-bin", "--search-zip")),
    "sort": _Flags("oT", ("--output", "--compress-program", "--temporary-directory")),
    "shuf": _Flags("o", ("--output",)),
    "tree": _Flags("oR"),
    "iconv": _Flags("o", ("--output",)),
    "man": _Flags("PHC", ("--pager", "--html", "--config-file")),
    "less": _Flags("okO", ("--log-file", "--LOG-FILE", "--lesskey"), starts=("+",)),
    "more": _Flags(starts=("+",)),
    "bat": _Flags(long=("--pager",)),
    "ack": _Flags(long=("--pager",)),
    "ag": _Flags(long=("--pager",)),
    "split": _Flags(long=("--filter",)),
    "diff": _Flags("l", ("--paginate",)),
    "dd": _Flags(starts=("of=",)),
    "yq": _Flags("i", ("--inplace", "--in-place", "--split-exp")),
    "curl": _Flags("oOKcDT", ("--output", "--remote-name", "--config", "--cookie-jar",
                             "--dump-header", "--upload-file", "--output-dir", "--trace")),
    "rsync": _Flags("e", ("--rsh", "--rsync-path")),
    "scp": _Flags("SoF"),
    "zip": _Flags("T", ("--unzip-command", "--test")),
    "date": _Flags("s", ("--set",)),
    "test": _Flags(words=("-v", "-R")),
    "[": _Flags(words=("-v", "-R")),
    "printf": _Flags(starts=("-v",)),
    "wait": _Flags("p"),
}  # fmt: skip

_GIT_HARMLESS_GLOBAL = word_set("--no-pager -P --no-optional-locks --version -v")
_GIT_RUNNING = word_set(
    "config submodule bisect difftool mergetool filter-branch filter-repo rebase hook send-email "
    "daemon instaweb web--browse help credential bundle fast-import worktree clone"
)
_GIT_FLAGS = _Flags(
    long=("--output", "--output-directory", "--upload-pack", "--receive-pack", "--exec",
          "--open-files-in-pager", "--ext-diff", "--textconv", "--config", "--template"),
)  # fmt: skip
_GIT_SHORT: dict[str, _Flags] = {
    "grep": _Flags("O"),
    "archive": _Flags("o"),
    "format-patch": _Flags("o"),
    "branch": _Flags("dDmMcCf", ("--delete", "--move", "--copy", "--force", "--edit-description")),
    "tag": _Flags("df", ("--delete", "--force")),
    "remote": _Flags(words=("add", "set-url", "update")),
}

_SED_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/)"
_SED_SUBSTITUTE = (
    r"s(?:/(?:\\.|[^/\\\n])*/(?:\\.|[^/\\\n])*/|\|(?:\\.|[^|\\\n])*\|(?:\\.|[^|\\\n])*\|"
    r"|#(?:\\.|[^#\\\n])*#(?:\\.|[^#\\\n])*#|,(?:\\.|[^,\\\n])*,(?:\\.|[^,\\\n])*,)[gpIi0-9]*"
)
_SED_COMMAND = rf"\s*(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?\s*!?\s*)?(?:[pdq=]|{_SED_SUBSTITUTE})\s*"
_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:;{_SED_COMMAND})*;?\s*")
_TAR_LISTING = re.compile(r"-?[tvzjJ]*t[tvzjJ]*f?")
_AWK_RISKS = re.compile(r"system|getline|[|>@]")


def escape_in(words: Sequence[str], pinned: int) -> str:
    """The first operand after the ``pinned`` words of a prefix rule that may run a program or
    write a file; empty when there is none.
    """
    name = program_name(words[0])
    if name in _ALWAYS_ASKED or (pinned <= 1 and name in _INTERPRETERS):
        return words[0]
    check = _CHECKS.get(name, _check_flags)
    return check(name, words, pinned)


def _check_flags(name: str, words: Sequence[str], pinned: int) -> str:
    return _first(_FLAGS.get(name, _Flags()), words[pinned:])


def _first(flags: _Flags, words: Sequence[str]) -> str:
    return next((word for word in words if flags.has(word)), "")


def _check_git(_: str, words: Sequence[str], pinned: int) -> str:
    place = 1
    while place < len(words) and words[place].startswith("-"):
        if place >= pinned and words[place] not in _GIT_HARMLESS_GLOBAL:
            return words[place]
        place += 2 if words[place] in GIT_OPTIONS_WITH_VALUE else 1
    command = words[place] if place < len(words) else ""
    if place >= pinned and command in _GIT_RUNNING:
        return command
    rest = words[max(place + 1, pinned) :]
    return _first(_GIT_FLAGS, rest) or _first(_GIT_SHORT.get(command, _Flags()), rest)


def _check_sed(_: str, words: Sequence[str], pinned: int) -> str:
    """Only substitutions without ``e`` and ``w``, and p, d, q, =, with harmless options."""
    scripts: list[str] = []
    operands: list[str] = []
    place = 1
    while place < len(words):
        word = words[place]
        place += 1
        if word in ("-e", "--expression"):
            scripts.extend(words[place : place + 1])
            place += 1
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word in ("-n", "-E", "-r", "-s", "-z", "-nE", "-nr", "-En", "--quiet", "--silent"):
            continue
        elif word.startswith("-") and word != "-":
            return word
        else:
            operands.append(word)
    scripts = scripts or operands[:1]
    return next((script for script in scripts if not _SED_SCRIPT.fullmatch(script)), "")


def _check_awk(_: str, words: Sequence[str], pinned: int) -> str:
    """Only ``-F`` and ``-v``, and a program that neither redirects, pipes nor calls out."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        if not word.startswith(("-F", "-v")):
            return word
        place += 2 if word in ("-F", "-v") else 1
    program = words[place] if place < len(words) else ""
    harmless = program.replace("||", " ").replace(">=", " ")
    return program if _AWK_RISKS.search(harmless) else ""


def _check_tar(_: str, words: Sequence[str], pinned: int) -> str:
    """Only listing an archive on this machine."""
    for place, word in enumerate(words[1:], start=1):
        is_mode = place == 1 and _TAR_LISTING.fullmatch(word)
        if not is_mode and (place == 1 or word.startswith("-") or ":" in word):
            return word
    return ""


def _check_second_operand(name: str, words: Sequence[str], pinned: int) -> str:
    """The second operand is a file that is written."""
    operands: list[str] = []
    place = 1
    while place < len(words):
        number_follows = words[place + 1 : place + 2] and words[place + 1].isdigit()
        if words[place] in _NUMBER_OPTIONS[name] and number_follows:
            place += 1
        elif not words[place].startswith("-") or words[place] == "-":
            operands.append(words[place])
        place += 1
    return operands[1] if len(operands) > 1 else ""


_NUMBER_OPTIONS = {"uniq": ("-f", "-s", "-w"), "xxd": ("-c", "-g", "-l", "-o", "-s")}

_CHECKS: dict[str, Callable[[str, Sequence[str], int], str]] = {
    "git": _check_git,
    "sed": _check_sed,
    "gsed": _check_sed,
    "awk": _check_awk,
    "gawk": _check_awk,
    "mawk": _check_awk,
    "nawk": _check_awk,
    "tar": _check_tar,
    "bsdtar": _check_tar,
    "uniq": _check_second_operand,
    "xxd": _check_second_operand,
}
