"""Editing what waits, row by row: what each key means. Pure: no terminal, no session.

At most one row is being edited; its text stands in the input line, and until it is left it is not
delivered. A row that is left by Up or Down keeps what was written: only Esc discards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

TIERS = ("next", "now", "later")
DISCARDED = "The change was discarded: the line waits as it was."
GONE = "The line that you edited waits no more: it was removed elsewhere. Its text is a new draft."


class RowKey(Enum):
    """What a person wants with the selected row."""

    OLDER = auto()
    NEWER = auto()
    SAVE = auto()
    LEAVE = auto()
    REMOVE = auto()
    TIER = auto()
    SOONER = auto()
    AFTER = auto()


@dataclass(frozen=True, slots=True)
class Row:
    """One input that waits."""

    uuid: str
    text: str
    tier: str


@dataclass(frozen=True, slots=True)
class Editing:
    """The selected row, with its text as it was when it was selected."""

    uuid: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """What there is when a key is pressed: the rows, newest first, and the text of the draft."""

    rows: Sequence[Row]
    draft: str

    def place(self, uuid: str) -> int | None:
        return next((n for n, row in enumerate(self.rows) if row.uuid == uuid), None)


@dataclass(frozen=True, slots=True)
class Take:
    """Select a row: its text comes into the input line."""

    uuid: str


@dataclass(frozen=True, slots=True)
class Save:
    """Store the text in place. It may be refused; then nothing else happens."""

    uuid: str
    text: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Edit nothing any more, and empty the input line."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Edit nothing any more; the text stays in the input line as a draft."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Take the row out of the queue, never sent."""

    uuid: str


@dataclass(frozen=True, slots=True)
class SetTier:
    uuid: str
    tier: str


@dataclass(frozen=True, slots=True)
class Move:
    """Within its tier; a negative offset is sooner."""

    uuid: str
    offset: int


@dataclass(frozen=True, slots=True)
class Tell:
    """For a moment, in place of the status row."""

    text: str


@dataclass(frozen=True, slots=True)
class Warn:
    """Where it stays."""

    text: str


@dataclass(frozen=True, slots=True)
class OlderLine:
    """Bring the newest line of the input history into the input line, in place of its text."""


Effect: TypeAlias = Take | Save | Leave | Forget | Remove | SetTier | Move | Tell | Warn | OlderLine


def start(view: View) -> tuple[Effect, ...]:
    """Up on an empty input line: the newest row, else the input history."""
    return (Take(view.rows[0].uuid),) if view.rows else (OlderLine(),)


def start_at(uuid: str, view: View) -> tuple[Effect, ...]:
    """A command names a row."""
    if view.draft:
        return (Warn("Empty the input line first: the text of the row goes there."),)
    if view.place(uuid) is None:
        return (Warn("That line waits no more, or it has a time of its own."),)
    return (Take(uuid),)


def rows_changed(editing: Editing, view: View) -> tuple[Effect, ...]:
    """The queue is another; nothing happens as long as the selected row is there."""
    return (Forget(), Warn(GONE)) if view.place(editing.uuid) is None else ()


def press(editing: Editing, key: RowKey, view: View) -> tuple[Effect, ...]:
    """What a key does, in order. An effect that is refused ends it."""
    place = view.place(editing.uuid)
    if place is None:
        return (Forget(), Warn(GONE))
    changed = view.draft != editing.text
    saved = (Save(editing.uuid, view.draft),) if changed else ()
    match key:
        case RowKey.OLDER:
            older = view.rows[place + 1 : place + 2]
            return (*saved, *([Take(older[0].uuid)] if older else [Forget(), OlderLine()]))
        case RowKey.NEWER:
            newer = view.rows[place - 1 : place]
            return (*saved, Take(newer[0].uuid) if newer else Leave())
        case RowKey.SAVE:
            return (*saved, Leave())
        case RowKey.LEAVE:
            return (Leave(), Tell(DISCARDED)) if changed else (Leave(),)
        case RowKey.REMOVE:
            others = [*view.rows[place + 1 : place + 2], *view.rows[max(place - 1, 0) : place]]
            return (Remove(editing.uuid), Take(others[0].uuid) if others else Leave())
        case RowKey.TIER:
            tier = TIERS[(TIERS.index(view.rows[place].tier) + 1) % len(TIERS)]
            return (SetTier(editing.uuid, tier),)
        case RowKey.SOONER:
            return (Move(editing.uuid, -1),)
        case RowKey.AFTER:
            return (Move(editing.uuid, 1),)
        case _:
            assert_never(key)
