"""The log lines, counters and turn metrics of the queue."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import UTC, datetime, timedelta

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.events import MessageQueueListener, QueueEvent
from midturn_core.queue.listeners import LoggingMessageQueueListener, LoopMessageQueueListener
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.metrics import QueueMetricsInterceptor
from midturn_core.queue.types import QueuedInput, QueueFilter

MAIN = AgentRuntimeId("s1", "main")
SUB = AgentRuntimeId("s1", "sub-1")
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def manager() -> MessageQueueManager:
    return MessageQueueManager(InMemoryMessageQueueRepository())


def test_the_event_lines_have_their_exact_form(
    manager: MessageQueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    manager.add_listener(
        LoggingMessageQueueListener(now=lambda: START + timedelta(milliseconds=3421))
    )
    manager.enqueue(QueuedInput("a", MAIN, uuid="u1", enqueued_at=START))
    manager.enqueue(QueuedInput("b", SUB, uuid="u2", source_agent_id="sub-1", enqueued_at=START))
    manager.drain_for_injection(QueueFilter(MAIN))
    manager.remove("u2")
    assert [record.getMessage() for record in caplog.records] == [
        "queue-event change=ENQUEUED uuid=u1 priority=NEXT ctx=s1/main ageMs=0 source=repl",
        "queue-event change=ENQUEUED uuid=u2 priority=NEXT ctx=s1/sub-1 ageMs=0 source=sub-1",
        "queue-event change=DRAINED  uuid=u1 priority=NEXT ctx=s1/main ageMs=3421 source=repl",
        "queue-event change=REMOVED  uuid=u2 priority=NEXT ctx=s1/sub-1 ageMs=3421 source=sub-1",
    ]
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_every_change_type_is_counted_even_without_debug_logging(
    manager: MessageQueueManager,
) -> None:
    listener = LoggingMessageQueueListener()
    manager.add_listener(listener)
    items = [QueuedInput(text, MAIN) for text in "abc"]
    for item in items:
        manager.enqueue(item)
    manager.edit(items[0].uuid, "A")
    manager.remove(items[0].uuid)
    manager.drain_for_injection(QueueFilter(MAIN))
    assert listener.get_enqueued_count() == 3
    assert listener.get_changed_count() == 1
    assert listener.get_removed_count() == 1
    assert listener.get_drained_count() == 2


def test_a_clock_that_was_set_back_shows_no_negative_age(
    manager: MessageQueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    manager.add_listener(LoggingMessageQueueListener(now=lambda: START - timedelta(hours=1)))
    manager.enqueue(QueuedInput("a", MAIN, enqueued_at=START))
    manager.drain_for_injection(QueueFilter(MAIN))
    assert "ageMs=0" in caplog.records[-1].getMessage()


async def test_events_of_any_thread_reach_the_loop_in_order(manager: MessageQueueManager) -> None:
    received: list[str] = []
    done = asyncio.Event()

    def receive(event: QueueEvent) -> None:
        received.append(event.input.input_text)
        if len(received) == 3:
            done.set()

    manager.add_listener(LoopMessageQueueListener(asyncio.get_running_loop(), receive))

    def produce() -> None:
        for text in "abc":
            manager.enqueue(QueuedInput(text, MAIN))

    await asyncio.to_thread(produce)
    async with asyncio.timeout(60):
        await done.wait()
    assert received == ["a", "b", "c"]


async def test_the_metrics_line_correlates_the_queue_with_the_turn(
    manager: MessageQueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    times = iter([10.0, 10.842])
    metrics = QueueMetricsInterceptor(manager, clock=lambda: next(times))
    for text in "ab":
        manager.enqueue(QueuedInput(text, MAIN))

    async def turn() -> str:
        manager.enqueue(QueuedInput("c", MAIN))
        manager.enqueue(QueuedInput("other", SUB))
        manager.drain_for_injection(QueueFilter(MAIN))
        return "answer"

    assert await metrics.intercept(MAIN, turn) == "answer"
    assert [record.getMessage() for record in caplog.records] == [
        "queue-metrics ctx=s1/main preDepth=2 postDepth=0 "
        "enqueuedInTurn=1 drainedInTurn=3 durationMs=842"
    ]
    assert metrics.get_executions_observed() == 1
    assert metrics.get_enqueued_during_executions() == 1
    assert metrics.get_drained_during_executions() == 3


class CountingManager(MessageQueueManager):
    """Knows how many listen."""

    listening = 0

    def add_listener(self, listener: MessageQueueListener) -> None:
        super().add_listener(listener)
        self.listening += 1

    def remove_listener(self, listener: MessageQueueListener) -> None:
        super().remove_listener(listener)
        self.listening -= 1


async def test_a_turn_that_raises_is_counted_and_leaves_no_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    manager = CountingManager(InMemoryMessageQueueRepository())
    metrics = QueueMetricsInterceptor(manager)

    async def turn() -> None:
        assert manager.listening == 1
        raise RuntimeError("model down")

    with pytest.raises(RuntimeError, match="model down"):
        await metrics.intercept(MAIN, turn)
    assert manager.listening == 0
    manager.enqueue(QueuedInput("after", MAIN))
    assert metrics.get_executions_observed() == 1
    assert metrics.get_enqueued_during_executions() == 0
    assert re.search(r"enqueuedInTurn=0 .* durationMs=\d+$", caplog.records[-1].getMessage())


async def test_turns_of_two_contexts_do_not_count_each_others_inputs(
    manager: MessageQueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    metrics = QueueMetricsInterceptor(manager)
    both_run = asyncio.Barrier(2)

    async def turn(context_id: AgentRuntimeId, count: int) -> None:
        await both_run.wait()
        for number in range(count):
            manager.enqueue(QueuedInput(str(number), context_id))
        await both_run.wait()

    async with asyncio.timeout(60):
        await asyncio.gather(
            metrics.intercept(MAIN, lambda: turn(MAIN, 2)),
            metrics.intercept(SUB, lambda: turn(SUB, 5)),
        )
    lines = sorted(record.getMessage() for record in caplog.records)
    assert "ctx=s1/main preDepth=0 postDepth=2 enqueuedInTurn=2" in lines[0]
    assert "ctx=s1/sub-1 preDepth=0 postDepth=5 enqueuedInTurn=5" in lines[1]
    assert metrics.get_enqueued_during_executions() == 7
