"""``TelemetryMessageQueueListener``: the queue as OpenTelemetry metrics (S2.20).

Only the API of OpenTelemetry is used, which exports nothing by itself. Where its SDK is not
installed it is not even imported: that takes 30 to 50 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, assert_never

from midturn_core.queue.events import MessageQueueListener, QueueChangeType, QueueEvent
from midturn_core.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

ENQUEUED = "midturn.queue.enqueued"
DRAINED = "midturn.queue.drained"
REMOVED = "midturn.queue.removed"
AGE_ON_DRAIN = "midturn.queue.age_on_drain"
AGE_BOUNDS = (0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Seconds. What waits for a person or a model waits longer than the SDK's own bounds expect."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class TelemetryMessageQueueListener:
    """Counts what enters and leaves, and how old it was (in seconds) when it was delivered.

    Args:
        now: the wall clock that ages are measured with; the default is the system's.
    """

    def __init__(self, meter: Meter, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now
        unit = "{input}"
        self._enqueued = meter.create_counter(ENQUEUED, unit, "Inputs that entered the queue")
        self._drained = meter.create_counter(DRAINED, unit, "Inputs taken out for delivery")
        self._removed = meter.create_counter(REMOVED, unit, "Inputs that left without delivery")
        self._age = meter.create_histogram(
            AGE_ON_DRAIN,
            "s",
            "How long inputs waited until they were taken out for delivery",
            explicit_bucket_boundaries_advisory=AGE_BOUNDS,
        )

    def on_event(self, event: QueueEvent) -> None:
        tier = {"priority": event.input.priority.name}
        match event.change_type:
            case QueueChangeType.ENQUEUED:
                self._enqueued.add(1, tier)
            case QueueChangeType.DRAINED:
                self._drained.add(1, tier)
                age = (self._now() - event.input.enqueued_at).total_seconds()
                # A clock that was set back must not show a negative age.
                self._age.record(max(age, 0.0), tier)
            case QueueChangeType.REMOVED:
                reason = event.reason.value if event.reason is not None else ""
                self._removed.add(1, {**tier, "reason": reason})
            case QueueChangeType.CHANGED:
                pass
            case _:
                assert_never(event.change_type)


def sdk_is_installed() -> bool:
    """Whether anything that is measured can go anywhere. Takes less than a millisecond."""
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ImportError:
        return False


def configured_listener() -> MessageQueueListener:
    """A listener that reports to the meter provider of this process.

    Slow: it imports OpenTelemetry. For where ``sdk_is_installed``, and not on the loop's thread.
    """
    from opentelemetry.metrics import get_meter

    return TelemetryMessageQueueListener(get_meter("midturn", VERSION))
