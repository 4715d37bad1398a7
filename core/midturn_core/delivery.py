"""What of the queue reaches the model inside a turn, and when (D1-D4).

There are two points: the step boundary (after tool results, or where a NOW input cut a message)
and the would-stop, where the model asked for no tool. Each is one atomic drain; what it took is
then claimed in the store that others can reach, and confirmed once the history holds it (D12).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import UserPart
from midturn_core.queue.attachments import AttachmentFinder, AttachmentRef, attachments_of
from midturn_core.queue.claims import Claims, NoStore
from midturn_core.queue.events import QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY, SystemReminderFormatter
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter


@dataclass(frozen=True, slots=True)
class DeliveryRules:
    """``now_hastens`` False keeps only the ordering of NOW; ``next_at_step`` False holds NEXT
    back until the model wants to stop; ``one_per_turn`` True answers what waits then one by one.
    """

    now_hastens: bool = True
    next_at_step: bool = True
    one_per_turn: bool = False


class NowWatch:
    """Wakes the turn when a NOW prompt for its context waits. A queue listener.

    It is cleared by the drain that takes the input, so nothing is seen twice or missed.
    """

    def __init__(self, delivery: InputDelivery, loop: asyncio.AbstractEventLoop) -> None:
        self._delivery = delivery
        self._loop = loop
        self._woken = asyncio.Event()

    def on_event(self, event: QueueEvent) -> None:
        if event.input.priority is QueuedInputPriority.NOW:
            # A turn on its way out has no loop to wake any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self) -> None:
        """Until a NOW prompt waits; for ever when NOW does not hasten."""
        while not self._delivery.now_is_waiting():
            self._woken.clear()
            if self._delivery.now_is_waiting():
                return
            await self._woken.wait()


def _unknown(ref: AttachmentRef) -> UserPart:
    return f"[The picture {ref.name} cannot be sent here.]"


class InputDelivery:
    """Drains the queue of one context for the turn loop."""

    def __init__(
        self,
        queue: MessageQueueManager,
        context_id: AgentRuntimeId,
        reminders: SystemReminderFormatter,
        rules: DeliveryRules,
        find_attachment: AttachmentFinder = _unknown,
        claims: Claims | None = None,
    ) -> None:
        self._queue = queue
        self._context_id = context_id
        self._reminders = reminders
        self._rules = rules
        self._find = find_attachment
        self._claims: Claims = claims if claims is not None else NoStore()

    def watch(self) -> NowWatch:
        return NowWatch(self, asyncio.get_running_loop())

    def attach(self, watch: NowWatch) -> None:
        self._queue.add_listener(watch)

    def detach(self, watch: NowWatch) -> None:
        self._queue.remove_listener(watch)

    def now_is_waiting(self) -> bool:
        """Whether a NOW prompt should hasten the boundary."""
        return (
            self._rules.now_hastens
            and self._queue.peek(self._prompts(QueuedInputPriority.NOW)) is not None
        )

    async def at_step_boundary(self) -> list[QueuedInput]:
        """NOW first, then NEXT unless it is held back; commands stay in the queue, and so do the
        NEXT prompts behind one (D2, D3).
        """
        most = QueuedInputPriority.NEXT if self._rules.next_at_step else QueuedInputPriority.NOW
        return await self._claims.claim(self._queue.drain_at_step(self._prompts(most)))

    async def at_would_stop(self) -> list[QueuedInput]:
        """The waiting prompts up to the first command, which is a barrier (D4).

        Nothing means that the turn may end; what is enqueued from then on starts the next one.
        """
        selection = QueueFilter(self._context_id, max_priority=QueuedInputPriority.NEXT)
        one = self._rules.one_per_turn
        while items := self._queue.drain_or_close(selection, lambda: None, one=one):
            if ours := await self._claims.claim(items):
                return ours
        return []

    def confirm(self, items: Sequence[QueuedInput]) -> None:
        """The history that holds these is in the log."""
        self._claims.confirm(item.uuid for item in items)

    def as_reminders(self, items: Sequence[QueuedInput]) -> tuple[UserPart, ...]:
        """How inputs stand inside a turn: each text its own system reminder, verbatim (D13), and
        its pictures after it (D15).
        """
        return self._parts(items, partial(self._reminders.wrap, MID_TURN_INJECTION_KEY))

    def as_prompts(self, items: Sequence[QueuedInput]) -> tuple[UserPart, ...]:
        """How inputs stand where the user has the word: each text as it is, then its pictures."""
        return self._parts(items, str)

    def _parts(
        self, items: Sequence[QueuedInput], form: Callable[[str], str]
    ) -> tuple[UserPart, ...]:
        parts: list[UserPart] = []
        for item in items:
            parts += [form(item.input_text), *map(self._find, attachments_of(item))]
        return tuple(parts)

    def _prompts(self, most: QueuedInputPriority) -> QueueFilter:
        return QueueFilter(self._context_id, max_priority=most, prompts_only=True)
