"""``RowEditing``: carries out what ``queue_editor`` decides, in the input line and in the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from midturn_cli.key_labels import key_label
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.queue_editor import (
    Editing,
    Effect,
    Forget,
    Leave,
    Move,
    OlderLine,
    Remove,
    Row,
    RowKey,
    Save,
    SetTier,
    Take,
    Tell,
    View,
    Warn,
    press,
    rows_changed,
    start,
    start_at,
)

if TYPE_CHECKING:
    from midturn_cli.ports import QueuePort
    from midturn_core.config import KeysConfig

NO_PICTURES = "A line that waits gets no new pictures: send it as a line of its own."


@dataclass(frozen=True, slots=True)
class RowParts:
    """What editing rows acts on."""

    draft: Draft
    queue: Callable[[], QueuePort | None]
    """None until there is a session."""
    tell: Callable[[str], None]
    warn: Callable[[str], None]
    clock: Callable[[], float]
    changed: Callable[[], None]
    """Something looks different now."""


class RowEditing:
    """The row that is being edited, if any."""

    def __init__(self, parts: RowParts) -> None:
        self._parts = parts
        self._draft = parts.draft
        self._editing: Editing | None = None
        self.tier = ""
        """The tier of the selected row; empty for none."""
        self._removed_at = float("-inf")

    @property
    def active(self) -> bool:
        return self._editing is not None

    @property
    def can_start(self) -> bool:
        """Up on an empty input line would select a row."""
        return not self.active and self._draft.empty and bool(self._rows())

    def removed_within(self, seconds: float) -> bool:
        """A row was removed so recently that the key may still be going down."""
        return self._parts.clock() - self._removed_at <= seconds

    def start(self) -> None:
        self._run(start(self._view()))

    def start_at(self, uuid: str) -> None:
        self._run(start_at(uuid, self._view()))

    def press(self, key: RowKey) -> None:
        if self._editing is not None:
            self._run(press(self._editing, key, self._view()))

    def rows_changed(self) -> None:
        """The queue has changed, whoever did it."""
        if self._editing is not None:
            self._run(rows_changed(self._editing, self._view()))

    def _view(self) -> View:
        return View(self._rows(), self._draft.written)

    def _rows(self) -> Sequence[Row]:
        """What is scheduled for a time is no row of the screen."""
        queue = self._parts.queue()
        items = [item for item in queue.waiting() if not item.scheduled] if queue else []
        newest_first = sorted(reversed(items), key=lambda item: item.enqueued_at, reverse=True)
        return [
            Row(item.uuid, item.input_text, item.priority.name.lower()) for item in newest_first
        ]

    def _run(self, effects: Sequence[Effect]) -> None:
        queue = self._parts.queue()
        if queue is not None:
            for effect in effects:
                if not self._carry_out(effect, queue):
                    break
        self._look_at_tier()
        self._parts.changed()

    def _look_at_tier(self) -> None:
        uuid = self._editing.uuid if self._editing is not None else ""
        self.tier = next((row.tier for row in self._rows() if row.uuid == uuid), "") if uuid else ""

    def _carry_out(self, effect: Effect, queue: QueuePort) -> bool:
        """False when it was refused."""
        match effect:
            case Take(uuid):
                return self._take(uuid, queue)
            case Save(uuid, text):
                return self._save(uuid, text, queue)
            case Remove() | SetTier() | Move():
                self._change(effect, queue)
            case Leave():
                self._let_go(queue)
                self._draft.drop()
            case Forget():
                self._let_go(queue)
            case Tell(text):
                self._parts.tell(text)
            case Warn(text):
                self._parts.warn(text)
            case OlderLine():
                self._draft.older_line()
            case _:
                assert_never(effect)
        return True

    def _change(self, effect: Remove | SetTier | Move, queue: QueuePort) -> None:
        match effect:
            case Remove(uuid):
                self._remove(uuid, queue)
            case SetTier(uuid, tier):
                # Imported at the first use: it would cost a tenth of the start-up time.
                from midturn_core.queue.types import QueuedInputPriority

                queue.set_tier(uuid, QueuedInputPriority[tier.upper()])
            case Move(uuid, offset):
                queue.move(uuid, offset)
            case _:
                assert_never(effect)

    def _take(self, uuid: str, queue: QueuePort) -> bool:
        # Before the other is let go: when idle, that one starts a turn, and this one must not go along.
        item = queue.begin(uuid)
        self._let_go(queue)
        if item is None:
            self._draft.drop()
            return False
        self._draft.show_row(item.input_text)
        self._editing = Editing(uuid, self._draft.written)
        return True

    def _save(self, uuid: str, text: str, queue: QueuePort) -> bool:
        added = self._draft.pictures_beyond(self._editing.text if self._editing else "")
        if problem := NO_PICTURES if added else queue.save(uuid, text):
            self._parts.warn(problem)
            return False
        return True

    def _remove(self, uuid: str, queue: QueuePort) -> None:
        removed = queue.remove(uuid)
        if removed is not None:
            self._removed_at = self._parts.clock()
            self._draft.remember(removed.input_text)
            self._parts.warn(f"Removed, never sent: {removed.input_text}")

    def _let_go(self, queue: QueuePort) -> None:
        editing, self._editing = self._editing, None
        if editing is not None:
            queue.end(editing.uuid)


def row_hint(keys: KeysConfig, columns: int) -> str:
    """The keys of the queue editor, as many as there is room for."""
    words = [
        (keys.submit, "saves"),
        (keys.cancel, "leaves"),
        (keys.remove_row, "removes"),
        (keys.cycle, "tier"),
        (keys.row_up[:1] + keys.row_down[:1], "moves"),
    ]
    hint = ""
    for chosen, word in words:
        label = " ".join(key_label(key) for key in (chosen if word == "moves" else chosen[:1]))
        longer = " · ".join(filter(None, (hint, f"{label} {word}")))
        if label and len(longer) < columns:
            hint = longer
    return hint
