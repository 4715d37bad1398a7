"""Selecting and ordering in the SQLite file; every function runs inside its caller's step."""

from __future__ import annotations

import itertools
import json
import sqlite3
from dataclasses import dataclass

from midturn_core.queue.record import context_key, from_record, name_key, to_json
from midturn_core.queue.types import Predicate, QueuedInput, QueuedInputPriority, QueueFilter

GAP = 1 << 20
"""Between the positions of neighbours: room for twenty moves to the same place, then the tier is
spaced anew."""

_NO_LIMIT = -1

_SELECT = (
    "SELECT number, record FROM inputs WHERE owner IS NULL AND {}"
    " ORDER BY priority, position, number LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A row that matched."""

    number: int
    item: QueuedInput


def selected(
    connection: sqlite3.Connection,
    predicate: Predicate,
    max_priority: QueuedInputPriority = QueuedInputPriority.LATER,
    limit: int = _NO_LIMIT,
) -> list[Taken]:
    """The waiting inputs that match, in delivery order.

    All rows are read before a callable is asked, so that one that raises leaves no read open.
    """
    if isinstance(predicate, QueueFilter):
        condition, values = _condition(predicate, max_priority)
        rows = connection.execute(_SELECT.format(condition), [*values, limit]).fetchall()
        return [Taken(number, from_record(record)) for number, record in rows]
    rows = connection.execute(_SELECT.format("priority <= ?"), [max_priority, _NO_LIMIT]).fetchall()
    inputs = (Taken(number, from_record(record)) for number, record in rows)
    matches = (each for each in inputs if predicate(each.item))
    return list(matches if limit == _NO_LIMIT else itertools.islice(matches, limit))


def _condition(
    selection: QueueFilter, max_priority: QueuedInputPriority
) -> tuple[str, list[object]]:
    terms = ["context = ?", "priority <= ?"]
    values: list[object] = [
        context_key(selection.context_id),
        min(selection.max_priority, max_priority),
    ]
    if selection.source_agent_id is not None:
        terms.append("source = ?")
        values.append(name_key(selection.source_agent_id))
    if selection.metadata:
        terms.append("has_tags(metadata, ?)")
        values.append(to_json(dict(selection.metadata)))
    if selection.exclude_held:
        terms.append("NOT held")
    if selection.prompts_only:
        terms.append("prompt")
    if selection.uuids is not None:
        terms.append("uuid IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([name_key(uuid) for uuid in selection.uuids]))
    return " AND ".join(terms), values


def place_before(connection: sqlite3.Connection, context: str, priority: int, number: int) -> int:
    """A free position right before this input of the tier."""
    position = _free_before(connection, context, priority, number)
    if position is not None:
        return position
    _space_anew(connection, context, priority)
    position = _free_before(connection, context, priority, number)
    assert position is not None
    return position


def _free_before(
    connection: sqlite3.Connection, context: str, priority: int, number: int
) -> int | None:
    (high,) = connection.execute(
        "SELECT position FROM inputs WHERE number = ?", (number,)
    ).fetchone()
    (low,) = connection.execute(
        "SELECT max(position) FROM inputs WHERE context = ? AND priority = ? AND position < ?",
        (context, priority, high),
    ).fetchone()
    middle: int = high - GAP if low is None else (low + high) // 2
    return None if middle == low else middle


def _space_anew(connection: sqlite3.Connection, context: str, priority: int) -> None:
    numbers = connection.execute(
        "SELECT number FROM inputs WHERE context = ? AND priority = ? ORDER BY position",
        (context, priority),
    ).fetchall()
    connection.executemany(
        "UPDATE inputs SET position = ? WHERE number = ?",
        [((index + 1) * GAP, number) for index, (number,) in enumerate(numbers)],
    )
