"""``TurnGate``: "the queue is empty" and "the turn is over" decided together (D6)."""

from __future__ import annotations

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import QueuedInput


class TurnGate:
    """Whether a context is at work; open means that somebody will look at its queue again.

    Every decision takes the queue's own lock, so an input is either waiting where an open turn
    will find it, or it opens a turn itself: there is no gap between the last look and the end.
    """

    def __init__(
        self,
        manager: MessageQueueManager,
        context_id: AgentRuntimeId,
        *,
        one_per_turn: bool = False,
    ) -> None:
        self._manager = manager
        self._context_id = context_id
        self._one_per_turn = one_per_turn
        self._open = False

    @property
    def is_open(self) -> bool:
        return self._open

    def enter(self, item: QueuedInput) -> bool:
        """True: the context was idle, and the caller starts a turn with the item, which is not
        queued. False: it is at work, and the item waits in the queue.

        Raises:
            QueueFullError: the cap is reached; the item was not taken (D11).
        """
        with self._manager.atomic():
            if not self._open:
                self._open = True
                return True
            self._manager.enqueue(item)
            return False

    def try_open(self) -> bool:
        """Occupy an idle context for work that is no input, such as a slash command that runs by
        itself; False when it is at work.
        """
        with self._manager.atomic():
            opened = not self._open
            self._open = True
            return opened

    def leave(self, *, include_later: bool, hold: bool = False) -> list[QueuedInput]:
        """The turn is over. Returns what starts the next one (see ``take_leftovers``), and the
        gate stays open for it; or nothing, and then the gate is closed.

        ``hold`` keeps back everything that waits at this moment, after an interrupt (D5).
        """
        with self._manager.atomic():
            if hold:
                self._manager.hold(self._context_id)
            leftovers = self._manager.take_leftovers(
                self._context_id, include_later=include_later, one=self._one_per_turn
            )
            self._open = bool(leftovers)
            return leftovers

    def resume(self, *, include_later: bool) -> list[QueuedInput]:
        """When idle, take what starts a turn and open the gate for it; otherwise nothing."""
        with self._manager.atomic():
            if self._open:
                return []
            return self.leave(include_later=include_later)
