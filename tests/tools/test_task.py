"""Task: its input, what its call tells the main agent, and what stops it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.gate import explain
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.dispatch.slots import Slots
from midturn_core.dispatch.types import BatchOutcome, SequentialCause
from midturn_core.events import TurnEndReason
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason
from midturn_core.model.client import ModelEvent, ModelRequest
from midturn_core.model.messages import (
    JsonObject,
    JsonValue,
    Outcome,
    ToolUse,
    ToolUseResult,
    TranscriptDetail,
    Usage,
)
from midturn_core.subagent.executor import SubagentTask
from midturn_core.subagent.outcome import SubagentOutcome
from midturn_core.subagent.types import SubagentTypes
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools.edit import EditTool
from midturn_tools.read import ReadTool
from midturn_tools.task import TaskTool, told
from tests.core.dispatch.kit import CONTEXT, Bench, Latch, safe, shell, writer
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.subagent_kit import SubagentKit, nothing_left_running
from tests.support.tool_context import make_tool_context

INPUT: dict[str, JsonValue] = {
    "description": "find the plum",
    "prompt": "Which file says plum?",
    "subagent_type": "explore",
}
OUTCOME = SubagentOutcome(
    AgentRuntimeId("session", "sub-1"),
    TurnEndReason.DONE,
    "It is a.txt.",
    "It is a.txt.",
    steps=2,
    calls=("[Read: a.txt] · 1 line",),
    transcript=("[Read: a.txt] · 1 line", "It is a.txt."),
    usage=Usage(input_tokens=1200, output_tokens=34),
)


class Answers:
    """A runner of subagents that has its outcome ready."""

    def __init__(self, outcome: SubagentOutcome) -> None:
        self.outcome = outcome
        self.tasks: list[SubagentTask] = []
        self.places = Slots(3)

    async def run(self, task: SubagentTask, context: ToolContext) -> SubagentOutcome:
        self.tasks.append(task)
        return self.outcome


def task_tool(outcome: SubagentOutcome = OUTCOME) -> tuple[TaskTool, Answers]:
    runner = Answers(outcome)
    return TaskTool(SubagentTypes(), runner, time_limit=1800.0), runner


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": None}, "prompt is required: a string from 1 to"),
        ({"prompt": " \n"}, "prompt must not be blank"),
        ({"description": ""}, "description must be a string"),
        ({"description": "x" * 200}, "description must be a string"),
        ({"subagent_type": "explorer"}, 'subagent_type must be one of "general", "explore"'),
        ({"subagent": "explore"}, "unknown field subagent (did you mean subagent_type?)"),
    ],
)
def test_an_input_that_cannot_be_used_is_told_with_what_can(
    change: dict[str, JsonValue], said: str
) -> None:
    tool, _ = task_tool()
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        tool.validate({**INPUT, **change})


@pytest.mark.parametrize("together", [True, False])
def test_the_tool_as_a_whole_is_sequential_and_ended_from_outside(together: bool) -> None:
    """D25."""
    tool = TaskTool(SubagentTypes(), Answers(OUTCOME), time_limit=1800.0, together=together)
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.SEQUENTIAL
    assert tool.get_interrupt_behavior() is InterruptBehavior.EXTERNALLY_TERMINATED


def test_the_model_is_told_of_every_type() -> None:
    tool, _ = task_tool()
    tool.validate(INPUT)
    for kind in SubagentTypes():
        assert f"- {kind.name}: {kind.description}" in tool.description
    assert tool.describe({**INPUT, "description": "find\nthe  plum"}) == "explore: find the plum"


async def test_the_answer_is_the_result_and_the_rest_is_for_the_screen(tmp_path: Path) -> None:
    tool, runner = task_tool()
    result = await tool.run(INPUT, make_tool_context(tmp_path))
    assert result == ToolResult(
        "It is a.txt.",
        summary="2 steps · 1 tool · 1.2k tokens",
        detail=TranscriptDetail(OUTCOME.transcript),
    )
    [task] = runner.tasks
    assert (task.kind.name, task.prompt, task.tool_use_id) == (
        "explore",
        "Which file says plum?",
        "toolu_test",
    )


@pytest.mark.parametrize(
    ("reason", "error", "said"),
    [
        (TurnEndReason.STEP_LIMIT, "", "the subagent was stopped at its limit of 50 steps; its"),
        (TurnEndReason.FAILED, "No connection.", "the subagent failed: No connection; its task"),
        (TurnEndReason.STALLED, "", "the subagent was stopped because all its calls failed"),
        (TurnEndReason.REFUSED, "", "the model refused to go on with the subagent's task"),
    ],
)
def test_one_that_did_not_finish_is_an_error_that_keeps_what_there_was(
    reason: TurnEndReason, error: str, said: str
) -> None:
    result = told(replace(OUTCOME, reason=reason, error=error, answer=""), 50, 1800.0)
    assert result.error is not None and result.error.startswith(said)
    assert "- [Read: a.txt] · 1 line" in result.error
    assert result.error.endswith("Its last words were:\n\nIt is a.txt.")


def test_one_that_ended_without_a_word_is_an_error() -> None:
    silent = replace(OUTCOME, answer="", last_words="", calls=())
    result = told(silent, 50, 1800.0)
    assert result.error == (
        "the subagent ended without an answer; its task is not done.\n\n"
        "It had made no call.\n\nIt had said nothing."
    )


def test_its_time_limit_is_told_as_a_failure_and_an_interrupt_as_a_stop() -> None:
    cut = replace(OUTCOME, reason=TurnEndReason.INTERRUPTED, answer="")
    timed_out = told(replace(cut, cancelled_by=CancelReason.TIMEOUT), 50, 1800.0)
    assert timed_out.error is not None and "its time limit of 30 min" in timed_out.error
    stopped = told(replace(cut, cancelled_by=CancelReason.INTERRUPT), 50, 1800.0)
    assert stopped.stopped and stopped.error is None
    assert "It is a.txt." in str(stopped.output)


def test_of_many_calls_the_last_are_told() -> None:
    many = replace(
        OUTCOME,
        reason=TurnEndReason.STEP_LIMIT,
        calls=tuple(f"[Read: {number}]" for number in range(100)),
    )
    error = told(many, 50, 1800.0).error or ""
    assert "Its calls (the last 30 of 100):\n\n- [Read: 70]\n" in error


async def test_read_before_edit_holds_for_each_agent_by_itself(tmp_path: Path) -> None:
    """S1.31: what one has read the other may not edit."""
    file = tmp_path / "a.txt"
    file.write_text("plum\n", encoding="utf-8")
    main = make_tool_context(tmp_path)
    await ReadTool().run({"file_path": "a.txt"}, main)
    edit: JsonObject = {"file_path": "a.txt", "old_string": "plum", "new_string": "pear"}
    back: JsonObject = {"file_path": "a.txt", "old_string": "pear", "new_string": "fig"}
    model = ScriptedModel(
        calls(use("a", "Edit", edit)),
        calls(use("b", "Read", {"file_path": "a.txt"})),
        calls(use("c", "Edit", edit)),
        text("done"),
        calls(use("d", "Edit", back)),
        text("not done"),
    )
    kit = SubagentKit(
        model, [ReadTool(), EditTool()], workspace=tmp_path, allow_rules=["Edit(a.txt)"]
    )
    outcome = await kit.run()
    assert [" · failed" in call for call in outcome.calls] == [True, False, False]
    assert file.read_text(encoding="utf-8") == "pear\n"
    another = await kit.run()
    assert [" · failed" in call for call in another.calls] == [True]
    assert (await EditTool().run(back, main)).error is not None
    assert file.read_text(encoding="utf-8") == "pear\n"


class Stage:
    """A batch of the main agent with one ``Task``, whose subagent is inside a tool."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        model = ScriptedModel(calls(use("a", "Long")), text("The whole answer."))
        self.kit = SubagentKit(model, [shell("Long", self._long)])
        task = TaskTool(SubagentTypes(), self.kit.executor, time_limit=600.0)
        self.bench = Bench(task, writer("Next"))
        use_of_task = ToolUse("task-1", "Task", {**INPUT, "subagent_type": "general"})
        self.batch = ToolBatch(
            (use_of_task, ToolUse("next-1", "Next", {})), self.bench.registry, CONTEXT
        )

    async def _long(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        self.entered.set()
        leave = asyncio.ensure_future(self.leave.wait())
        stopped = asyncio.ensure_future(context.signal.wait())
        await asyncio.wait((leave, stopped), return_when=asyncio.FIRST_COMPLETED)
        leave.cancel()
        stopped.cancel()
        return ToolResult("some", stopped=context.signal.tripped)

    async def run(self) -> tuple[ToolUseResult, ...]:
        return (await self.bench.run_batch(self.batch)).results


async def test_a_now_does_not_cut_a_running_subagent() -> None:
    """D1: what comes after it is skipped."""
    stage = Stage()
    running = asyncio.create_task(stage.run())
    await stage.entered.wait()
    stage.bench.signals.batch.trip(CancelReason.USER_MESSAGE)
    await asyncio.sleep(0)
    stage.leave.set()
    task, after = await running
    assert (task.outcome, task.content) == (Outcome.SUCCEEDED, "The whole answer.")
    assert after.outcome is Outcome.SKIPPED


@pytest.mark.parametrize("how", ["the turn is interrupted", "the call is cancelled"])
async def test_an_interrupt_stops_it_with_all_that_it_runs(how: str) -> None:
    stage = Stage()
    running = asyncio.create_task(stage.run())
    await stage.entered.wait()
    if how == "the turn is interrupted":
        stage.bench.turn.trip(CancelReason.INTERRUPT)
    else:
        assert stage.bench.dispatcher.cancel_call("task-1")
    task, _ = await running
    assert task.outcome is Outcome.STOPPED
    assert task.content.startswith("stopped after ")
    assert "- [Long: title of ?] · stopped" in task.content
    assert stage.kit.executor.running == set()
    await nothing_left_running()


class Explorers:
    """A batch of the main agent with several ``Task`` calls, whose subagents meet in a tool.

    Every subagent calls ``Read`` as often as ``reads`` says, in one message.
    """

    def __init__(
        self,
        *types: str,
        most: int = 3,
        together: bool = True,
        reads: int = 1,
        config: ToolConcurrencyConfig | None = None,
    ) -> None:
        self.latch = Latch()
        self.model = MeetingModel(reads)
        self.kit = SubagentKit(self.model, [safe("Read", self.latch)], most=most)
        task = TaskTool(SubagentTypes(), self.kit.executor, time_limit=600.0, together=together)
        self.bench = Bench(task, safe("Read"), config=config)
        self.kit.executor.with_parallel_tool_dispatcher(self.bench.dispatcher)
        self.batch = ToolBatch(
            tuple(
                ToolUse(f"task-{number}", "Task", {**INPUT, "subagent_type": kind})
                for number, kind in enumerate(types, 1)
            ),
            self.bench.registry,
            CONTEXT,
        )

    def start(self) -> asyncio.Task[BatchOutcome]:
        return asyncio.create_task(self.bench.run_batch(self.batch))


class MeetingModel(ScriptedModel):
    """Asks for ``reads`` in the first message of each subagent, and ends with the second."""

    def __init__(self, reads: int) -> None:
        super().__init__()
        self._reads = reads

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        uses = [use(f"read-{number}", "Read") for number in range(self._reads)]
        reply = calls(*uses) if len(request.messages) == 1 else text("seen")
        async for event in ScriptedModel(reply).stream(request):
            yield event


async def test_read_only_subagents_run_together_when_that_is_allowed() -> None:
    """D35, S1.53: they meet inside their tools, and each is under the cap of the pool."""
    explorers = Explorers("explore", "explore", "explore")
    running = explorers.start()
    await explorers.latch.until_inside(3)
    assert len(explorers.kit.executor.running) == 3
    explorers.latch.open()
    outcome = await running
    assert outcome.report.verdict.parallel
    assert [result.content for result in outcome.results] == ["seen"] * 3
    assert [call.pooled for call in outcome.report.calls] == [False] * 3
    await nothing_left_running()


async def test_with_one_slot_subagents_together_do_not_starve_each_other() -> None:
    """They hold no slot of the pool, in which their own calls run one after another."""
    config = ToolConcurrencyConfig.on(1)
    explorers = Explorers("explore", "explore", "explore", reads=2, config=config)
    running = explorers.start()
    await explorers.latch.until_inside(1)
    explorers.latch.open()
    outcome = await running
    assert [result.content for result in outcome.results] == ["seen"] * 3
    assert (len(explorers.latch.entered), explorers.latch.peak) == (6, 1)


async def test_no_more_than_the_cap_run_at_once_and_a_now_skips_those_that_wait() -> None:
    explorers = Explorers("explore", "explore", "explore", most=2)
    running = explorers.start()
    await explorers.latch.until_inside(2)
    assert len(explorers.kit.executor.running) == 2
    explorers.bench.signals.batch.trip(CancelReason.USER_MESSAGE)
    await explorers.bench.until(lambda: explorers.bench.ready() == ["task-3"])
    explorers.latch.open()
    outcome = await running
    assert [result.outcome for result in outcome.results] == [
        Outcome.SUCCEEDED,
        Outcome.SUCCEEDED,
        Outcome.SKIPPED,
    ]
    assert explorers.latch.peak == 2


async def test_those_that_wait_for_a_place_get_it() -> None:
    explorers = Explorers("explore", "explore", "explore", most=1)
    running = explorers.start()
    await explorers.latch.until_inside(1)
    explorers.latch.open()
    assert [result.content for result in (await running).results] == ["seen"] * 3
    assert explorers.latch.peak == 1


@pytest.mark.parametrize(
    ("types", "together", "why"),
    [
        (
            ("explore", "general"),
            True,
            "Task (call 2) starts a subagent that may change something",
        ),
        (("explore", "explore"), False, "Task (call 1) runs alone, as subagents do: [subagents]"),
        (("explore", "no"), True, "Task (call 2) starts a subagent that may change something"),
    ],
    ids=["one may change something", "not allowed", "no such type"],
)
async def test_otherwise_they_run_one_after_another(
    types: tuple[str, ...], together: bool, why: str
) -> None:
    explorers = Explorers(*types, together=together)
    running = explorers.start()
    await explorers.latch.until_inside(1)
    explorers.latch.open()
    outcome = await running
    assert not outcome.report.verdict.parallel
    assert outcome.report.verdict.cause is SequentialCause.SEQUENTIAL_TOOL
    assert why in explain(outcome.report.verdict)
    assert explorers.latch.peak == 1


async def test_an_interrupt_stops_all_that_run_together() -> None:
    explorers = Explorers("explore", "explore", most=2)
    running = explorers.start()
    await explorers.latch.until_inside(2)
    explorers.bench.turn.trip(CancelReason.INTERRUPT)
    outcome = await running
    assert [result.outcome for result in outcome.results] == [Outcome.STOPPED] * 2
    assert explorers.latch.inside == []
    await nothing_left_running()
