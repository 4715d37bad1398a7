"""``RewakeService``: an input for an agent at a time to come (S1.40).

For ``/remind``, for hooks and for whatever else ends later than the turn that began it. A scheduled
input is a queued input from the beginning: it lies in the queue with its due time, held until then,
and so it is kept, listed, edited and removed like every other. At its time it is let go and joins
the end of its tier. Those that become due together go in the order of (due time, sequence).

**Clocks.** ``At`` follows the wall clock, also when that is set. ``After`` is a span of elapsed
time, suspended hours included: setting the clock changes nothing. Elapsed time is known to one run
of the program only; an ``After`` that outlives it goes on by the wall-clock time it was meant for.

**Restart.** What became due while nobody ran is not sent by itself: it stays held, as every
leftover does (D5).
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
import uuid as uuids
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias, assert_never

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeType, QueueEvent
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import (
    DUE_KEY,
    HELD_KEY,
    ORIGIN_KEY,
    REMINDER,
    QueuedInput,
    QueuedInputPriority,
)

_log = logging.getLogger(__name__)

CLOCK_LOOK_SECONDS = 10.0
"""How late a clock that was set, or the end of a suspension, is noticed."""
MAX_SPAN = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class After:
    """So much elapsed time from now.

    Raises:
        ValueError: it is negative, or more than ``MAX_SPAN``.
    """

    span: timedelta

    def __post_init__(self) -> None:
        if not timedelta(0) <= self.span <= MAX_SPAN:
            raise ValueError(f"a span goes from nothing to {MAX_SPAN.days} days")


@dataclass(frozen=True, slots=True)
class At:
    """An instant of the wall clock; one that has passed is due at once.

    Raises:
        ValueError: it has no time zone.
    """

    instant: datetime

    def __post_init__(self) -> None:
        if self.instant.tzinfo is None:
            raise ValueError("an instant needs its time zone")


Due: TypeAlias = After | At


@dataclass(frozen=True, slots=True)
class Wakeup:
    """What to enqueue, for whom. ``tags`` go into the metadata of the input."""

    text: str
    context_id: AgentRuntimeId
    priority: QueuedInputPriority = QueuedInputPriority.LATER
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class RewakeService(Protocol):
    """Thread-safe; every method returns at once."""

    def schedule(self, wakeup: Wakeup, due: Due) -> QueuedInput | None:
        """Enqueue it at its time; the waiting input, or None where nothing is ever woken.

        Raises:
            QueueFullError: the cap of the context is reached; nothing was scheduled (D11).
            ValueError: the text is empty.
        """
        ...

    def cancel(self, uuid: str) -> QueuedInput | None:
        """Take out one that is not due yet; None when there is none of this uuid."""
        ...

    def pending(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        """What is not due yet, in the order in which it will be."""
        ...


class NoRewake:
    """The default where no service is wired: nothing is ever woken."""

    def schedule(self, wakeup: Wakeup, due: Due) -> QueuedInput | None:
        return None

    def cancel(self, uuid: str) -> QueuedInput | None:
        return None

    def pending(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        return []


NO_REWAKE = NoRewake()


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _elapsed() -> float:
    """Seconds on a clock that nobody sets; where the system has one, it runs while suspended."""
    boot_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


@dataclass(frozen=True, slots=True)
class Clocks:
    wall: Callable[[], datetime] = _utc_now
    elapsed: Callable[[], float] = _elapsed


@dataclass(frozen=True, slots=True)
class _Alarm:
    uuid: str
    due: datetime
    sequence: int
    elapsed_due: float | None
    """Only for a span that this run has measured from its beginning."""

    def remaining(self, clocks: Clocks) -> float:
        """Seconds; not above zero when it is due."""
        if self.elapsed_due is not None:
            return self.elapsed_due - clocks.elapsed()
        return (self.due - clocks.wall()).total_seconds()

    @property
    def order(self) -> tuple[datetime, int]:
        return self.due, self.sequence


class QueueRewakeService:
    """Lets scheduled inputs of one queue go at their time. A listener of its manager.

    The manager's lock may be held while ``_changed`` is taken, never the other way round.

    Args:
        on_due: called after inputs were let go, on the service's thread.
    """

    def __init__(
        self,
        manager: MessageQueueManager,
        on_due: Callable[[], None],
        clocks: Clocks = Clocks(),
    ) -> None:
        self._manager = manager
        self._on_due = on_due
        self._clocks = clocks
        self._changed = threading.Condition()
        # No heap: alarms of two clocks have no one order that stays.
        self._alarms: dict[str, _Alarm] = {}
        self._sequence = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False
        manager.add_listener(self)

    def schedule(self, wakeup: Wakeup, due: Due) -> QueuedInput | None:
        now = self._clocks.wall()
        alarm = self._alarm(due, now)
        item = QueuedInput(
            wakeup.text,
            wakeup.context_id,
            wakeup.priority,
            alarm.uuid,
            enqueued_at=now,
            metadata={
                ORIGIN_KEY: REMINDER,
                **wakeup.tags,
                HELD_KEY: "1",
                DUE_KEY: alarm.due.isoformat(),
            },
        )
        # In one step: no alarm goes off before its input is there to be let go.
        with self._manager.atomic():
            self._set(alarm)
            try:
                self._manager.enqueue(item)
            except BaseException:
                self._forget(alarm.uuid)
                raise
        self._watch()
        return item

    def cancel(self, uuid: str) -> QueuedInput | None:
        with self._manager.atomic():
            item = self._manager.peek(lambda waiting: waiting.uuid == uuid and waiting.scheduled)
            return None if item is None else self._manager.remove(uuid)

    def pending(self, context_id: AgentRuntimeId) -> list[QueuedInput]:
        with self._manager.atomic():
            items = self._manager.snapshot(context_id)
            with self._changed:
                alarms = {item: self._alarms.get(item.uuid) for item in items}
        known = [(alarm.order, item) for item, alarm in alarms.items() if alarm is not None]
        return [item for _, item in sorted(known, key=lambda pair: pair[0])]

    def on_event(self, event: QueueEvent) -> None:
        item = event.input
        match event.change_type:
            case QueueChangeType.ENQUEUED:
                if item.scheduled:
                    self._arrive(item)
            case QueueChangeType.CHANGED:
                if not item.scheduled:
                    self._forget(item.uuid)
            case QueueChangeType.DRAINED | QueueChangeType.REMOVED:
                self._forget(item.uuid)
            case _:
                assert_never(event.change_type)

    def let_go(self) -> int:
        """Let everything go that is due now; how many. The service's own thread calls it."""
        with self._changed:
            due = [one for one in self._alarms.values() if one.remaining(self._clocks) <= 0]
            for alarm in due:
                del self._alarms[alarm.uuid]
        for alarm in sorted(due, key=lambda one: one.order):
            with self._manager.atomic():
                self._manager.release(alarm.uuid)
                # Behind what was typed while it was not there yet.
                self._manager.move(alarm.uuid, self._manager.size())
        if due:
            self._on_due()
        return len(due)

    def close(self) -> None:
        """Let nothing go any more; what is scheduled stays in the queue. Idempotent."""
        self._manager.remove_listener(self)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _alarm(self, due: Due, now: datetime) -> _Alarm:
        uuid, sequence = str(uuids.uuid4()), next(self._sequence)
        match due:
            case After(span):
                elapsed_due = self._clocks.elapsed() + span.total_seconds()
                return _Alarm(uuid, now + span, sequence, elapsed_due)
            case At(instant):
                return _Alarm(uuid, instant.astimezone(UTC), sequence, None)
            case _:
                assert_never(due)

    def _arrive(self, item: QueuedInput) -> None:
        """One that this object did not schedule: from an earlier run, or from elsewhere."""
        with self._changed:
            if item.uuid in self._alarms:
                return
        due = item.due
        if due is None or due <= self._clocks.wall():
            self._manager.hold_past_due(item.uuid)
            return
        self._set(_Alarm(item.uuid, due, next(self._sequence), None))
        self._watch()

    def _set(self, alarm: _Alarm) -> None:
        with self._changed:
            self._alarms[alarm.uuid] = alarm

    def _forget(self, uuid: str) -> None:
        with self._changed:
            self._alarms.pop(uuid, None)

    def _watch(self) -> None:
        """Look at the alarms anew, on a thread that starts with the first of them."""
        with self._changed:
            self._changed.notify_all()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="rewake", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._wait():
            try:
                self.let_go()
            except Exception:
                # Isolation wall: the other reminders still come.
                _log.exception("a reminder could not be let go")

    def _wait(self) -> bool:
        """Until something is due; False when closed."""
        with self._changed:
            while not self._closed:
                seconds = min(
                    (one.remaining(self._clocks) for one in self._alarms.values()),
                    default=math.inf,
                )
                if seconds <= 0:
                    return True
                self._changed.wait(
                    None if math.isinf(seconds) else min(seconds, CLOCK_LOOK_SECONDS)
                )
            return False
