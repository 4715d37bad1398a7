"""``MessageQueueManager``: what producers and consumers of queued inputs talk to (S2.6)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.barriers import at_step_boundary, leading_prompts, may_go, next_turn
from midturn_core.queue.events import MessageQueueListener, QueueChangeReason, QueueChangeType
from midturn_core.queue.fan_out import ListenerFanOut
from midturn_core.queue.holding import edit_begun, edit_ended, held_back, let_go
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import (
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)

DEFAULT_CAP = 1000
"""Waiting inputs per context (D11)."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MessageQueueManager:
    """The facade over a repository: listeners, cap, holding, and decisions in one step (S2.10).

    Synchronous and thread-safe. One lock covers each change together with its events, so that
    every listener sees all changes in the order in which they happened.

    Args:
        repository: where the inputs are kept.
        cap: how many may wait in one context; 0 means no cap (D11).
        ttl: seconds after which an input that is on its way expires; 0 is never (D11).
        now: the wall clock that ages are measured with.
    """

    def __init__(
        self,
        repository: MessageQueueRepository,
        cap: int = DEFAULT_CAP,
        ttl: float = 0,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._repository = repository
        self._cap = cap
        self._ttl = timedelta(seconds=ttl)
        self._now = now
        self._lock = threading.RLock()
        self._listeners = ListenerFanOut()

    def atomic(self) -> AbstractContextManager[object]:
        """A block in which no other thread changes the queue: for decisions made of several
        steps. Re-entrant; it must be short and must not wait.
        """
        return self._lock

    def add_listener(self, listener: MessageQueueListener) -> None:
        with self._lock:
            self._listeners.add(listener)

    def remove_listener(self, listener: MessageQueueListener) -> None:
        """Forget a listener; nothing happens when it is not known."""
        with self._lock:
            self._listeners.remove(listener)

    def enqueue(self, item: QueuedInput, *, capped: bool = True) -> None:
        """Let an input wait. One whose uuid is already waiting changes nothing. ``capped`` False:
        the cap was looked at elsewhere.

        Raises:
            QueueFullError: the cap of its context is reached; nothing was stored (D11).
        """
        with self._lock:
            if self._repository.enqueue(item, cap=self._cap if capped else 0):
                self._listeners.tell([item], QueueChangeType.ENQUEUED)

    def drain_for_injection(
        self,
        selection: Predicate,
        max_priority: QueuedInputPriority = QueuedInputPriority.NEXT,
    ) -> list[QueuedInput]:
        """Take out everything selected of this tier and those before it, as one batch (S2.11).

        ``selection`` names the context (S2.15), normally as a ``QueueFilter``.
        """
        with self._lock:
            if isinstance(selection, QueueFilter):
                self.expire(selection.context_id)
            items = self._repository.drain(_limited(selection, max_priority))
            self._listeners.tell(items, QueueChangeType.DRAINED)
            return items

    def drain_at_step(self, selection: QueueFilter) -> list[QueuedInput]:
        """What a step boundary inside a turn delivers, as one batch: every NOW prompt, and the
        NEXT prompts before the first waiting command. What was typed after a command comes after
        it (D3).
        """
        with self._lock:
            return self._take_exactly(at_step_boundary(self._on_their_way(selection)))

    def drain_or_close(
        self, selection: QueueFilter, on_empty: Callable[[], None], *, one: bool = False
    ) -> list[QueuedInput]:
        """Drain where the turn would stop: what is returned goes on with the turn; when nothing
        is, ``on_empty`` has run in the same step as that finding (D6).

        Only prompts before the first waiting command are taken: a command is a barrier (D3, D4).
        ``one`` takes but the first of them.
        """
        with self._lock:
            prompts = leading_prompts(self._on_their_way(selection))
            items = self._take_exactly(prompts[:1] if one else prompts)
            if not items:
                on_empty()
            return items

    def take_leftovers(
        self, context_id: AgentRuntimeId, *, include_later: bool, one: bool = False
    ) -> list[QueuedInput]:
        """What the next turn consists of (D4): neighbouring NOW and NEXT prompts together, a
        command by itself, and when neither waits, one LATER input (D1). Held ones stay, and so
        does what is behind one that is being edited.

        ``include_later`` False leaves LATER inputs where they are; ``one`` gives each prompt a turn
        of its own.
        """
        last = QueuedInputPriority.LATER if include_later else QueuedInputPriority.NEXT
        with self._lock:
            free = self._on_their_way(QueueFilter(context_id, last))
            return self._take_exactly(next_turn(free, one=one))

    def snapshot(self, context_id: AgentRuntimeId | None = None) -> list[QueuedInput]:
        """All waiting inputs in delivery order, held ones included; a copy."""
        with self._lock:
            selection: Predicate = (
                _everything if context_id is None else QueueFilter(context_id, exclude_held=False)
            )
            return self._repository.list_by_max_priority(QueuedInputPriority.LATER, selection)

    def peek(self, selection: Predicate) -> QueuedInput | None:
        """The first selected input, which stays."""
        with self._lock:
            return self._repository.peek(selection)

    def size(self, context_id: AgentRuntimeId | None = None) -> int:
        """How many wait, held ones included."""
        with self._lock:
            return self._repository.size(context_id)

    def remove(
        self, uuid: str, reason: QueueChangeReason = QueueChangeReason.CANCELLED
    ) -> QueuedInput | None:
        """Take one out without delivering it, and return it; None when it is not waiting."""
        with self._lock:
            item = self._repository.get(uuid)
            if item is None or not self._repository.remove(uuid):
                return None
            self._listeners.tell([item], QueueChangeType.REMOVED, reason)
            return item

    def clear(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        """Take out everything of a context, held ones included, and return it."""
        with self._lock:
            items = self._repository.drain(QueueFilter(context_id, exclude_held=False))
            self._listeners.tell(items, QueueChangeType.REMOVED, QueueChangeReason.CLEARED)
            return items

    def edit(self, uuid: str, text: str, tags: Mapping[str, str] | None = None) -> bool:
        """Change the text, and these tags; uuid and place stay. False when it is not waiting any
        more.

        Raises:
            ValueError: the text is empty or only white space.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None:
                return False
            changed = dataclasses.replace(
                item, input_text=text, metadata={**item.metadata, **(tags or {})}
            )
            return self._change(changed, QueueChangeReason.EDITED)

    def begin_edit(self, uuid: str) -> QueuedInput | None:
        """Keep an input back while somebody edits it: it is not delivered until ``end_edit``,
        whatever is held or released meanwhile, and nothing but a NOW input overtakes it. Returns
        it as it is now; None when it is not waiting any more.
        """
        with self._lock:
            item = self._repository.get(uuid)
            edited = None if item is None else edit_begun(item)
            if edited is None:
                return item
            return edited if self._change(edited, QueueChangeReason.HELD) else None

    def end_edit(self, uuid: str) -> bool:
        """Let an input be again what it was before ``begin_edit``, or what a hold or a release
        made of it meanwhile. False when nobody edits it.
        """
        with self._lock:
            item = self._repository.get(uuid)
            after = None if item is None else edit_ended(item, self._since())
            if after is None:
                return False
            reason = QueueChangeReason.HELD if after.held else QueueChangeReason.RELEASED
            return self._change(after, reason)

    def expire(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        """Take out, and return, what has been on its way for longer than the time to live (D11).
        Each drain does so first. What is held stays, and a clock that was set back expires nothing.
        """
        if not self._ttl:
            return []
        with self._lock:
            before = self._now() - self._ttl
            old = [
                item
                for item in self.snapshot(context_id)
                if not item.held and item.waits_since <= before
            ]
            items = [item for item in old if self._repository.remove(item.uuid)]
            self._listeners.tell(items, QueueChangeType.REMOVED, QueueChangeReason.EXPIRED)
            return items

    def reprioritise(self, uuid: str, priority: QueuedInputPriority) -> bool:
        """Put an input at the end of another tier. False when it is not waiting any more."""
        with self._lock:
            item = self._repository.get(uuid)
            if item is None or item.priority == priority:
                return item is not None
            return self._change(
                dataclasses.replace(item, priority=priority), QueueChangeReason.REPRIORITISED
            )

    def move(self, uuid: str, offset: int) -> bool:
        """Move an input by ``offset`` places within its tier (negative: earlier), as far as the
        tier goes. False when that changes nothing.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None:
                return False
            tier = [
                other.uuid
                for other in self.snapshot(item.context_id)
                if other.priority == item.priority
            ]
            order = _moved(tier, uuid, offset)
            if order == tier:
                return False
            behind = order[order.index(uuid) + 1 :]
            moved = self._repository.move(uuid, behind[0] if behind else None)
            if moved:
                self._listeners.tell([item], QueueChangeType.CHANGED, QueueChangeReason.MOVED)
            return moved

    def hold(self, target: AgentRuntimeId | str) -> int:
        """Keep back an input (by uuid) or all that wait in a context (D5); how many changed."""
        with self._lock:
            changed = 0
            for item in self._targets(target):
                other = held_back(item)
                if other is not None:
                    changed += self._change(other, QueueChangeReason.HELD)
            return changed

    def release(self, target: AgentRuntimeId | str) -> int:
        """The opposite of ``hold``; how many changed. A scheduled input goes before its time only
        by its uuid.
        """
        with self._lock:
            changed = 0
            for item in self._targets(target):
                if item.scheduled and isinstance(target, AgentRuntimeId):
                    continue
                other = let_go(item, self._since())
                if other is not None:
                    changed += self._change(other, QueueChangeReason.RELEASED)
            return changed

    def hold_past_due(self, uuid: str) -> bool:
        """The time of a scheduled input passed while nobody looked: it stays held, until it is
        released by hand. False when there is no such input.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None or not item.scheduled:
                return False
            return self._change(item.as_past_due(), QueueChangeReason.HELD)

    def _since(self) -> datetime | None:
        """From when on an input that is let go now may wait; None without a time to live."""
        return self._now() if self._ttl else None

    def _on_their_way(self, selection: QueueFilter) -> list[QueuedInput]:
        """Commands as well as prompts."""
        self.expire(selection.context_id)
        everything = dataclasses.replace(selection, prompts_only=False, exclude_held=False)
        return may_go(self._repository.list_by_max_priority(selection.max_priority, everything))

    def _targets(self, target: AgentRuntimeId | str) -> list[QueuedInput]:
        if isinstance(target, AgentRuntimeId):
            return self.snapshot(target)
        item = self._repository.get(target)
        return [] if item is None else [item]

    def _take_exactly(self, chosen: list[QueuedInput]) -> list[QueuedInput]:
        items = [item for item in chosen if self._repository.remove(item.uuid)]
        self._listeners.tell(items, QueueChangeType.DRAINED)
        return items

    def _change(self, item: QueuedInput, reason: QueueChangeReason) -> bool:
        changed = self._repository.replace(item)
        if changed:
            self._listeners.tell([item], QueueChangeType.CHANGED, reason)
        return changed


def _everything(_: QueuedInput) -> bool:
    return True


def _limited(selection: Predicate, max_priority: QueuedInputPriority) -> Predicate:
    if isinstance(selection, QueueFilter):
        return dataclasses.replace(
            selection, max_priority=min(selection.max_priority, max_priority)
        )
    return lambda item: item.priority <= max_priority and selection(item)


def _moved(tier: Sequence[str], uuid: str, offset: int) -> list[str]:
    """The same with one at another place, as far as the tier goes."""
    place = min(max(tier.index(uuid) + offset, 0), len(tier) - 1)
    order = [other for other in tier if other != uuid]
    return [*order[:place], uuid, *order[place:]]
