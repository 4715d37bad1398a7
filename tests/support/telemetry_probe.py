"""A session in a process that has a meter provider; prints what that recorded, as JSON.

In a process of its own, because a process has one provider for good. The provider is made by hand
from the API: that is the contract, and the SDK would be three more packages to lock.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from opentelemetry.context import Context
from opentelemetry.metrics import (
    Counter,
    Histogram,
    Meter,
    MeterProvider,
    NoOpCounter,
    NoOpHistogram,
    NoOpMeter,
    set_meter_provider,
)
from opentelemetry.util.types import Attributes

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from tests.support.agent_kit import until
from tests.support.scripted_model import ScriptedModel
from tests.support.session_kit import make_launch, open_session

RECORDED: list[tuple[str, str, float, Mapping[str, object]]] = []


class RecordingCounter(NoOpCounter):
    def __init__(self, name: str, unit: str = "", description: str = "") -> None:
        self._said = name, unit

    def add(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        RECORDED.append((*self._said, amount, dict(attributes or {})))


class RecordingHistogram(NoOpHistogram):
    def __init__(self, name: str, unit: str = "", description: str = "") -> None:
        self._said = name, unit

    def record(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        RECORDED.append((*self._said, amount, dict(attributes or {})))


class RecordingMeter(NoOpMeter):
    def create_counter(self, name: str, unit: str = "", description: str = "") -> Counter:
        return RecordingCounter(name, unit)

    def create_histogram(
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> Histogram:
        return RecordingHistogram(name, unit)


class RecordingProvider(MeterProvider):
    def get_meter(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes | None = None,
    ) -> Meter:
        return RecordingMeter(name)


async def use_the_queue(folder: Path) -> None:
    launch = make_launch(folder, '[queue]\nlater = "manual"\n', demo=False)
    async with open_session(launch, lambda _: ScriptedModel()) as kit:
        await until(lambda: _told(kit.engine.queue))
        RECORDED.clear()
        kit.submit("first", QueuedInputPriority.LATER)
        kit.submit("second", QueuedInputPriority.LATER)
        kit.submit("/queue rm 1")
        kit.engine.queue.take_leftovers(kit.engine.context_id, include_later=True)


def _told(queue: MessageQueueManager) -> bool:
    """Whether an input that comes and goes is recorded by now."""
    item = QueuedInput("probe", AgentRuntimeId("another"))
    queue.enqueue(item)
    queue.remove(item.uuid)
    return bool(RECORDED)


if __name__ == "__main__":
    set_meter_provider(RecordingProvider())
    asyncio.run(use_the_queue(Path(sys.argv[1])))
    sys.stdout.write(json.dumps(RECORDED))
