"""``QueueEdits``: what a person changes in the queue of a running session, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from midturn_core.controller import LineKind, LineRunner
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.attachments import attachments_of
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import KIND_KEY, QueuedInput, QueuedInputPriority

EMPTY = "A line that waits needs text; it can be removed instead"
GONE = "This line waits no more: it was removed elsewhere"


class QueueEdits:
    """Changes the waiting inputs of one context. On the loop's thread.

    ``wake`` is called when an input may be on its way again.
    """

    def __init__(
        self,
        queue: MessageQueueManager,
        context_id: AgentRuntimeId,
        lines: LineRunner,
        wake: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._context_id = context_id
        self._lines = lines
        self._wake = wake

    def waiting(self) -> Sequence[QueuedInput]:
        """Everything that waits, in delivery order."""
        return self._queue.snapshot(self._context_id)

    def begin(self, uuid: str) -> QueuedInput | None:
        """Keep an input back while it is edited; None when it waits no more."""
        return self._queue.begin_edit(uuid)

    def end(self, uuid: str) -> None:
        """Let it go on as what it was before, or stay held; also when it is gone."""
        self._queue.end_edit(uuid)
        self._wake()

    def end_all(self) -> None:
        """Nobody edits anything any more; nothing starts by that."""
        for item in self.waiting():
            self._queue.end_edit(item.uuid)

    def save(self, uuid: str, text: str) -> str:
        """Give an input another text, in place; an empty string, or why not.

        What kind of line it is now is decided as for a line that is typed (D3): a command that
        takes effect at once does so, and the input waits no more. One whose old text was pasted as
        content stays content.
        """
        item = next((item for item in self.waiting() if item.uuid == uuid), None)
        if item is None:
            return GONE
        if not text.strip():
            return EMPTY
        content = item.is_prompt and self._lines.classify(item.input_text) is not LineKind.PROMPT
        if not content and (problem := self._lines.problem(text)):
            return problem
        kind = LineKind.PROMPT if content else self._lines.classify(text)
        attached = attachments_of(item)
        if kind is LineKind.IMMEDIATE:
            self._queue.remove(uuid)
            self._lines.run_immediate(text, attached)
            return ""
        if attached and kind is not LineKind.PROMPT:
            return "Pictures go with text for the model only: this line has one"
        return "" if self._queue.edit(uuid, text, {KIND_KEY: kind.value}) else GONE

    def remove(self, uuid: str) -> QueuedInput | None:
        """Take one out, never sent; None when it waits no more."""
        return self._queue.remove(uuid)

    def set_tier(self, uuid: str, tier: QueuedInputPriority) -> bool:
        """Put one at the end of a tier; False when it waits no more."""
        return self._queue.reprioritise(uuid, tier)

    def move(self, uuid: str, offset: int) -> bool:
        """Move one within its tier, up by a negative offset; False when that changes nothing."""
        return self._queue.move(uuid, offset)
