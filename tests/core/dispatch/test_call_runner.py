"""The stages of one call: validate, permission, tool; and the words of its result."""

from __future__ import annotations

import pytest

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.events import ToolUseStarted
from midturn_core.model.messages import JsonObject, Outcome, TodoDetail, ToolUse, ToolUseResult
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import CONTEXT, Bench, Body, ProbeTool, contents, outcomes, safe


def returns(result: ToolResult) -> Body:
    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        return result

    return body


async def result_of(bench: Bench, use: ToolUse) -> ToolUseResult:
    return (await bench.run_batch(ToolBatch((use,), bench.registry, CONTEXT))).results[0]


async def test_an_unknown_tool_is_an_error_that_names_those_that_exist() -> None:
    bench = Bench(safe("Read"), safe("Grep"))
    result = await result_of(bench, ToolUse("call-0", "Reed"))
    assert result.content == "Error: there is no tool named Reed; the tools are: Read, Grep"
    assert bench.of(ToolUseStarted)[0].title == ""


async def test_an_invalid_input_is_an_error_that_says_what_is_allowed() -> None:
    bench = Bench(safe("Read"))
    result = await result_of(bench, ToolUse("call-0", "Read", {"bad": 1}))
    assert result.content == (
        "Error: invalid input for Read: 'bad' is not allowed; allowed: nothing"
    )
    assert result.outcome is Outcome.FAILED
    assert bench.of(ToolUseStarted)[0].title == ""


async def test_unreadable_json_is_answered_without_running_the_tool() -> None:
    bench = Bench(safe("Read"))
    result = await result_of(bench, ToolUse("call-0", "Read", input_error="cut at column 7"))
    assert result.is_error
    assert "not readable JSON (cut at column 7)" in result.content
    assert bench.phases("call-0") == ["waiting"]


async def test_permission_is_asked_after_validation_and_before_the_tool() -> None:
    asked: list[str] = []

    async def refuse(pending: PendingCall) -> ToolUseResult | None:
        asked.append(pending.call.tool_use.id)
        return denied(pending.call.tool_use, "the user said no")

    bench = Bench(safe("Read"), authorize=refuse)
    batch = ToolBatch(
        (ToolUse("call-0", "Read"), ToolUse("call-1", "Read", {"bad": 1})), bench.registry, CONTEXT
    )
    outcome = await bench.run_batch(batch)
    assert asked == ["call-0"]
    assert outcomes(outcome) == ["denied", "failed"]
    assert contents(outcome)[0] == "Error: the user said no"


async def test_the_tool_gets_what_was_permitted() -> None:
    seen: list[ToolContext] = []

    async def look(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        seen.append(context)
        return ToolResult()

    bench = Bench(safe("Read", look))
    await bench.run("Read")
    assert seen[0].tool_use_id == "call-0"
    assert seen[0].read_files is bench.reads
    assert tuple(seen[0].accesses) == ()


@pytest.mark.parametrize(
    ("result", "outcome", "content"),
    [
        (ToolResult("text"), Outcome.SUCCEEDED, "text"),
        (ToolResult(None), Outcome.SUCCEEDED, ""),
        (ToolResult("ignored", error="File not found"), Outcome.FAILED, "Error: File not found"),
    ],
)
async def test_a_tools_answer_becomes_the_models_text(
    result: ToolResult, outcome: Outcome, content: str
) -> None:
    bench = Bench(safe("Read", returns(result)))
    answered = await result_of(bench, ToolUse("call-0", "Read"))
    assert (answered.outcome, answered.content) == (outcome, content)


async def test_summary_and_detail_are_for_the_screen() -> None:
    detail = TodoDetail(())
    bench = Bench(safe("Read", returns(ToolResult("x", summary="12 lines", detail=detail))))
    answered = await result_of(bench, ToolUse("call-0", "Read"))
    assert (answered.summary, answered.detail) == ("12 lines", detail)


async def test_a_tool_that_stopped_by_itself_says_how_long_it_ran() -> None:
    bench = Bench(safe("Read", returns(ToolResult("a part", stopped=True))))
    answered = await result_of(bench, ToolUse("call-0", "Read"))
    assert answered.outcome is Outcome.STOPPED
    assert answered.content == "stopped after 0.0 s; the result may be incomplete\n\na part"


async def test_before_the_slot_there_is_no_worker() -> None:
    class Peeking(ProbeTool):
        def access(self, tool_input: JsonObject, context: ToolContext) -> tuple[()]:
            self.context = context
            return ()

    tool = Peeking("Read")

    async def block(pending: PendingCall) -> ToolUseResult | None:
        await tool.context.run_blocking(lambda: None)
        return None

    result = await result_of(Bench(tool, authorize=block), ToolUse("call-0", "Read"))
    assert "blocking work belongs into run" in result.content
