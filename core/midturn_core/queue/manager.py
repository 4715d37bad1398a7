"""``MessageQueueManager``: what producers and consumers of queued inputs talk to (S2.6)."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from midturn_core.errors import QueueFullError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import (
    MessageQueueListener,
    QueueChangeReason,
    QueueChangeType,
    QueueEvent,
)
from midturn_core.queue.repository import MessageQueueRepository
from midturn_core.queue.types import (
    DUE_KEY,
    HELD_KEY,
    Predicate,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)

_log = logging.getLogger(__name__)

DEFAULT_CAP = 1000
"""Waiting inputs per context (D11)."""


class MessageQueueManager:
    """The facade over a repository: listeners, cap, holding, and decisions in one step (S2.10).

    Synchronous and thread-safe. One lock covers each change together with its events, so that
    every listener sees all changes in the order in which they happened.

    Args:
        repository: where the inputs are kept.
        cap: how many may wait in one context; 0 means no cap (D11).
    """

    def __init__(self, repository: MessageQueueRepository, cap: int = DEFAULT_CAP) -> None:
        self._repository = repository
        self._cap = cap
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
            known = self._repository.get(item.uuid) is not None
            full = self._cap and self._repository.size(item.context_id) >= self._cap
            if capped and full and not known:
                raise QueueFullError(
                    f"{self._cap} inputs are already waiting; "
                    "remove one with /queue rm, or raise queue.cap"
                )
            if self._repository.enqueue(item):
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
            items = self._repository.drain(_limited(selection, max_priority))
            self._publish(items, QueueChangeType.DRAINED)
            return items

    def drain_at_step(self, selection: QueueFilter) -> list[QueuedInput]:
        """What a step boundary inside a turn delivers, as one batch: every NOW prompt, and the
        NEXT prompts before the first waiting command. What was typed after a command comes after
        it (D3).
        """
        with self._lock:
            waiting = self._repository.list_by_max_priority(
                selection.max_priority, dataclasses.replace(selection, prompts_only=False)
            )
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
            waiting = self._repository.list_by_max_priority(
                selection.max_priority, dataclasses.replace(selection, prompts_only=False)
            )
            items = self._take_exactly(_leading_prompts(waiting)[: 1 if one else None])
            if not items:
                on_empty()
            return items

    def take_leftovers(
        self, context_id: AgentRuntimeId, *, include_later: bool, one: bool = False
    ) -> list[QueuedInput]:
        """What the next turn consists of (D4): neighbouring NOW and NEXT prompts together, a
        command by itself, and when neither waits, one LATER input (D1). Held ones stay.

        ``include_later`` False leaves LATER inputs where they are; ``one`` gives each prompt a turn
        of its own.
        """
        last = QueuedInputPriority.LATER if include_later else QueuedInputPriority.NEXT
        with self._lock:
            waiting = self._repository.list_by_max_priority(last, QueueFilter(context_id))
            together = _leading_prompts(
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

    def edit(self, uuid: str, text: str) -> bool:
        """Change the text; uuid and place stay. False when it is not waiting any more.

        Raises:
            ValueError: the text is empty or only white space.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None:
                return False
            return self._change(
                dataclasses.replace(item, input_text=text), QueueChangeReason.EDITED
            )

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
            return sum(
                self._change(item.as_held(), QueueChangeReason.HELD)
                for item in self._targets(target)
                if not item.held
            )

    def release(self, target: AgentRuntimeId | str) -> int:
        """The opposite of ``hold``; how many changed. A scheduled input goes before its time only
        by its uuid.
        """
        with self._lock:
            return sum(
                self._change(_without(item, HELD_KEY, DUE_KEY), QueueChangeReason.RELEASED)
                for item in self._targets(target)
                if item.held and not (item.scheduled and isinstance(target, AgentRuntimeId))
            )

    def hold_past_due(self, uuid: str) -> bool:
        """The time of a scheduled input passed while nobody looked: it stays held, until it is
        released by hand. False when there is no such input.
        """
        with self._lock:
            item = self._repository.get(uuid)
            if item is None or not item.scheduled:
                return False
            return self._change(_without(item.as_held(), DUE_KEY), QueueChangeReason.HELD)

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


def behind_command(waiting: Iterable[QueuedInput]) -> frozenset[str]:
    """The uuids of the NEXT prompts that a command bars. ``waiting`` is in delivery order; held
    inputs bar nothing.
    """
    free = (item for item in waiting if not item.held)
    rest = itertools.dropwhile(lambda item: item.is_prompt, free)
    return frozenset(
        item.uuid for item in rest if item.is_prompt and item.priority is QueuedInputPriority.NEXT
    )


def _without(item: QueuedInput, *tags: str) -> QueuedInput:
    metadata = {key: value for key, value in item.metadata.items() if key not in tags}
    return dataclasses.replace(item, metadata=metadata)


def _everything(_: QueuedInput) -> bool:
    return True


def _limited(selection: Predicate, max_priority: QueuedInputPriority) -> Predicate:
    if isinstance(selection, QueueFilter):
        return dataclasses.replace(
            selection, max_priority=min(selection.max_priority, max_priority)
        )
    return lambda item: item.priority <= max_priority and selection(item)


def _leading_prompts(items: Iterable[QueuedInput]) -> list[QueuedInput]:
    return list(itertools.takewhile(lambda item: item.is_prompt, items))
