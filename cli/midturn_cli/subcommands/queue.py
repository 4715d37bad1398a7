"""``midturn queue``: see and change what waits in a session from outside of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from midturn_cli.ages import age, due_in
from midturn_cli.delivery_words import BEING_EDITED
from midturn_cli.launch import load
from midturn_cli.options import EXIT_FAILED, Arguments, UsageError
from midturn_cli.outside_queue import OutsideQueue, outside_queue
from midturn_cli.render.clean import beginning, one_line
from midturn_core.errors import MidturnError, QueueError
from midturn_core.queue.attachments import attachments_note
from midturn_core.queue.outside import sender_note
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

USES = "ls, rm N, mv N M, now N, next N, later N, clear"
_SHOWN = 80
"""Letters of a text in a sentence about it."""
_LEAST_OF_AN_ID = 4


class NotWaitingError(MidturnError):
    """What a number or an id names does not wait, or not any more (exit code 1)."""


def run(arguments: Arguments) -> int:
    """Do it, wake the session and say what was done; returns the exit code.

    Raises:
        UsageError: it cannot be understood.
        MidturnError: there is no such session, or its queue cannot be reached.
    """
    words = arguments.values.get("words", ())
    assert isinstance(words, tuple)
    if arguments.is_on("json") and words not in ((), ("ls",)):
        raise UsageError("--json goes with midturn queue ls")
    _check(words)
    config = load(arguments, os.environ).config.queue
    try:
        with outside_queue(arguments, config) as queue:
            waiting = _Waiting(queue)
            if words in ((), ("ls",)):
                sys.stdout.write(waiting.as_json() if arguments.is_on("json") else waiting.shown())
            else:
                sys.stdout.write(f"{waiting.change(words)}\n")
                queue.wake()
    except (QueueError, NotWaitingError) as error:
        sys.stderr.write(f"midturn: {error}\n")
        return EXIT_FAILED
    return 0


def _check(words: Sequence[str]) -> None:
    """
    Raises:
        UsageError: these words are no use of the command.
    """
    match words:
        case [] | ["ls"] | ["clear"] | ["rm" | "now" | "next" | "later", _]:
            pass
        case ["mv", _, place] if place.isascii() and place.isdecimal():
            pass
        case ["rm" | "mv" | "now" | "next" | "later" as use, *_]:
            raise UsageError(
                f"midturn queue {use} needs the number of the list"
                f"{' and the number to move it to' if use == 'mv' else ''}; midturn queue shows it"
            )
        case _:
            raise UsageError(f"midturn queue does not know {' '.join(words)!r}; it takes {USES}")


def _kept_back(item: QueuedInput) -> str:
    if item.expired:
        return "expired"
    if item.scheduled:
        return due_in(item)
    return BEING_EDITED if item.being_edited else "held" if item.held else ""


@dataclass(frozen=True, slots=True)
class _Waiting:
    queue: OutsideQueue

    @property
    def items(self) -> list[QueuedInput]:
        return self.queue.manager.snapshot(self.queue.target.context_id)

    def shown(self) -> str:
        items = self.items
        if not items:
            return f"Nothing waits in {self.queue.target.id}.\n"
        rows = [f"Waiting in {self.queue.target.id}:"]
        for number, item in enumerate(items, start=1):
            notes = (
                _kept_back(item),
                sender_note(item),
                attachments_note(item),
                age(item.enqueued_at),
            )
            notes_text = " · ".join(filter(None, notes))
            text = f"{beginning(item.input_text)} · {one_line(notes_text)}"
            rows.append(f"{number:>3}  {item.priority.name:<5}  {text}")
        return "".join(f"{row}\n" for row in rows)

    def as_json(self) -> str:
        items = [
            {
                "number": number,
                "uuid": item.uuid,
                "tier": item.priority.name,
                "text": item.input_text,
                "held": item.held,
                "expired": item.expired,
                "enqueued_at": item.enqueued_at.isoformat(),
                "metadata": dict(item.metadata),
            }
            for number, item in enumerate(self.items, start=1)
        ]
        return json.dumps({"session": self.queue.target.id, "waiting": items}) + "\n"

    def change(self, words: Sequence[str]) -> str:
        manager = self.queue.manager
        match words:
            case ["clear"]:
                removed = manager.clear(self.queue.target.context_id)
                lines = [f"Removed, never sent: {_short(item)}" for item in removed]
                return "\n".join(lines) or "Nothing waits."
            case ["rm", which]:
                item = self._item(which)
                if manager.remove(item.uuid) is None:
                    raise _gone(item)
                return f"Removed, never sent: {_short(item)}"
            case ["mv", which, place]:
                return self._move(self._item(which), int(place))
            case [tier, which]:
                return self._put(self._item(which), QueuedInputPriority[tier.upper()])
            case _:
                raise UsageError(f"it takes {USES}")

    def _move(self, item: QueuedInput, place: int) -> str:
        items = self.items
        target = items[place - 1] if 1 <= place <= len(items) else None
        if target is None or target.priority is not item.priority:
            tier = [n for n, i in enumerate(items, start=1) if i.priority is item.priority]
            raise UsageError(
                f"it is {item.priority.name} and can go to {tier[0]} to {tier[-1]}; "
                "midturn queue now, next or later N changes the tier"
            )
        self.queue.manager.move(item.uuid, place - 1 - items.index(item))
        return f"Number {place} now: {_short(item)}"

    def _put(self, item: QueuedInput, tier: QueuedInputPriority) -> str:
        if not self.queue.manager.reprioritise(item.uuid, tier):
            raise _gone(item)
        return f"{tier.name} now: {_short(item)}"

    def _item(self, word: str) -> QueuedInput:
        """By its number in the list as it is now, or by (the beginning of) its uuid."""
        items = self.items
        if word.isascii() and word.isdecimal() and 1 <= int(word) <= len(items):
            return items[int(word) - 1]
        fitting = [item for item in items if item.uuid.startswith(word)]
        if len(fitting) == 1 and len(word) >= _LEAST_OF_AN_ID:
            return fitting[0]
        listed = f"the list ends at {len(items)}" if items else "nothing waits"
        raise NotWaitingError(f"there is no number {word}: {listed}")


def _gone(item: QueuedInput) -> NotWaitingError:
    return NotWaitingError(f"it waits no more: {_short(item)}")


def _short(item: QueuedInput) -> str:
    return beginning(item.input_text, _SHOWN)
