"""A subagent from its task to its one outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.errors import OfflineError
from midturn_core.events import (
    AskRequested,
    CallPhase,
    InputsDelivered,
    SubagentEvent,
    TextDelta,
    ToolPhaseChanged,
    ToolResultReady,
    ToolUseStartedEarly,
    TurnEndReason,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason
from midturn_core.model.client import RequestCounted
from midturn_core.model.messages import JsonObject, Outcome, ToolUseResult, Usage, UserMessage
from midturn_core.permission.ask import AskAnswer
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from midturn_core.subagent.types import EXPLORE, GENERAL
from midturn_core.subagent.watch import SubagentWatch
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import Body, Latch, ProbeTool, safe, shell, writer
from tests.support.agent_kit import until
from tests.support.scripted_model import USAGE, ScriptedModel, Step, calls, text, use
from tests.support.subagent_kit import MAIN, SESSION, SubagentKit, nothing_left_running

SUB = AgentRuntimeId(SESSION, "sub-1")


async def test_the_last_text_alone_comes_back() -> None:
    model = ScriptedModel(
        [*text("I look first.")[:-1], *calls(use("a", "Look"))], text("Nothing more.")
    )
    kit = SubagentKit(model, [safe("Look")])
    outcome = await kit.run(prompt="look around")
    assert (outcome.reason, outcome.answer) == (TurnEndReason.DONE, "Nothing more.")
    assert (outcome.steps, outcome.calls) == (2, ("[Look: title of ?]",))
    assert outcome.transcript == ("I look first.", "[Look: title of ?]", "Nothing more.")
    first = model.requests[0]
    assert (first.model, first.system) == ("session-model", "general False")
    assert "look around" in str(first.messages)
    await nothing_left_running()


async def test_it_has_the_tools_of_its_type_and_never_task() -> None:
    tools = [safe("Read"), safe("Grep"), writer("Edit"), shell("Task")]
    kit = SubagentKit(ScriptedModel(text("a"), text("b")), tools)
    await kit.run(EXPLORE)
    await kit.run(GENERAL)
    offered = [[tool.name for tool in request.tools] for request in kit.model.requests]
    assert offered == [["Read", "Grep"], ["Read", "Grep", "Edit"]]


async def test_a_call_of_a_tool_that_it_does_not_have_never_runs() -> None:
    ran: list[str] = []

    async def start_another(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        ran.append(context.tool_use_id)
        return ToolResult("started")

    model = ScriptedModel(calls(use("a", "Task")), text("I cannot."))
    kit = SubagentKit(model, [safe("Read"), shell("Task", start_another)])
    await kit.run()
    [result] = _results(kit, 1)
    assert result.content.startswith("Error: there is no tool named Task")
    assert ran == []


async def test_its_type_names_its_model_and_its_limit_of_steps() -> None:
    kind = replace(GENERAL, model="small-model", max_steps=2)
    model = ScriptedModel(calls(use("a", "Look")), calls(use("b", "Look")), text("never"))
    kit = SubagentKit(model, [safe("Look")])
    outcome = await kit.run(kind)
    assert outcome.reason is TurnEndReason.STEP_LIMIT
    assert (len(outcome.calls), outcome.answer) == (2, "")
    assert {request.model for request in kit.model.requests} == {"small-model"}
    assert kit.settings.name == "session-model"


async def test_every_event_of_its_turn_is_wrapped_and_named() -> None:
    kit = SubagentKit(ScriptedModel(calls(use("a", "Look")), text("done")), [safe("Look")])
    await kit.run()
    wrapped = [event for event in kit.events if isinstance(event, SubagentEvent)]
    assert wrapped == kit.events
    assert {(event.context_id, event.tool_use_id) for event in wrapped} == {(SUB, "task-1")}
    assert kit.notes == ["1 tool · Look: title of ?"]


async def test_tool_use_ids_of_two_subagents_differ_where_the_service_counts_from_one() -> None:
    replies = [calls(use("call_1", "Look")), text("done")] * 2
    kit = SubagentKit(ScriptedModel(*replies), [safe("Look")])
    await kit.run()
    await kit.run()
    assert [_results(kit, number)[0].tool_use_id for number in (1, 3)] == [
        "sub-1-call_1",
        "sub-2-call_1",
    ]


async def test_what_it_spends_is_told_also_when_it_fails() -> None:
    begun = Usage(50, 1)
    broken: list[Step] = [RequestCounted(begun), OfflineError("No connection.")]
    model = ScriptedModel(calls(use("a", "Look")), broken)
    kit = SubagentKit(model, [safe("Look")])
    outcome = await kit.run()
    assert (outcome.reason, outcome.error) == (TurnEndReason.FAILED, "No connection.")
    assert kit.spent == outcome.usage == USAGE + begun
    await nothing_left_running()


async def test_with_a_dispatcher_its_calls_may_start_early_under_their_ids_in_the_history() -> None:
    config = ToolConcurrencyConfig(enabled=True, mixed="segments", start="streaming")
    dispatcher = DefaultParallelToolDispatcher(config)
    latch, rest = Latch(), asyncio.Event()
    *message, end = calls(use("call_1", "Look"))
    model = ScriptedModel([*message, rest, end], text("done"))
    kit = SubagentKit(model, [safe("Look", latch)])
    kit.executor.with_parallel_tool_dispatcher(dispatcher)
    running = kit.start()
    await latch.until_inside(1)
    [early] = kit.inner(ToolUseStartedEarly)
    assert early.tool_use_id == "sub-1-call_1"
    latch.open()
    rest.set()
    await running
    assert latch.entered == ["sub-1-call_1"]
    await dispatcher.close()
    await nothing_left_running()


async def test_its_queue_is_its_own() -> None:
    """S2.2, S2.15: neither takes what is meant for the other."""
    latch = Latch()
    model = ScriptedModel(calls(use("a", "Hold")), text("done"))
    kit = SubagentKit(model, [safe("Hold", latch)])
    running = kit.start()
    await latch.until_inside(1)
    for_main = QueuedInput("for the main agent", MAIN, QueuedInputPriority.NOW)
    kit.queue.enqueue(for_main)
    kit.queue.enqueue(QueuedInput("for the subagent", SUB))
    latch.open()
    await running
    [delivered] = kit.inner(InputsDelivered)
    assert [item.input_text for item in delivered.inputs] == ["for the subagent"]
    assert kit.queue.snapshot() == [for_main]
    metrics = kit.executor.metrics
    assert metrics.get_executions_observed() == 1
    assert metrics.get_enqueued_during_executions() == 1
    assert metrics.get_drained_during_executions() == 1


async def test_a_question_names_the_subagent_and_the_answer_holds_for_the_session() -> None:
    model = ScriptedModel(
        calls(use("a", "mcp__x__y")), text("one"), calls(use("b", "mcp__x__y")), text("two")
    )
    kit = SubagentKit(model, [shell("mcp__x__y")])
    kit.person.says(AskAnswer.SESSION)
    await kit.run()
    await kit.run()
    [ask] = kit.person.asked
    assert (ask.title.split(":")[0], ask.context_id) == ("general", SUB)
    assert [event.ask for event in kit.events if isinstance(event, AskRequested)] == [ask]
    assert [_results(kit, number)[0].is_error for number in (1, 3)] == [False, False]


async def test_a_declined_call_is_an_error_for_the_subagent_alone() -> None:
    kit = SubagentKit(
        ScriptedModel(calls(use("a", "mcp__x__y")), text("It was declined.")), [shell("mcp__x__y")]
    )
    kit.person.says(AskAnswer.NO)
    outcome = await kit.run()
    assert (outcome.reason, outcome.answer) == (TurnEndReason.DONE, "It was declined.")
    assert outcome.calls == ("[mcp__x__y: title of ?] · denied",)


async def test_an_interrupt_before_it_starts_asks_no_model() -> None:
    kit = SubagentKit(ScriptedModel())
    kit.call.trip(CancelReason.INTERRUPT)
    outcome = await kit.run()
    assert (outcome.reason, outcome.cancelled_by) == (
        TurnEndReason.INTERRUPTED,
        CancelReason.INTERRUPT,
    )
    assert kit.model.requests == []
    await nothing_left_running()


async def test_an_interrupt_cuts_its_stream_and_keeps_what_it_had_said() -> None:
    said = asyncio.Event()
    first = text("So far this.")
    kit = SubagentKit(ScriptedModel([*first[:2], said, *first[2:]]))
    running = kit.start()
    await until(lambda: len(kit.inner(TextDelta)) == 2)
    kit.call.trip(CancelReason.INTERRUPT)
    outcome = await running
    assert outcome.reason is TurnEndReason.INTERRUPTED
    assert outcome.last_words == "So far this."
    await nothing_left_running()


@pytest.mark.parametrize("make", [safe, shell], ids=["cooperative", "with a child"])
async def test_an_interrupt_stops_the_tool_that_runs(
    make: Callable[[str, Body], ProbeTool],
) -> None:
    entered = asyncio.Event()

    async def obey(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        entered.set()
        await context.signal.wait()
        return ToolResult("half of it", stopped=True)

    kit = SubagentKit(
        ScriptedModel(calls(use("a", "Long"), use("b", "Long")), text("never")),
        [make("Long", obey)],
    )
    running = kit.start()
    await entered.wait()
    kit.call.trip(CancelReason.INTERRUPT)
    outcome = await running
    assert outcome.reason is TurnEndReason.INTERRUPTED
    assert outcome.calls == (
        "[Long: title of ?] · stopped",
        "[Long: title of ?] · skipped",
    )
    assert len(kit.model.requests) == 1
    await nothing_left_running()


async def test_a_tool_that_does_not_obey_is_left_behind_within_the_limits_of_the_call() -> None:
    entered = asyncio.Event()

    async def ignore(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    kit = SubagentKit(ScriptedModel(calls(use("a", "Deaf"))), [shell("Deaf", ignore)])
    running = kit.start()
    await entered.wait()
    kit.call.trip(CancelReason.INTERRUPT)
    outcome = await running
    assert outcome.calls == ("[Deaf: title of ?] · stopped",)
    await nothing_left_running()


async def test_an_interrupt_takes_its_question_back() -> None:
    kit = SubagentKit(ScriptedModel(calls(use("a", "mcp__x__y"))), [shell("mcp__x__y")])
    running = kit.start()
    await kit.person.being_asked.wait()
    kit.call.trip(CancelReason.INTERRUPT)
    outcome = await running
    assert outcome.calls == ("[mcp__x__y: title of ?] · skipped",)
    assert kit.person.withdrawn == kit.person.asked
    await nothing_left_running()


async def test_a_cancelled_run_stops_its_batch_and_raises() -> None:
    latch = Latch()
    kit = SubagentKit(ScriptedModel(calls(use("a", "Hold"))), [safe("Hold", latch)])
    running = kit.start()
    await latch.until_inside(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert latch.inside == []
    assert kit.executor.running == set()
    await nothing_left_running()


async def test_its_time_limit_stops_it() -> None:
    latch = Latch()
    kit = SubagentKit(
        ScriptedModel(calls(use("a", "Hold"))), [shell("Hold", latch)], time_limit=0.01
    )
    outcome = await kit.run()
    assert (outcome.reason, outcome.cancelled_by) == (
        TurnEndReason.INTERRUPTED,
        CancelReason.TIMEOUT,
    )
    await nothing_left_running()


async def test_the_time_in_which_a_person_is_asked_does_not_count() -> None:
    """D22."""
    clock = RecordedClock()
    watch = SubagentWatch((SUB, "task-1"), ignored, ignored, clock, ignored)
    for tool_use_id, phase in (
        ("a", CallPhase.WAITING),
        ("a", CallPhase.ASKING),
        ("b", CallPhase.ASKING),
        ("a", CallPhase.WAITING),
        ("a", CallPhase.RUNNING),
    ):
        watch.take(ToolPhaseChanged(tool_use_id, phase))
    skipped = ToolUseResult("b", "Look", Outcome.SKIPPED, "skipped: the user sent a message")
    watch.take(ToolResultReady("batch-1", 1, skipped))
    assert clock.course == ["pause", "pause", "resume", "resume"]


@pytest.mark.parametrize(
    ("config", "together"),
    [(None, 1), (ToolConcurrencyConfig.on(4), 3), (ToolConcurrencyConfig.off(), 1)],
    ids=["unset", "a dispatcher", "a dispatcher that is switched off"],
)
async def test_its_calls_run_one_after_another_unless_it_is_given_a_dispatcher(
    config: ToolConcurrencyConfig | None, together: int
) -> None:
    """S1.10, S1.11."""
    dispatcher = DefaultParallelToolDispatcher(config) if config is not None else None
    latch = Latch()
    uses = [use(name, "Hold") for name in ("a", "b", "c")]
    kit = SubagentKit(ScriptedModel(calls(*uses), text("done")), [safe("Hold", latch)])
    assert kit.executor.with_parallel_tool_dispatcher(dispatcher) is kit.executor
    running = kit.start()
    await latch.until_inside(together)
    latch.open()
    outcome = await running
    assert latch.peak == together
    assert len(outcome.calls) == 3
    assert kit.model.requests[0].system == f"general {dispatcher is not None}"
    if dispatcher is not None:
        assert not dispatcher.closed
        await dispatcher.close()


async def test_many_subagents_one_after_another_leave_no_worker_behind() -> None:
    """S1.49."""
    before = set(threading.enumerate())
    workers: set[str] = set()

    async def look(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        workers.add(await context.run_blocking(lambda: threading.current_thread().name))
        return ToolResult("seen")

    replies = [calls(use("a", "Look")), text("done")] * 20
    kit = SubagentKit(ScriptedModel(*replies), [safe("Look", look)])
    for _ in range(20):
        await kit.run()
    assert workers == {"tool-io-worker"}
    await until(lambda: set(threading.enumerate()) <= before)


async def test_it_counts_as_running_until_it_has_ended() -> None:
    latch = Latch()
    kit = SubagentKit(
        ScriptedModel(calls(use("a", "Hold")), text("done")), [safe("Hold", latch)], most=2
    )
    running = kit.start()
    await latch.until_inside(1)
    assert kit.executor.running == {SUB}
    latch.open()
    await running
    assert kit.executor.running == set()
    assert kit.executor.places.limit == 2


class RecordedClock:
    def __init__(self) -> None:
        self.course: list[str] = []

    def pause(self) -> None:
        self.course.append("pause")

    def resume(self) -> None:
        self.course.append("resume")


def ignored(_: object) -> None:
    pass


def _results(kit: SubagentKit, request: int) -> list[ToolUseResult]:
    last = kit.model.requests[request].messages[-1]
    assert isinstance(last, UserMessage)
    return [block for block in last.blocks if isinstance(block, ToolUseResult)]
