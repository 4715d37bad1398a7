"""What became of each queued input: exactly one visible state for every one of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum

from midturn_core.events import (
    BatchStarted,
    DeliveryPoint,
    Event,
    InputsDelivered,
    StepStarted,
    ToolUseStarted,
    TurnStarted,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

KEPT_RECEIPTS = 1000
MAX_TEXT = 500
"""Characters of each text: a receipt is for recognising it."""


class ReceiptState(Enum):
    """Where an input is, or how it ended. Every state but WAITING and EXPIRED is final."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    """Inside a turn, after a step."""
    ABSORBED = "absorbed"
    """Where the turn would have ended; it went on with the input."""
    OWN_TURN = "own turn"
    """It started a turn, or ran as a command or ``!`` line."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    RESTORED = "restored"
    """It had expired, and waits again as an input of its own."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One input that waited. ``text`` is untrusted, and cut."""

    uuid: str
    text: str
    priority: QueuedInputPriority
    enqueued_at: datetime
    state: ReceiptState = ReceiptState.WAITING
    ended_at: datetime | None = None
    """None while it waits."""
    step: int = 0
    """The step after which it was delivered."""
    tools: tuple[str, ...] = ()
    """What ran in that step, each tool once."""
    cut: bool = False
    """It cut the answer of the step short."""

    @property
    def waited_seconds(self) -> float | None:
        """Never negative; None while it waits."""
        if self.ended_at is None:
            return None
        return max((self.ended_at - self.enqueued_at).total_seconds(), 0.0)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class QueueReceipts:
    """Listens to the queue and to the events of the agent; a queue listener on any thread.

    An input that starts a turn without having waited has no receipt: it was never queued. The
    oldest that have ended give way first.
    """

    def __init__(self, context_id: AgentRuntimeId, now: Callable[[], datetime] = _utc_now) -> None:
        self._context_id = context_id
        self._now = now
        self._lock = threading.Lock()
        self._receipts: dict[str, Receipt] = {}
        self._ended: deque[str] = deque()
        """In the order in which they ended."""
        self._tools: tuple[str, ...] = ()

    def all(self) -> Sequence[Receipt]:
        """All of this session, in the order in which they were queued."""
        with self._lock:
            return tuple(self._receipts.values())

    def on_event(self, event: QueueEvent) -> None:
        item = event.input
        if item.context_id != self._context_id:
            return
        with self._lock:
            match event.change_type:
                case QueueChangeType.ENQUEUED:
                    self._begin(item)
                case QueueChangeType.CHANGED:
                    self._follow(item)
                case QueueChangeType.REMOVED:
                    expired = event.reason is QueueChangeReason.EXPIRED
                    state = ReceiptState.EXPIRED if expired else ReceiptState.CANCELLED
                    self._end(item.uuid, state)
                case QueueChangeType.DRAINED if not item.is_prompt:
                    self._end(item.uuid, ReceiptState.OWN_TURN)
                case QueueChangeType.DRAINED:
                    # On its way: it counts as delivered once the history holds it.
                    pass

    def observe(self, event: Event) -> None:
        """An event of the main agent."""
        with self._lock:
            match event:
                case TurnStarted(context_id, _, inputs) if context_id == self._context_id:
                    for item in inputs:
                        self._end(item.uuid, ReceiptState.OWN_TURN)
                case StepStarted() | BatchStarted():
                    self._tools = ()
                case ToolUseStarted(tool_use=use):
                    self._tools = tuple(dict.fromkeys((*self._tools, use.name)))
                case InputsDelivered(inputs, point, step):
                    self._deliver(inputs, point, step)
                case _:
                    pass

    def taken_elsewhere(self, uuids: Iterable[str]) -> None:
        """Another process took these out of the store in the moment of their delivery."""
        with self._lock:
            for uuid in uuids:
                self._end(uuid, ReceiptState.CANCELLED)

    def restored(self, uuid: str) -> None:
        """An expired input waits again, under a uuid of its own."""
        with self._lock:
            known = self._receipts.get(uuid)
            if known is not None and known.state is ReceiptState.EXPIRED:
                self._receipts[uuid] = replace(known, state=ReceiptState.RESTORED)

    def _begin(self, item: QueuedInput) -> None:
        self._receipts.pop(item.uuid, None)
        self._receipts[item.uuid] = Receipt(
            item.uuid, item.input_text[:MAX_TEXT], item.priority, item.enqueued_at
        )
        if len(self._receipts) > KEPT_RECEIPTS:
            self._drop_one_that_ended()

    def _drop_one_that_ended(self) -> None:
        """The one that ended first, without a look at all that may still wait."""
        while self._ended:
            uuid = self._ended.popleft()
            known = self._receipts.get(uuid)
            if known is not None and known.ended_at is not None:
                del self._receipts[uuid]
                return

    def _follow(self, item: QueuedInput) -> None:
        known = self._receipts.get(item.uuid)
        if known is not None and known.state is ReceiptState.WAITING:
            self._receipts[item.uuid] = replace(
                known, text=item.input_text[:MAX_TEXT], priority=item.priority
            )

    def _deliver(self, items: Iterable[QueuedInput], point: DeliveryPoint, step: int) -> None:
        for item in items:
            match point:
                case DeliveryPoint.TURN_END:
                    self._end(item.uuid, ReceiptState.ABSORBED, step=step)
                case DeliveryPoint.OWN_TURN:
                    self._end(item.uuid, ReceiptState.OWN_TURN)
                case (
                    DeliveryPoint.STEP_BOUNDARY
                    | DeliveryPoint.STREAM_CUT
                    | DeliveryPoint.BEFORE_ANSWER
                ):
                    cut = point is DeliveryPoint.STREAM_CUT
                    self._end(item.uuid, ReceiptState.DELIVERED, step=step, cut=cut)

    def _end(self, uuid: str, state: ReceiptState, *, step: int = 0, cut: bool = False) -> None:
        """The first end counts: what has ended never ends again."""
        known = self._receipts.get(uuid)
        if known is not None and known.state is ReceiptState.WAITING:
            tools = self._tools if state is ReceiptState.DELIVERED else ()
            self._receipts[uuid] = replace(
                known, state=state, ended_at=self._now(), step=step, tools=tools, cut=cut
            )
            self._ended.append(uuid)
