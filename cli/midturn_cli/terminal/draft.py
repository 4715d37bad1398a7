"""The draft: what is in the input line, its tier, its pastes, and what Enter makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from midturn_cli.delivery_words import tier_words
from midturn_cli.picture_paths import takes_pictures
from midturn_cli.terminal.pastes import PasteShelf, normalize_line_ends
from midturn_cli.terminal.picture_shelf import PictureShelf

if TYPE_CHECKING:
    from midturn_cli.ports import KeptPicture
    from midturn_core.config import QueueConfig
    from midturn_core.model.messages import ImageBlock
    from midturn_core.queue.types import QueuedInputPriority

SLOW_CHARS = 20_000
"""Each key in a longer draft takes noticeable time."""

TIER_CYCLE = ("next", "now", "later")


@dataclass(frozen=True, slots=True)
class _Stashed:
    """A draft that was put aside, as it stood in the input line."""

    shown: str
    cursor: int
    tier: str | None
    pasted_start: str


@dataclass(frozen=True, slots=True)
class Submission:
    """What the user entered; ``tier`` None takes the configured meaning of Enter."""

    text: str
    tier: str | None
    pasted: bool
    pictures: tuple[ImageBlock, ...] = ()

    @property
    def priority(self) -> QueuedInputPriority | None:
        # Imported at the first line: it would cost a tenth of the start-up time.
        from midturn_core.queue.types import QueuedInputPriority

        return None if self.tier is None else QueuedInputPriority[self.tier.upper()]


def without_lone_surrogates(text: str) -> str:
    """Bytes that are no UTF-8 arrive as lone surrogates, which nothing downstream can encode."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Draft:
    """Wraps the buffer of the input line."""

    def __init__(self, buffer: Buffer, queue: QueueConfig, pictures: PictureShelf) -> None:
        self.buffer = buffer
        self._pictures = pictures
        self._queue = queue
        self._chosen_tier: str | None = None
        self._shelf = PasteShelf()
        self._pasted_start = ""
        self._stashed: _Stashed | None = None

    @property
    def empty(self) -> bool:
        return not self.buffer.text

    @property
    def text(self) -> str:
        """The whole text, with its pastes, and with its pictures as ``@`` paths."""
        return self._shelf.expand(self._pictures.as_paths(self.buffer.text))

    @property
    def written(self) -> str:
        """The whole text as Enter would send it, its pictures as placeholders."""
        return without_lone_surrogates(self._shelf.expand(self.buffer.text))

    @property
    def tier(self) -> str:
        """The tier that Enter would use while a turn runs."""
        return self._chosen_tier or self._queue.enter

    @property
    def tier_words(self) -> str:
        """When a line of this tier is delivered."""
        return tier_words(self.tier, self._queue)

    @property
    def stashed_shown(self) -> str:
        """The draft that was put aside, with its pastes folded; empty for none."""
        return self._stashed.shown if self._stashed is not None else ""

    @property
    def stashed(self) -> str:
        """The whole text that was put aside, as in ``text``; empty for none."""
        return self._shelf.expand(self._pictures.as_paths(self.stashed_shown))

    def stash(self, text: str) -> None:
        """Put a text aside that was kept for this input line."""
        shown = self._shelf.fold(text)
        self._stashed = _Stashed(shown, len(shown), None, "") if shown else None

    def swap_stash(self) -> None:
        """Put the draft aside and take out what was put aside before; either may be empty."""
        before, buffer = self._stashed, self.buffer
        now = _Stashed(buffer.text, buffer.cursor_position, self._chosen_tier, self._pasted_start)
        self._stashed = None if self.empty else now
        if before is None:
            self.clear()
        else:
            self.replace(before.shown)
            buffer.cursor_position = before.cursor
            self._chosen_tier = before.tier
        self._pasted_start = before.pasted_start if before is not None else ""

    def cycle_tier(self) -> None:
        place = TIER_CYCLE.index(self.tier)
        self._chosen_tier = TIER_CYCLE[(place + 1) % len(TIER_CYCLE)]

    @property
    def starts_pasted(self) -> bool:
        """The first character came from a paste."""
        start = self._pasted_start
        return bool(start) and self.buffer.text.startswith(start)

    def paste(self, data: str) -> None:
        """Insert a paste at the cursor, folded when it is long or a picture."""
        text = normalize_line_ends(data)
        dropped = self._pictures.fold_dropped(text, self.buffer.text)
        shown = self._shelf.fold(text) if dropped is None else dropped
        if self.buffer.cursor_position == 0 and shown:
            self._pasted_start = shown
        self.buffer.insert_text(shown)

    @property
    def takes_pictures(self) -> bool:
        """Whether it is for the model, as it stands."""
        return takes_pictures(self.buffer.text)

    def attach(self, kept: KeptPicture, before: str) -> bool:
        """Insert a picture behind the text ``before`` if the draft still begins so, else at the
        cursor; False when the draft takes none any more.
        """
        if not self.takes_pictures:
            return False
        place = f"{self._pictures.fold_kept(kept)} "
        document = self.buffer.document
        at = len(before) if document.text.startswith(before) else document.cursor_position
        cursor = document.cursor_position + (len(place) if document.cursor_position >= at else 0)
        self.buffer.save_to_undo_stack()
        text = document.text[:at] + place + document.text[at:]
        self.buffer.set_document(Document(text, cursor), bypass_readonly=True)
        return True

    def fold_typed_picture(self) -> None:
        """Fold the ``@`` path that has just been ended with white space, if it is a picture's."""
        document = self.buffer.document
        before = self._pictures.fold_typed(document.text_before_cursor, document.text)
        if before is not None:
            self.buffer.save_to_undo_stack()
            after = Document(before + document.text_after_cursor, len(before))
            self.buffer.set_document(after, bypass_readonly=True)

    def take_pasted_lines(self, lines: tuple[str, ...]) -> None:
        """Make one draft of the lines of an unmarked paste."""
        self.replace("\n".join(lines))
        self._pasted_start = lines[0] or "\n"

    def append_lines(self, lines: tuple[str, ...]) -> None:
        """Add lines below the draft."""
        self.replace("\n".join([self.buffer.text, *lines]))

    def continues(self) -> bool:
        """Enter after a trailing backslash begins a new line."""
        document = self.buffer.document
        line = document.current_line
        slashes = len(line) - len(line.rstrip("\\"))
        return document.is_cursor_at_the_end and slashes % 2 == 1

    def break_line(self) -> None:
        """Replace the trailing backslash by a line break."""
        self.buffer.delete_before_cursor(1)
        self.buffer.insert_text("\n")

    def submission(self) -> Submission:
        """What Enter sends now; the ``@`` paths of pictures become placeholders first."""
        shown = self._pictures.fold_all(self.buffer.text)
        if shown != self.buffer.text:
            self.replace(shown)
        text = without_lone_surrogates(self._shelf.expand(shown))
        pictures = self._pictures.in_draft(shown)
        return Submission(text, self._chosen_tier, self.starts_pasted, pictures)

    def taken(self) -> None:
        """The submission was accepted: remember it, and start an empty draft."""
        self.remember(self.text)
        self.drop()

    def remember(self, text: str) -> None:
        """Add a text to the input history."""
        self.buffer.history.append_string(without_lone_surrogates(text))

    def show_row(self, text: str) -> None:
        """Begin with the text of an input that waits; only what would be slow is folded."""
        self.drop()
        shown = self._shelf.fold(text) if len(text) > SLOW_CHARS else text
        self.buffer.set_document(Document(shown, len(shown)), bypass_readonly=True)

    def older_line(self) -> None:
        """The newest line of the input history. The buffer is not reset before: it would begin to
        load the history anew.
        """
        self.clear()
        self.buffer.history_backward()

    def pictures_beyond(self, text: str) -> bool:
        """Whether a picture has come into the draft that is not in this text."""
        shown = self._pictures.fold_all(self.buffer.text)
        known = self._pictures.in_draft(text)
        return any(picture not in known for picture in self._pictures.in_draft(shown))

    def drop(self) -> None:
        """An empty draft without a past."""
        self.buffer.reset()
        self._pictures.draft_ended()
        # Otherwise it would be loaded at the next paint, and an Up before that find nothing.
        self.buffer.load_history_if_not_yet_loaded()
        self._chosen_tier = None
        self._pasted_start = ""

    def clear(self) -> None:
        """An empty draft; undo brings the text back."""
        self.replace("")
        self._chosen_tier = None

    def put_back(self, text: str) -> None:
        """Return text that was submitted, before what has been typed since."""
        shown = self._shelf.fold(text)
        self.replace(f"{shown}\n{self.buffer.text}" if self.buffer.text else shown)

    def replace_edited(self, text: str) -> None:
        """Take what the user's editor made of the text.

        Pastes and pictures that are still there are folded as before; of the rest only what would
        be slow.
        """
        shown = self._pictures.fold_all(self._shelf.refold(text, self.buffer.text))
        self.replace(self._shelf.fold(shown) if len(shown) > SLOW_CHARS else shown)

    def replace(self, text: str) -> None:
        """Set the text with the cursor at its end; can be undone."""
        self.buffer.save_to_undo_stack()
        self.buffer.set_document(Document(text, len(text)), bypass_readonly=True)
