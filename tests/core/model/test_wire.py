"""Requests as JSON: what goes out, what is left out, and in which order."""

from __future__ import annotations

import base64
import json

import pytest

from midturn_core.model.client import ModelRequest, ToolDefinition
from midturn_core.model.messages import (
    AssistantMessage,
    ImageBlock,
    JsonValue,
    Message,
    Outcome,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
)
from midturn_core.model.wire import (
    WireFeatures,
    build_request,
    supports_adaptive_thinking,
    without_refused,
)
from midturn_core.pictures import read_picture
from tests.support.picture_files import png

MODEL = "claude-opus-5-5"
PLAIN = WireFeatures(caching=False)


def request(
    *messages: Message, system: str = "", model: str = MODEL, effort: str = ""
) -> ModelRequest:
    tool = ToolDefinition("Read", "Read a file.", {"type": "object"})
    history = messages or (said("Hello"),)
    return ModelRequest(system, history, (tool, tool), model, 100, effort)


def said(*texts: str) -> UserMessage:
    return UserMessage(tuple(TextBlock(text) for text in texts))


def contents(body: dict[str, JsonValue]) -> list[JsonValue]:
    return [message["content"] for message in objects(body["messages"])]


def objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def content_of(message: Message, features: WireFeatures = PLAIN) -> JsonValue:
    """What is sent of a message that stands between two of the user's."""
    return contents(build_request(request(said("a"), message, said("b")), features))[1]


def test_a_plain_request_has_the_core_of_the_api() -> None:
    body = build_request(request(model="some-model"), PLAIN)
    assert body == {
        "model": "some-model",
        "max_tokens": 100,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        "tools": [
            {"name": "Read", "description": "Read a file.", "input_schema": {"type": "object"}},
        ]
        * 2,
    }


def test_results_come_first_in_order_then_texts() -> None:
    message = UserMessage(
        (
            TextBlock("And?"),
            ToolUseResult("t2", "Read", Outcome.SUCCEEDED, "two"),
            ToolUseResult("t1", "Read", Outcome.DENIED, "Error: no"),
        )
    )
    assert content_of(message) == [
        {"type": "tool_result", "tool_use_id": "t2", "content": "two"},
        {"type": "tool_result", "tool_use_id": "t1", "content": "Error: no", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_a_failure_without_words_says_at_least_that_it_failed() -> None:
    sent = content_of(UserMessage((ToolUseResult("t1", "Read", Outcome.FAILED, ""),)))
    assert objects(sent)[0]["content"] == "Error: no message"


def test_an_empty_result_stays_empty() -> None:
    sent = content_of(UserMessage((ToolUseResult("t1", "Read", Outcome.SUCCEEDED, ""),)))
    assert sent == [{"type": "tool_result", "tool_use_id": "t1", "content": ""}]


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_texts_are_never_sent(blank: str) -> None:
    body = build_request(
        request(
            said(blank, "a", blank),
            AssistantMessage((TextBlock(blank), TextBlock("b"))),
            AssistantMessage((TextBlock(blank),)),
            said("c"),
            system=blank,
        )
    )
    assert "system" not in body
    texts = [[block["text"] for block in objects(content)] for content in contents(body)]
    assert texts == [["a"], ["b"], ["c"]]


def test_thinking_goes_back_unmodified_to_the_model_that_signed_it() -> None:
    message = AssistantMessage(
        (
            ThinkingBlock("  Hm\n", "sig", MODEL),
            RedactedThinkingBlock("secret", MODEL),
            ToolUse("t1", "Read", {"file_path": "a"}),
        )
    )
    assert content_of(message) == [
        {"type": "thinking", "thinking": "  Hm\n", "signature": "sig"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}},
    ]


def test_thinking_that_would_be_refused_is_left_out() -> None:
    message = AssistantMessage(
        (
            ThinkingBlock("foreign", "sig", "claude-sonnet-5"),
            ThinkingBlock("of nobody", "sig"),
            ThinkingBlock("unsigned", "", MODEL),
            RedactedThinkingBlock("foreign", "claude-sonnet-5"),
            TextBlock("So."),
            ThinkingBlock("at the end", "sig", MODEL),
        )
    )
    assert content_of(message) == [{"type": "text", "text": "So."}]


def test_a_name_that_the_model_invented_is_made_acceptable() -> None:
    sent = content_of(AssistantMessage((ToolUse("t1", "functions.Read\n"), ToolUse("t2", ""))))
    assert [block["name"] for block in objects(sent)] == ["functions_Read_", "unknown"]


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    use = ToolUse("t1", "Read", {"a\udc80": ["\ud83d\ude00", {"b": "\udfff", "n": 1}]})
    body = build_request(request(said("x\udcffy"), AssistantMessage((use,)), said("z")))
    text = json.dumps(body, ensure_ascii=False)
    text.encode()
    assert "x\ufffdy" in text
    assert "😀" in text


def test_the_cache_is_marked_at_tools_system_and_the_growing_prefix() -> None:
    history = (said("a"), AssistantMessage((TextBlock("b"),)), said("c1", "c2")) * 3
    body = build_request(request(*history, system="You help."))
    marked = json.dumps(body).count('"cache_control": {"type": "ephemeral"}')
    assert marked == 4
    tools, system = body["tools"], body["system"]
    assert "cache_control" in json.dumps(system)
    assert isinstance(tools, list)
    assert ["cache_control" in json.dumps(tool) for tool in tools] == [False, True]
    *_, before, _, last = ["cache_control" in json.dumps(content) for content in contents(body)]
    assert (before, last) == (True, True)
    sent = contents(body)[-1]
    assert isinstance(sent, list)
    assert "cache_control" in json.dumps(sent[-1])


def test_a_short_request_marks_what_it_has() -> None:
    assert json.dumps(build_request(request())).count("cache_control") == 2


@pytest.mark.parametrize(
    ("model", "supported"),
    [
        ("claude-opus-5-5", True),
        ("claude-opus-4-6", True),
        ("claude-sonnet-5", True),
        ("us.anthropic.claude-opus-4-6-v1", True),
        ("anthropic/claude-opus-4.6", True),
        ("claude-haiku-4-5", False),
        ("claude-haiku-4-5-20251001", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-5-sonnet-latest", False),
        ("qwen3-coder", False),
        ("", False),
    ],
)
def test_thinking_is_asked_only_of_models_that_know_it(model: str, supported: bool) -> None:
    assert supports_adaptive_thinking(model) is supported
    assert ("thinking" in build_request(request(model=model))) is supported


def test_effort_is_sent_only_when_chosen() -> None:
    assert "output_config" not in build_request(request())
    assert build_request(request(effort="max"))["output_config"] == {"effort": "max"}


@pytest.mark.parametrize(
    ("refusal", "left"),
    [
        ("thinking: Extra inputs are not permitted", WireFeatures(thinking=False)),
        ("adaptive thinking is not supported on this model", WireFeatures(thinking=False)),
        ("thinking: Input tag 'adaptive' does not match any", WireFeatures(thinking=False)),
        ("output_config: Extra inputs are not permitted", WireFeatures(effort=False)),
        ("This model does not support the effort parameter.", WireFeatures(effort=False)),
        (
            "messages.0.content.0.text.cache_control: Extra inputs are not permitted",
            WireFeatures(caching=False),
        ),
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            WireFeatures(thinking_history=False),
        ),
        ("messages.1.content.0: Input should be a valid string", None),
        ("tools.0.custom.name: String should match pattern", None),
        ("prompt is too long: 5 tokens > 4 maximum", None),
        ("I was just thinking of you", None),
    ],
)
def test_a_refusal_that_names_a_feature_tells_which(
    refusal: str, left: WireFeatures | None
) -> None:
    sent = build_request(request(effort="high"))
    assert without_refused(WireFeatures(), refusal, sent) == left
    if left is not None:
        fewer = build_request(request(effort="high"), left)
        assert without_refused(left, refusal, fewer) is None, "it would be sent for ever"


def picture(name: str, padding: int = 0) -> ImageBlock:
    return read_picture(png(padding=padding), name)


def image(block: ImageBlock) -> dict[str, JsonValue]:
    data = base64.b64encode(block.data).decode()
    source: JsonValue = {"type": "base64", "media_type": block.media_type, "data": data}
    return {"type": "image", "source": source}


def test_a_picture_goes_in_its_place_in_base64() -> None:
    shot = picture("shot.png")
    message = UserMessage((TextBlock("look"), shot, TextBlock("well?")))
    assert content_of(message) == [
        {"type": "text", "text": "look"},
        image(shot),
        {"type": "text", "text": "well?"},
    ]


def test_a_picture_at_the_end_of_a_message_carries_the_cache_mark() -> None:
    shot = picture("shot.png")
    message = UserMessage((TextBlock("look"), shot))
    [content] = contents(build_request(request(message)))
    assert objects(content)[-1] == {**image(shot), "cache_control": {"type": "ephemeral"}}
    assert json.dumps(build_request(request(message))).count("cache_control") == 2


@pytest.mark.parametrize(("count", "padding", "sent"), [(25, 0, 20), (8, 3_900_000, 4)])
def test_of_many_pictures_the_newest_are_sent_and_the_others_are_named(
    count: int, padding: int, sent: int
) -> None:
    """The service takes 20 of any size, and 32 MB altogether."""
    messages: list[Message] = []
    for number in range(count):
        message = UserMessage((TextBlock("look"), picture(f"{number}.png", padding + number)))
        messages += [message, AssistantMessage((TextBlock("seen"),))]
    body = build_request(request(*messages[:-1]), PLAIN)
    blocks = [objects(content)[1] for content in contents(body)[::2]]
    assert [block["type"] for block in blocks] == ["text"] * (count - sent) + ["image"] * sent
    assert str(blocks[0]["text"]).startswith("[The picture 0.png (PNG, 3×2, ")
    assert str(blocks[0]["text"]).endswith(") is no longer sent.]")
    assert len(json.dumps(body)) < 32_000_000


def test_a_refusal_that_names_no_picture_does_not_take_them_out() -> None:
    body = build_request(request(UserMessage((TextBlock("look"), picture("a.png")))))
    assert without_refused(WireFeatures(), "prompt is too long", body) is None
    assert without_refused(WireFeatures(), "Could not process image", body) is not None
    plain = build_request(request(said("no picture at all")))
    assert without_refused(WireFeatures(), "Could not process image", plain) is None
