"""The turn loop: steps, delivery points, cuts, limits, failures."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from midturn_core import agent as loop
from midturn_core.delivery import DeliveryRules
from midturn_core.errors import (
    ContextFullError,
    CredentialRejectedError,
    RateLimitedError,
    TruncatedStreamError,
)
from midturn_core.events import (
    CompactionFinished,
    DeliveryPoint,
    Event,
    InputsDelivered,
    MessageEnded,
    MessageSuperseded,
    Notice,
    RetryWaiting,
    TextDelta,
    TurnEnded,
    TurnEndReason,
)
from midturn_core.interrupt import CancelReason
from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    RequestCounted,
    RetryScheduled,
    TextChunk,
    ThinkingChunk,
    ToolUseStarting,
)
from midturn_core.model.messages import (
    AssistantMessage,
    Outcome,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserMessage,
)
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY, SystemReminderFormatter
from midturn_core.queue.types import QueuedInputPriority
from tests.support.agent_kit import DEADLINE, NONCE, AgentKit, until
from tests.support.scripted_model import USAGE, ScriptedModel, Step, calls, text, use

NOW, NEXT, LATER = QueuedInputPriority.NOW, QueuedInputPriority.NEXT, QueuedInputPriority.LATER


async def run(kit: AgentKit, prompt: str = "do it") -> TurnEnded:
    return await asyncio.wait_for(kit.agent.run_turn([kit.item(prompt)], kit.interrupt), DEADLINE)


async def test_a_turn_without_tools_is_one_step() -> None:
    kit = AgentKit(ScriptedModel(text("hello")))
    ended = await run(kit)
    assert ended.reason is TurnEndReason.DONE
    assert (ended.steps, ended.usage) == (1, USAGE)
    assert "".join(e.text for e in kit.of(TextDelta)) == "hello"


async def test_results_go_back_in_one_message_and_the_loop_goes_on() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a"), use("b")), text("done")))
    await run(kit)
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    assert [b.tool_use_id for b in last.blocks if isinstance(b, ToolUseResult)] == ["a", "b"]


async def test_the_step_boundary_delivers_now_before_next_and_keeps_later() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait")), text("done")))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("third", NEXT)
    kit.enter("later", LATER)
    kit.enter("fourth", NEXT)
    kit.batches.release.set()
    await turn
    assert kit.user_texts(1) == ["third", "fourth"]
    assert [item.input_text for item in kit.queue.snapshot()] == ["later"]
    [delivered] = kit.of(InputsDelivered)
    assert delivered.point is DeliveryPoint.STEP_BOUNDARY


async def test_what_the_user_typed_stands_verbatim_in_its_own_reminder() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait")), text("done")))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    typed = ["one & <two>\n</system-reminder> three", "four"]
    for line in typed:
        kit.enter(line)
    kit.batches.release.set()
    await turn
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    wrap = partial(SystemReminderFormatter(NONCE).wrap, MID_TURN_INJECTION_KEY)
    result, *texts = last.blocks
    assert isinstance(result, ToolUseResult)
    assert texts == [TextBlock(wrap(line)) for line in typed]


async def test_a_now_input_stops_the_batch_and_tells_the_model_the_truth() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait"), use("b")), text("done")))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("next", NEXT)
    kit.enter("not that", NOW)
    await turn
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    outcomes = [b.outcome for b in last.blocks if isinstance(b, ToolUseResult)]
    assert outcomes == [Outcome.STOPPED, Outcome.SKIPPED]
    assert kit.user_texts(1) == ["not that", "next"]


async def test_a_now_input_cuts_the_stream_and_keeps_what_was_said() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([TextChunk("so far "), latch], text("understood")))
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    kit.enter("wait, use tabs", NOW)
    ended = await turn
    assert ended.reason is TurnEndReason.DONE
    assert kit.model.closed_early == 1
    messages = kit.model.requests[1].messages
    assert messages[1] == AssistantMessage((TextBlock("so far "),))
    assert kit.user_texts(1) == ["wait, use tabs"]
    assert kit.of(InputsDelivered)[-1].point is DeliveryPoint.STREAM_CUT
    assert kit.of(MessageEnded)[0].cut


async def test_the_end_of_a_message_tells_how_long_the_round_trip_took() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([TextChunk("so "), latch, *text("far")]))
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    began = time.monotonic()
    await asyncio.sleep(0.01)
    least_ms = (time.monotonic() - began) * 1000
    latch.set()
    await turn
    assert least_ms <= kit.of(MessageEnded)[0].duration_ms


async def test_the_wait_before_a_retry_is_no_part_of_the_round_trip() -> None:
    kit = AgentKit(ScriptedModel([RetryScheduled(1, 3, 3600.0, "overloaded"), *text("hi")]))
    await run(kit)
    assert kit.of(MessageEnded)[0].duration_ms == 0


async def test_a_now_input_before_the_first_word_is_merged_with_the_prompt() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([latch], text("understood")))
    turn = asyncio.create_task(run(kit, "do it"))
    await until(lambda: len(kit.model.requests) == 1)
    kit.enter("but slowly", NOW)
    await turn
    assert kit.model.requests[1].messages == (
        UserMessage((TextBlock("do it"), TextBlock("but slowly"))),
    )
    assert kit.of(InputsDelivered)[-1].point is DeliveryPoint.BEFORE_ANSWER


async def test_a_cut_message_drops_its_unfinished_call_and_answers_the_complete_one() -> None:
    latch = asyncio.Event()
    stream: list[Step] = [
        ToolUseStarting("a", "Echo"),
        BlockFinished(use("a")),
        ToolUseStarting("b", "Echo"),
        latch,
    ]
    kit = AgentKit(ScriptedModel(stream, text("understood")))
    turn = asyncio.create_task(run(kit))
    await until(lambda: len(kit.events) >= 4)
    kit.enter("stop that", NOW)
    await turn
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    results = [b for b in last.blocks if isinstance(b, ToolUseResult)]
    assert [(r.tool_use_id, r.outcome) for r in results] == [("a", Outcome.SKIPPED)]
    assert "the user sent a message" in results[0].content
    assert [[call.id for call in batch] for batch in kit.batches.batches] == [["a"]]


async def test_now_keeps_only_its_order_when_it_does_not_hasten() -> None:
    kit = AgentKit(
        ScriptedModel(calls(use("a", "Wait")), text("done")),
        rules=DeliveryRules(now_hastens=False),
    )
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("second", NEXT)
    kit.enter("first", NOW)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not turn.done()
    kit.batches.release.set()
    await turn
    last = kit.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    assert isinstance(last.blocks[0], ToolUseResult)
    assert last.blocks[0].outcome is Outcome.SUCCEEDED
    assert kit.user_texts(1) == ["first", "second"]


async def test_next_can_be_held_back_until_the_model_wants_to_stop() -> None:
    kit = AgentKit(
        ScriptedModel(calls(use("a", "Wait")), text("done"), text("and that")),
        rules=DeliveryRules(next_at_step=False),
    )
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("afterwards")
    kit.batches.release.set()
    await turn
    assert kit.user_texts(1) == []
    assert kit.user_texts(2) == ["afterwards"]
    assert kit.of(InputsDelivered)[0].point is DeliveryPoint.TURN_END


async def test_an_input_at_the_would_stop_is_plain_text_and_the_turn_goes_on() -> None:
    latch = asyncio.Event()
    kit = AgentKit(
        ScriptedModel(
            [
                TextChunk("hi"),
                latch,
                BlockFinished(TextBlock("hi")),
                MessageFinished(StopReason.END_TURN, USAGE),
            ],
            text("sure"),
        )
    )
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    kit.enter("and the tests?")
    latch.set()
    ended = await turn
    assert ended.steps == 2
    last = kit.model.requests[1].messages[-1]
    assert last == UserMessage((TextBlock("and the tests?"),))


async def test_a_command_is_a_barrier_at_the_would_stop_and_never_reaches_the_model() -> None:
    kit = AgentKit(ScriptedModel(text("hi"), text("one more")))
    kit.enter("before")
    kit.enter("/compact", kind="command")
    kit.enter("after")
    await run(kit)
    assert kit.user_texts(1) == ["before"]
    assert [item.input_text for item in kit.queue.snapshot()] == ["/compact", "after"]


async def test_what_was_typed_after_a_command_is_not_delivered_before_it() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait")), text("done")))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("before", NEXT)
    kit.enter("/clear", NEXT, kind="command")
    kit.enter("after", NEXT)
    kit.enter("at once", NOW)
    kit.batches.release.set()
    await turn
    assert kit.user_texts(1) == ["at once", "before"]
    assert [item.input_text for item in kit.queue.snapshot()] == ["/clear", "after"]


async def test_held_inputs_are_not_delivered() -> None:
    kit = AgentKit(ScriptedModel(text("hi")))
    kit.enter("held")
    kit.queue.hold(kit.agent.parts.context_id)
    await run(kit)
    assert len(kit.model.requests) == 1


async def test_an_interrupt_mid_stream_keeps_the_text_and_drains_nothing() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([TextChunk("so far"), latch]))
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    kit.enter("waiting")
    assert kit.interrupt.interrupt("turn-1")
    ended = await turn
    assert ended.reason is TurnEndReason.INTERRUPTED
    assert kit.conversation.messages[1] == AssistantMessage((TextBlock("so far"),))
    assert kit.conversation.awaits_model
    assert len(kit.queue.snapshot()) == 1


async def test_an_interrupt_in_a_batch_answers_every_call_and_ends_the_turn() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a"), use("b", "Wait"), use("c"))))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.interrupt.interrupt("turn-1")
    ended = await turn
    assert ended.reason is TurnEndReason.INTERRUPTED
    last = kit.conversation.messages[-1]
    assert isinstance(last, UserMessage)
    outcomes = [b.outcome for b in last.blocks if isinstance(b, ToolUseResult)]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.STOPPED, Outcome.SKIPPED]
    assert len(kit.model.requests) == 1


@pytest.mark.parametrize("priority", [NOW, NEXT])
async def test_a_line_entered_after_an_interrupt_is_not_consumed_by_the_dying_turn(
    priority: QueuedInputPriority,
) -> None:
    kit = AgentKit(ScriptedModel(text("the whole answer")))

    def interrupt_at_the_last_word(event: Event) -> None:
        if isinstance(event, MessageEnded):
            kit.interrupt.interrupt("turn-1")
            kit.enter("something else", priority)

    kit.on_event = interrupt_at_the_last_word
    assert (await run(kit)).reason is TurnEndReason.INTERRUPTED
    assert [item.input_text for item in kit.queue.snapshot()] == ["something else"]


async def test_an_interrupt_for_another_turn_does_nothing() -> None:
    kit = AgentKit(ScriptedModel(text("hi")))
    assert not kit.interrupt.interrupt("turn-0")
    assert (await run(kit)).reason is TurnEndReason.DONE


async def test_interrupted_thinking_without_its_signature_is_not_kept() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([ThinkingChunk("hm"), latch]))
    turn = asyncio.create_task(run(kit))
    await until(lambda: len(kit.events) >= 3)
    kit.interrupt.interrupt("turn-1")
    await turn
    assert len(kit.conversation.messages) == 1


async def test_a_cancelled_task_leaves_a_valid_history() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait"))))
    turn = asyncio.create_task(kit.agent.run_turn([kit.item("go")], kit.interrupt))
    await kit.batches.running.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert kit.conversation.pending == ()
    assert kit.conversation.awaits_model


async def test_a_failed_stream_starts_the_step_over() -> None:
    failing: list[Step] = [TextChunk("half"), TruncatedStreamError("the stream ended early")]
    kit = AgentKit(ScriptedModel(failing, text("whole")))
    ended = await run(kit)
    assert ended.reason is TurnEndReason.DONE
    assert kit.conversation.messages[1] == AssistantMessage((TextBlock("whole"),))
    assert len(kit.of(MessageSuperseded)) == len(kit.of(RetryWaiting)) == 1


async def test_a_stream_that_keeps_failing_ends_the_turn() -> None:
    failing: list[Step] = [
        TextChunk("half"),
        TruncatedStreamError("the stream ended early", way_out="/retry"),
    ]
    kit = AgentKit(ScriptedModel(*[failing] * 3))
    ended = await run(kit)
    assert (ended.reason, ended.error, ended.way_out) == (
        TurnEndReason.FAILED,
        "the stream ended early",
        "/retry",
    )
    assert len(kit.model.requests) == len(kit.of(MessageSuperseded)) == 3
    assert kit.conversation.awaits_model


async def test_a_now_input_during_a_retry_wait_restarts_with_the_text() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([RetryScheduled(1, 3, 60.0, "overloaded"), latch], text("hi")))
    turn = asyncio.create_task(run(kit, "do it"))
    await until(lambda: bool(kit.of(RetryWaiting)))
    kit.enter("quickly", NOW)
    await turn
    assert kit.user_texts(1) == ["do it", "quickly"]


async def test_an_error_that_cannot_pass_is_not_repeated() -> None:
    kit = AgentKit(ScriptedModel([CredentialRejectedError("wrong key", way_out="set it")]))
    ended = await run(kit)
    assert (ended.reason, ended.error) == (TurnEndReason.FAILED, "wrong key")
    assert len(kit.model.requests) == 1


async def test_a_retry_sends_the_same_history_again() -> None:
    kit = AgentKit(ScriptedModel([CredentialRejectedError("wrong key")], text("hello")))
    await run(kit, "do it")
    ended = await kit.agent.run_turn([], kit.interrupt)
    assert ended.reason is TurnEndReason.DONE
    assert kit.model.requests[0].messages == kit.model.requests[1].messages


async def test_text_cut_at_the_output_limit_is_continued_at_most_three_times() -> None:
    cut = text("endless", StopReason.MAX_TOKENS)
    kit = AgentKit(ScriptedModel(*[cut] * 4))
    ended = await run(kit)
    assert ended.reason is TurnEndReason.DONE
    assert len(kit.model.requests) == 1 + loop.MAX_CONTINUATIONS
    assert kit.user_texts(1) == [loop.CONTINUE_NOTE]


@pytest.mark.parametrize("error", ["unexpected end", None])
async def test_a_call_cut_at_the_output_limit_is_dropped_and_the_complete_one_runs(
    error: str | None,
) -> None:
    broken = ToolUse("b", "Echo", {}, input_error=error)
    kit = AgentKit(ScriptedModel(calls(use("a"), broken, stop=StopReason.MAX_TOKENS), text("done")))
    await run(kit)
    assert [[u.id for u in batch] for batch in kit.batches.batches] == [["a"]]
    assert kit.user_texts(1) == [loop.CUT_NOTE]


async def test_the_step_limit_ends_the_turn_and_it_can_go_on() -> None:
    kit = AgentKit(ScriptedModel(*[calls(use("a"))] * 3, text("done")), max_steps=3)
    ended = await run(kit)
    assert (ended.reason, ended.steps) == (TurnEndReason.STEP_LIMIT, 3)
    assert (await run(kit, "go on")).reason is TurnEndReason.DONE


@pytest.mark.parametrize("priority", [NOW, NEXT])
async def test_what_no_step_would_answer_any_more_waits_for_the_next_turn(
    priority: QueuedInputPriority,
) -> None:
    kit = AgentKit(ScriptedModel(calls(use("a", "Wait"))), max_steps=1)
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    item = kit.enter("look at this instead", priority)
    kit.batches.release.set()
    assert (await turn).reason is TurnEndReason.STEP_LIMIT
    assert kit.queue.snapshot() == [item]
    assert kit.of(InputsDelivered) == []


async def test_a_now_input_that_cuts_the_last_step_waits_for_the_next_turn() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([TextChunk("I think"), latch]), max_steps=1)
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    item = kit.enter("stop that", NOW)
    assert (await turn).reason is TurnEndReason.STEP_LIMIT
    assert kit.queue.snapshot() == [item]


async def test_an_input_at_the_would_stop_of_the_last_step_waits_for_the_next_turn() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel([TextChunk("I think"), latch, *text("done")]), max_steps=1)
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    item = kit.enter("and now this", NEXT)
    latch.set()
    assert (await turn).reason is TurnEndReason.DONE
    assert kit.queue.snapshot() == [item]


async def test_what_waits_when_a_stalled_turn_ends_is_not_swallowed_by_it() -> None:
    failing = calls(use("a", "Fail"))
    last = calls(use("a", "Wait"), use("b", "Fail"))
    kit = AgentKit(ScriptedModel(*[failing] * (loop.STALL_LIMIT - 1), last))
    kit.batches.wait_fails = True
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    item = kit.enter("try the other file", NEXT)
    kit.batches.release.set()
    assert (await turn).reason is TurnEndReason.STALLED
    assert kit.queue.snapshot() == [item]


async def test_steps_that_only_fail_are_reminded_once_and_then_stopped() -> None:
    kit = AgentKit(ScriptedModel(*[calls(use("a", "Fail"))] * 10))
    ended = await run(kit)
    assert (ended.reason, ended.steps) == (TurnEndReason.STALLED, loop.STALL_LIMIT)
    reminded = [n for n in range(1, loop.STALL_LIMIT) if loop.STALL_NOTE in kit.user_texts(n)]
    assert reminded == [loop.STALL_REMINDER]


async def test_one_success_resets_the_stall_count() -> None:
    failing, mixed = calls(use("a", "Fail")), calls(use("a", "Fail"), use("b"))
    kit = AgentKit(ScriptedModel(*[failing] * 5, mixed, *[failing] * 5, text("done")))
    assert (await run(kit)).reason is TurnEndReason.DONE


async def test_a_batch_that_was_cut_neither_counts_as_a_stall_nor_resets_the_count() -> None:
    """D39."""
    failing = calls(use("a", "Fail"))
    kit = AgentKit(ScriptedModel(failing, failing, calls(use("a", "Wait")), failing, text("done")))
    turn = asyncio.create_task(run(kit))
    await kit.batches.running.wait()
    kit.enter("not that", NOW)
    await turn
    reminded = [n for n in range(1, 5) if loop.STALL_NOTE in kit.user_texts(n)]
    assert reminded == [4]


async def test_an_empty_answer_is_shown_as_such_and_the_session_goes_on() -> None:
    empty: list[Step] = [
        BlockFinished(TextBlock("  ")),
        MessageFinished(StopReason.END_TURN, USAGE),
    ]
    kit = AgentKit(ScriptedModel(empty, text("hello")))
    assert (await run(kit)).reason is TurnEndReason.DONE
    assert ["empty" in notice.text for notice in kit.of(Notice)] == [True]
    await run(kit, "again")
    assert kit.user_texts(1) == ["do it", "again"]


async def test_a_refusal_ends_the_turn_as_one() -> None:
    kit = AgentKit(ScriptedModel(text("I cannot", StopReason.REFUSAL)))
    assert (await run(kit)).reason is TurnEndReason.REFUSED


async def test_a_message_that_broke_off_is_not_started_over_after_an_hour() -> None:
    """MB-1010: what begins and then asks to wait that long is told at once."""
    failing: list[Step] = [TextChunk("half"), RateLimitedError("slow down", retry_after=3600.0)]
    kit = AgentKit(ScriptedModel(failing))
    ended = await run(kit)
    assert (ended.reason, ended.error) == (TurnEndReason.FAILED, "slow down")
    assert kit.of(RetryWaiting) == []


async def test_a_call_cut_by_the_end_of_the_window_is_not_run() -> None:
    broken = ToolUse("a", "Read", input_error="the input is not valid JSON")
    cut: list[Step] = [
        BlockFinished(broken),
        MessageFinished(StopReason.CONTEXT_FULL, USAGE),
    ]
    kit = AgentKit(ScriptedModel(cut, text("the summary"), text("done")))
    assert (await run(kit)).reason is TurnEndReason.DONE
    assert kit.of(CompactionFinished)[0].error == ""
    assert "done" in str(kit.conversation.messages[-1])


async def test_a_full_context_is_compacted_once_and_the_step_starts_over() -> None:
    full: list[Step] = [ContextFullError("too long")]
    kit = AgentKit(ScriptedModel(full, text("the summary"), text("done")))
    ended = await run(kit)
    assert ended.reason is TurnEndReason.DONE
    assert kit.of(CompactionFinished)[0].error == ""
    [message] = kit.model.requests[2].messages
    assert "the summary" in str(message)


async def test_a_context_that_stays_full_fails_after_one_compaction() -> None:
    full: list[Step] = [ContextFullError("too long", way_out="/clear")]
    kit = AgentKit(ScriptedModel(full, text("the summary"), full))
    ended = await run(kit)
    assert (ended.reason, ended.way_out) == (TurnEndReason.FAILED, "/clear")
    assert len(kit.model.requests) == 3


async def test_a_summary_that_does_not_fit_is_tried_with_less_a_few_times() -> None:
    full: list[Step] = [ContextFullError("too long", way_out="/clear")]
    kit = AgentKit(ScriptedModel(*[full] * 6))
    ended = await run(kit)
    assert ended.reason is TurnEndReason.FAILED
    assert len(kit.model.requests) == 6
    assert kit.of(CompactionFinished)[0].error == "too long"


async def test_a_compaction_can_be_interrupted_and_changes_nothing_then() -> None:
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel(text("hi"), [TextChunk("sum"), latch]))
    await run(kit)
    before = kit.conversation.messages
    compacting = asyncio.create_task(kit.agent.compact(kit.interrupt))
    await until(lambda: len(kit.model.requests) == 2)
    kit.interrupt.interrupt("turn-1", CancelReason.INTERRUPT)
    assert not await compacting
    assert kit.conversation.messages == before


async def test_an_interrupt_during_an_automatic_compaction_interrupts_the_turn() -> None:
    full: list[Step] = [ContextFullError("too long", way_out="/clear")]
    kit = AgentKit(ScriptedModel(full, [TextChunk("sum"), asyncio.Event()]))
    turn = asyncio.create_task(run(kit))
    await until(lambda: len(kit.model.requests) == 2)
    kit.interrupt.interrupt("turn-1")
    assert (await turn).reason is TurnEndReason.INTERRUPTED
    assert loop.INTERRUPT_NOTE in str(kit.conversation.messages[-1])


@pytest.mark.parametrize("stop", [StopReason.TOOL_USE, StopReason.CONTEXT_FULL])
async def test_words_before_more_work_are_no_summary(stop: StopReason) -> None:
    words = text("I look at the files first.", stop)
    kit = AgentKit(ScriptedModel(text("hi"), words, text("the summary")))
    await run(kit)
    assert await kit.agent.compact(kit.interrupt)
    [message] = kit.conversation.messages
    assert "the summary" in str(message)
    assert "I look at" not in str(message)


async def test_a_refusal_is_no_summary() -> None:
    kit = AgentKit(ScriptedModel(text("hi"), text("I cannot", StopReason.REFUSAL)))
    await run(kit)
    before = kit.conversation.messages
    assert not await kit.agent.compact(kit.interrupt)
    assert kit.conversation.messages == before


async def test_a_summary_that_was_cut_says_so() -> None:
    kit = AgentKit(ScriptedModel(text("hi"), text("the beginning", StopReason.MAX_TOKENS)))
    await run(kit)
    assert await kit.agent.compact(kit.interrupt)
    assert "was cut here" in str(kit.conversation.messages[0])


async def test_a_defect_in_a_turn_ends_it_in_order() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a")), text("done")))
    kit.batches.defect = KeyError("a defect")
    ended = await run(kit)
    assert (ended.reason, ended.way_out) == (TurnEndReason.FAILED, loop.RETRY)
    assert "a defect" in ended.error
    assert kit.of(TurnEnded) == [ended]
    kit.batches.defect = None
    retried = await kit.agent.run_turn([], kit.interrupt)
    assert retried.reason is TurnEndReason.DONE


async def test_usage_is_summed_over_the_turn_and_the_session() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a")), text("one"), text("two")))
    first = await run(kit)
    await run(kit)
    assert first.usage == USAGE + USAGE
    assert kit.agent.session_usage == USAGE + USAGE + USAGE
    assert kit.agent.context_tokens == Usage(100, 10).context_tokens


async def test_a_cut_and_a_failed_message_count_with_what_they_cost() -> None:
    begun = Usage(100, 1)
    failing: list[Step] = [RequestCounted(begun), TextChunk("a"), TruncatedStreamError("broken")]
    latch = asyncio.Event()
    kit = AgentKit(ScriptedModel(failing, [RequestCounted(begun), TextChunk("b"), latch]))
    turn = asyncio.create_task(run(kit))
    await until(lambda: len(kit.model.requests) == 2 and len(kit.of(TextDelta)) == 2)
    kit.interrupt.interrupt("turn-1")
    assert (await turn).usage == begun + begun
    assert kit.agent.session_usage == begun + begun


async def test_a_failed_turn_counts_with_what_it_cost() -> None:
    begun = Usage(100, 1)
    failing: list[Step] = [RequestCounted(begun), TextChunk("a"), TruncatedStreamError("broken")]
    kit = AgentKit(ScriptedModel(*[failing] * 3))
    ended = await run(kit)
    assert (ended.reason, ended.usage) == (TurnEndReason.FAILED, begun + begun + begun)


async def test_signed_thinking_goes_back_unmodified() -> None:
    thinking = ThinkingBlock("hm", "sig", "test-model")
    stream: list[Step] = [BlockFinished(thinking), *calls(use("a"))]
    kit = AgentKit(ScriptedModel(stream, text("done")))
    await run(kit)
    message = kit.model.requests[1].messages[1]
    assert isinstance(message, AssistantMessage)
    assert message.blocks[0] == thinking
