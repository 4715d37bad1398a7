"""Reading the arguments of commands; every complaint says what is allowed, with an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from midturn_cli.ages import age as age
from midturn_cli.ages import due_in as due_in
from midturn_cli.commands.command import CommandError, Use

T = TypeVar("T")

MAX_DIGITS = 6
MAX_QUOTED = 60


def no_arguments(use: Use, command: str) -> None:
    """
    Raises:
        CommandError: something was typed after the command.
    """
    if problem := takes_nothing(command, use.arguments):
        raise CommandError(problem)


def takes_nothing(command: str, arguments: str) -> str:
    """Why a command without arguments cannot be used like this; empty without any."""
    if not arguments:
        return ""
    return f"{command} takes nothing after it, but there is {quoted(arguments)}"


def quoted(word: str) -> str:
    """A word as it was typed, for a complaint: its beginning when it is long."""
    return repr(word) if len(word) <= MAX_QUOTED else f"{word[:MAX_QUOTED]!r}…"


def whole_number(word: str, what: str, example: str) -> int:
    """A number from 1 up; other limits are the caller's.

    Raises:
        CommandError: it is none.
    """
    if word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS and int(word) >= 1:
        return int(word)
    raise CommandError(
        f"{sentence(what)} must be a whole number from 1 up, not {quoted(word)} (example: {example})"
    )


def sentence(text: str) -> str:
    """Of the core, which words its complaints to stand behind a name: here they stand alone."""
    return f"{text[:1].upper()}{text[1:]}"


def nth_newest(use: Use, command: str, what: str, kept: Sequence[T]) -> tuple[int, T]:
    """The number that was typed, 1 without one, and what it counts from the newest.

    Args:
        what: one of the things that are kept, such as "result".

    Raises:
        CommandError: it is no number, or that many are not kept.
    """
    number = 1
    if use.arguments:
        number = whole_number(use.arguments, f"the number after {command}", f"{command} 2")
    if not kept:
        raise CommandError(f"There is no {what} yet: no tool has run in this session")
    if number > len(kept):
        raise CommandError(
            f"There is no {what} number {number}: counted from the newest {len(kept)} are kept"
        )
    return number, kept[number - 1]


def unknown_word(command: str, word: str, allowed: tuple[str, ...], example: str) -> CommandError:
    """The error for a word that a command does not know."""
    return CommandError(
        f"{command} does not know {quoted(word)}: it takes {', '.join(allowed)} (example: {example})"
    )
