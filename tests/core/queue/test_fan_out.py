"""Each listener hears every change, in one order, whatever the others do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import QueueChangeReason, QueueChangeType, QueueEvent
from midturn_core.queue.fan_out import ListenerFanOut
from midturn_core.queue.types import QueuedInput

ENQUEUED, DRAINED = QueueChangeType.ENQUEUED, QueueChangeType.DRAINED
MAIN = AgentRuntimeId("s1", "main")


class Listener:
    def __init__(self, then: Callable[[QueueEvent], None] = lambda _: None) -> None:
        self.heard: list[str] = []
        self._then = then

    def on_event(self, event: QueueEvent) -> None:
        self.heard.append(f"{event.change_type.value} {event.input.input_text}")
        self._then(event)


def inputs(*texts: str) -> list[QueuedInput]:
    return [QueuedInput(text, MAIN) for text in texts]


def test_what_a_listener_changes_is_told_after_the_change_that_it_was_told_of() -> None:
    fan_out = ListenerFanOut()

    def drain(event: QueueEvent) -> None:
        if event.change_type is ENQUEUED:
            fan_out.tell([event.input], DRAINED)

    listeners = [Listener(drain), Listener()]
    for listener in listeners:
        fan_out.add(listener)
    fan_out.tell(inputs("a", "b"), ENQUEUED)
    expected = ["ENQUEUED a", "ENQUEUED b", "DRAINED a", "DRAINED b"]
    assert [listener.heard for listener in listeners] == [expected, expected]


def test_a_listener_that_fails_is_logged_and_keeps_nobody_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fan_out, after = ListenerFanOut(), Listener()

    def fail(_: QueueEvent) -> None:
        raise RuntimeError("a bug of the listener")

    fan_out.add(Listener(fail))
    fan_out.add(after)
    fan_out.tell(inputs("a", "b"), ENQUEUED)
    assert after.heard == ["ENQUEUED a", "ENQUEUED b"]
    assert len(caplog.records) == 2


def test_a_listener_that_takes_itself_out_hears_the_rest_of_nothing() -> None:
    fan_out = ListenerFanOut()
    once = Listener(lambda _: fan_out.remove(once))
    fan_out.add(once)
    fan_out.tell(inputs("a", "b"), QueueChangeType.REMOVED, QueueChangeReason.CLEARED)
    fan_out.remove(once)
    assert once.heard == ["REMOVED a"]
