"""How keys are written in the configuration, and which keys an action may have (``[keys]``)."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from itertools import product

EXAMPLES = '"c-s", "f2" or "escape enter"'
LONGEST_SEQUENCE = 3

_ARROWS = ("up", "down", "left", "right", "home", "end")
_EDITING = frozenset(
    ("space", "backspace", "delete", "pageup", "pagedown", *_ARROWS)
    + tuple(f"c-{letter}" for letter in "abefhknptuwy")
)
"""Keys that write, delete or move in the draft; with vi keys some of them do nothing else."""
_OTHERS = frozenset(
    ("enter", "tab", "s-tab", "escape", "insert", "c-space", "c-\\", "c-]", "c-^", "c-_")
    + tuple(f"c-{letter}" for letter in string.ascii_lowercase)
    + tuple(f"f{number}" for number in range(1, 25))
    + tuple(f"{held}-{arrow}" for held in ("c", "s", "c-s") for arrow in _ARROWS)
    + ("c-delete", "c-insert", "c-pageup", "c-pagedown")
)
_SAME = {
    "c-m": "enter",
    "c-i": "tab",
    "c-[": "escape",
    "esc": "escape",
    "c-h": "backspace",
    "c-@": "c-space",
}
"""Names that a terminal cannot tell from another."""
KEY_NAMES = (_EDITING | _OTHERS) - frozenset(_SAME)
RESERVED = "c-c"
_NEVER_TOGETHER = frozenset({frozenset({"leave", "remove_row"})})
"""Actions that may share a key: one needs an empty draft, the other a row of the queue."""


def read_key(text: str) -> str:
    """A key, or keys to press one after another, in the one way to write it.

    Raises:
        ValueError: an action cannot have it; the text completes "<action> ...".
    """
    keys = [_name(text, word) for word in text.split(" ")]
    if len(keys) > LONGEST_SEQUENCE:
        raise ValueError(f'has "{text}", but at most {LONGEST_SEQUENCE} keys make a sequence')
    first = keys[0]
    if first not in KEY_NAMES or first in _EDITING:
        raise ValueError(f'has "{text}", but {first} edits the text; take a key such as {EXAMPLES}')
    if RESERVED in keys:
        raise ValueError(f'has "{text}", but {RESERVED} always interrupts; take another key')
    if first == "escape" and keys[1:] and keys[1] in ("[", "O"):
        raise ValueError(f'has "{text}", but with it terminals begin the keys of their own')
    return " ".join(keys)


def _name(text: str, word: str) -> str:
    if len(word) == 1 and word.isprintable() and word != " ":
        return word
    lower = word.lower()
    name = _SAME.get(lower, lower)
    if name not in KEY_NAMES:
        raise ValueError(
            f'has "{text}", which is no key; write it like {EXAMPLES}, names are in docs/keys.md'
        )
    return name


def check_key_map(
    chosen: Mapping[str, tuple[str, ...]], built_in: Mapping[str, tuple[str, ...]]
) -> None:
    """Compare all actions with each other.

    Raises:
        ValueError: two of them share a key, or one begins with the other. A line for each such
            pair, which begins with the action that was given other keys than its ``built_in`` ones.
    """
    if conflicts := list(_conflicts(chosen, built_in)):
        raise ValueError("\n".join(conflicts))


def _conflicts(
    chosen: Mapping[str, tuple[str, ...]], built_in: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    for action, other in _pairs(chosen, built_in):
        for key, taken in product(chosen[action], chosen[other]):
            if key == taken:
                yield (
                    f'{action} cannot have "{key}", which {other} has; give one of them '
                    f"another key, or none: {other} = []"
                )
            elif _begins(key, taken) or _begins(taken, key):
                yield (
                    f'{action} cannot have "{key}" beside "{taken}" of {other}: one begins '
                    "with the other"
                )


def _pairs(
    chosen: Mapping[str, tuple[str, ...]], built_in: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    """Each two actions of which one at least was changed; that one first."""
    actions = list(chosen)
    for place, one in enumerate(actions):
        for other in actions[place + 1 :]:
            if frozenset({one, other}) in _NEVER_TOGETHER:
                continue
            if chosen[one] != built_in[one]:
                yield one, other
            elif chosen[other] != built_in[other]:
                yield other, one


def _begins(start: str, sequence: str) -> bool:
    """A lone Esc is told from a sequence by time, other keys are not."""
    return start != "escape" and sequence.startswith(f"{start} ")
