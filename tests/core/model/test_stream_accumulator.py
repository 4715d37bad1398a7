"""From raw events to model events, whatever the events look like."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    ModelEvent,
    RequestCounted,
    TextChunk,
    ThinkingChunk,
    ToolUseStarting,
)
from midturn_core.model.messages import (
    JsonObject,
    JsonValue,
    StopReason,
    TextBlock,
    ToolUse,
    Usage,
)
from midturn_core.model.stream_accumulator import MAX_DEPTH, StreamAccumulator

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def take(*events: JsonObject) -> list[ModelEvent]:
    accumulator = StreamAccumulator("m")
    return [out for event in events for out in accumulator.take(event)]


def start(block: dict[str, JsonValue], index: int = 0) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(kind: str, key: str, value: JsonValue, index: int = 0) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}


def stop(index: int = 0) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def call(*parts: str) -> ToolUse:
    events = take(
        start({"type": "tool_use", "id": "t", "name": "Read", "input": {}}),
        *(delta("input_json_delta", "partial_json", part) for part in parts),
        stop(),
    )
    block = events[-1]
    assert isinstance(block, BlockFinished)
    assert isinstance(block.block, ToolUse)
    return block.block


@given(st.dictionaries(st.text(), JSON_VALUES), st.data())
def test_tool_json_split_anywhere_is_the_same_input(
    value: dict[str, JsonValue], data: st.DataObject
) -> None:
    text = json.dumps(value)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert call(*parts) == ToolUse("t", "Read", value)


def test_no_json_at_all_is_an_empty_input() -> None:
    assert call("") == ToolUse("t", "Read", {})


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": [{"b": -1e999}]}'])
def test_a_number_that_no_json_can_say_again_is_an_input_error(text: str) -> None:
    assert "too large" in (call(text).input_error or "")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 900])
def test_an_input_too_deep_to_be_sent_back_is_an_input_error(levels: int) -> None:
    assert "levels" in (call('{"a": ' + "[" * levels + "1" + "]" * levels + "}").input_error or "")


def test_the_same_holds_for_an_input_that_came_with_the_start_of_the_block() -> None:
    given: dict[str, JsonValue] = {"a": float("inf")}
    events = take(start({"type": "tool_use", "id": "t", "name": "Read", "input": given}), stop())
    assert isinstance(events[-1], BlockFinished)
    assert isinstance(events[-1].block, ToolUse)
    assert events[-1].block.input_error


def test_json_nested_beyond_reason_is_an_input_error() -> None:
    use = call('{"a":' + "[" * 200_000 + "]" * 200_000 + "}")
    assert use.input_error
    assert use.input == {}


def test_an_input_that_came_with_the_start_is_kept() -> None:
    events = take(start({"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}), stop())
    assert events[-1] == BlockFinished(ToolUse("t", "Read", {"a": 1}))


def test_a_tool_use_without_id_gets_one() -> None:
    starting, finished = take(start({"type": "tool_use", "name": "Read"}), stop())
    assert isinstance(starting, ToolUseStarting)
    assert starting.id
    assert isinstance(finished, BlockFinished)
    assert finished.block == ToolUse(starting.id, "Read")


def test_text_that_came_with_the_start_is_kept() -> None:
    assert take(start({"type": "text", "text": "Hi"}), stop()) == [
        TextChunk("Hi"),
        BlockFinished(TextBlock("Hi")),
    ]


def test_an_empty_text_block_gives_nothing() -> None:
    assert take(start({"type": "text", "text": ""}), stop()) == []


def test_interleaved_blocks_do_not_mix() -> None:
    events = take(
        start({"type": "text", "text": ""}, 0),
        start({"type": "text", "text": ""}, 1),
        delta("text_delta", "text", "b", 1),
        delta("text_delta", "text", "a", 0),
        stop(1),
        stop(0),
    )
    finished = [event.block for event in events if isinstance(event, BlockFinished)]
    assert finished == [TextBlock("b"), TextBlock("a")]


def test_a_text_block_without_end_counts_at_the_end_of_the_message() -> None:
    events = take(
        start({"type": "text", "text": "Hi"}),
        start({"type": "tool_use", "id": "t", "name": "Read"}, 1),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    assert events[-2:] == [
        BlockFinished(TextBlock("Hi")),
        MessageFinished(StopReason.END_TURN, Usage()),
    ]


def test_usage_is_cumulative_and_may_come_in_parts() -> None:
    events = take(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
            "usage": {"output_tokens": 9, "cache_read_input_tokens": None},
        },
        {"type": "message_stop"},
    )
    assert events == [
        RequestCounted(Usage(5, 1)),
        MessageFinished(StopReason.STOP_SEQUENCE, Usage(5, 9), "END"),
    ]


@given(st.lists(st.fixed_dictionaries({"type": st.text()}, optional={"index": JSON_VALUES})))
def test_events_of_any_shape_are_survived(events: list[dict[str, JsonValue]]) -> None:
    take(*events)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(
                    ["message_start", "content_block_start", "content_block_delta"]
                    + ["content_block_stop", "message_delta", "message_stop"]
                )
            },
            optional={
                "index": st.integers(0, 1),
                "message": JSON_VALUES,
                "usage": JSON_VALUES,
                "delta": st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(
                            ["text_delta", "input_json_delta", "signature_delta"]
                        )
                    },
                    optional={"text": JSON_VALUES, "partial_json": JSON_VALUES},
                )
                | JSON_VALUES,
                "content_block": st.fixed_dictionaries(
                    {"type": st.sampled_from(["text", "thinking", "tool_use", "odd"])},
                    optional={"id": JSON_VALUES, "input": JSON_VALUES, "text": JSON_VALUES},
                )
                | JSON_VALUES,
            },
        )
    )
)
def test_known_events_with_odd_content_are_survived(events: list[dict[str, JsonValue]]) -> None:
    for event in take(*events):
        if isinstance(event, TextChunk | ThinkingChunk):
            assert event.text
