"""``MessageQueueManager``: what producers and consumers of queued inputs talk to (S2.6)."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.barriers import behind_command, leading_prompts, may_go
from midturn_core.queue.events import (
    MessageQueueListener,
    QueueChangeReason,
    QueueChangeType,
    QueueEvent,
)
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import (
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)

_log = logging.getLogger(__name__)

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
        self._listeners: tuple[MessageQueueListener, ...] = ()
        self._unpublished: deque[QueueEvent] = deque()
        self._publishing = False

    def atomic(self) -> AbstractContextManager[object]:
        """A block in which no other thread changes the queue: for decisions made of several
        steps. Re-entrant; it must be short and must not wait.
        """
        return self._lock

    def add_listener(self, listener: MessageQueueListener) -> None:
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: MessageQueueListener) -> None:
        """Forget a listener; nothing happens when it is not known."""
        with self._lock:
            self._listeners = tuple(known for known in self._listeners if known is not listener)

    def enqueue(self, item: QueuedInput, *, capped: bool = True) -> None:
        """Let an input wait. One whose uuid is already waiting changes nothing. ``capped`` False:
        the cap was looked at elsewhere.

        Raises:
            QueueFullError: the cap of its context is reached; nothing was stored (D11).
        """
        with self._lock:
            if self._repository.enqueue(item, cap=self._cap if capped else 0):
                self._publish([item], QueueChangeType.ENQUEUED)

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
            self._publish(items, QueueChangeType.DRAINED)
            return items

    def drain_at_step(self, selection: QueueFilter) -> list[QueuedInput]:
        """What a step boundary inside a turn delivers, as one batch: every NOW prompt, and the
        NEXT prompts before the first waiting command. What was typed after a command comes after
        it (D3).
        """
        with self._lock:
            waiting = self._on_their_way(selection)
            barred = behind_command(waiting)
            return self._take_exactly(
                [item for item in waiting if item.is_prompt and item.uuid not in barred]
            )

    def drain_or_close(
        self, selection: QueueFilter, on_empty: Callable[[], None], *, one: bool = False
    ) -> list[QueuedInput]:
        """Drain where the turn would stop: what is returned goes on with the turn; when nothing
        is, ``on_empty`` has run in the same step as that finding (D6).

        Only prompts before the first waiting command are taken: a command is a barrier (D3, D4).
        ``one`` takes but the first of them.
        """
        with self._lock:
            waiting = self._on_their_way(selection)
            items = self._take_exactly(leading_prompts(waiting)[: 1 if one else None])
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
            waiting = self._on_their_way(QueueFilter(context_id, last))
            together = leading_prompts(
                item for item in waiting if item.priority <= QueuedInputPriority.NEXT
            )
            return self._take_exactly(waiting[:1] if one or not together else together)

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
            self._publish([item], QueueChangeType.REMOVED, reason)
            return item

    def clear(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        """Take out everything of a context, held ones included, and return it."""
        with self._lock:
            items = self._repository.drain(QueueFilter(context_id, exclude_held=False))
            self._publish(items, QueueChangeType.REMOVED, QueueChangeReason.CLEARED)
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
            if item is None or item.being_edited:
                return item
            edited = item.as_edited()
            return edited if self._change(edited, QueueChangeReason.HELD) else None

    def end_edit(self, uuid: str) -> bool:
        """Let an input be again what it was before ``begin_edit``, or what a hold or a release
        made of it meanwhile. False when nobody edits it.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None or not item.being_edited:
                return False
            if item.bars_others:
                return self._change(self._freed(item), QueueChangeReason.RELEASED)
            return self._change(item.as_held(), QueueChangeReason.HELD)

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
            self._publish(items, QueueChangeType.REMOVED, QueueChangeReason.EXPIRED)
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
            place = tier.index(uuid)
            target = min(max(place + offset, 0), len(tier) - 1)
            if target == place:
                return False
            tier.remove(uuid)
            before = tier[target] if target < len(tier) else None
            moved = self._repository.move(uuid, before)
            if moved:
                self._publish([item], QueueChangeType.CHANGED, QueueChangeReason.MOVED)
            return moved

    def hold(self, target: AgentRuntimeId | str) -> int:
        """Keep back an input (by uuid) or all that wait in a context (D5); how many changed."""
        with self._lock:
            changed = 0
            for item in self._targets(target):
                other = self._kept_back(item)
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
                other = self._let_go(item)
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

    @staticmethod
    def _kept_back(item: QueuedInput) -> QueuedInput | None:
        """None when it is held as it is."""
        if item.bars_others:
            return item.to_be(held=True)
        return None if item.held else item.as_held()

    def _let_go(self, item: QueuedInput) -> QueuedInput | None:
        """None when it is on its way, or will be once nobody edits it."""
        if item.being_edited:
            return None if item.bars_others else item.to_be(held=False)
        return self._freed(item) if item.held else None

    def _freed(self, item: QueuedInput) -> QueuedInput:
        return item.as_free(self._now() if self._ttl else None)

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
        self._publish(items, QueueChangeType.DRAINED)
        return items

    def _change(self, item: QueuedInput, reason: QueueChangeReason) -> bool:
        changed = self._repository.replace(item)
        if changed:
            self._publish([item], QueueChangeType.CHANGED, reason)
        return changed

    def _publish(
        self,
        items: Iterable[QueuedInput],
        change_type: QueueChangeType,
        reason: QueueChangeReason | None = None,
    ) -> None:
        """Tell the listeners, with the lock held. A change that a listener makes is told after
        the one it was told of, so that all of them see the same order.
        """
        self._unpublished.extend(QueueEvent(item, change_type, reason) for item in items)
        if self._publishing:
            return
        self._publishing = True
        try:
            while self._unpublished:
                event = self._unpublished.popleft()
                for listener in self._listeners:
                    _notify(listener, event)
        finally:
            self._publishing = False


def _notify(listener: MessageQueueListener, event: QueueEvent) -> None:
    try:
        listener.on_event(event)
    # An isolation wall (S2.12): a listener's fault never reaches the producer or its siblings.
    except Exception:
        _log.warning(
            "queue listener %s failed on %s",
            type(listener).__name__,
            event.change_type.value,
            exc_info=True,
        )


def _everything(_: QueuedInput) -> bool:
    return True


def _limited(selection: Predicate, max_priority: QueuedInputPriority) -> Predicate:
    if isinstance(selection, QueueFilter):
        return dataclasses.replace(
            selection, max_priority=min(selection.max_priority, max_priority)
        )
    return lambda item: item.priority <= max_priority and selection(item)
