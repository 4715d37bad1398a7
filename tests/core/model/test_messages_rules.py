"""The scripted service refuses what the real one refuses, and takes the good twin of each."""

from __future__ import annotations

import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from midturn_core.model.messages import MAX_PICTURE_BYTES
from tests.support.messages_connection import ServerOptions, violations_of_all
from tests.support.messages_script import Failure, Gate, Latch, Reply, Says, sign
from tests.support.messages_server import KEY, MessagesServer
from tests.support.picture_files import gif, jpeg, png, webp

# Any: the point of these bodies is that their shape is wrong.
Body: TypeAlias = "dict[str, Any]"

MODEL = "claude-opus-5-5"
OTHER = "claude-sonnet-5"
PNG = png()


def thinking(text: str = "Hm", model: str = MODEL) -> Body:
    return {"type": "thinking", "thinking": text, "signature": sign(model, text)}


def text(words: str) -> Body:
    return {"type": "text", "text": words}


def use(use_id: str, name: str = "Read") -> Body:
    return {"type": "tool_use", "id": use_id, "name": name, "input": {"file_path": "a"}}


def result(use_id: str) -> Body:
    return {"type": "tool_result", "tool_use_id": use_id, "content": "hello"}


def picture(content: bytes = PNG, media_type: str = "image/png") -> Body:
    data = base64.b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def good() -> Body:
    """A body that has everything a request can have."""
    return {
        "model": MODEL,
        "max_tokens": 100,
        "stream": True,
        "system": [{**text("You help."), "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "tools": [{"name": "Read", "description": "", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [thinking(), text("So."), use("t1"), use("t2")]},
            {"role": "user", "content": [result("t1"), result("t2"), text("And?"), picture()]},
            {"role": "user", "content": [text("Quick!")]},
            {"role": "assistant", "content": [text("Done.")]},
            {"role": "user", "content": [text("Thanks")]},
        ],
    }


Change: TypeAlias = Callable[[Body], object]


def put(value: object, *path: str | int | slice) -> Change:
    """Set what is at ``path``."""

    def change(body: Body) -> None:
        place: Any = body
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(*path: str | int) -> Change:
    def change(body: Body) -> None:
        place: Any = body
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def marks(count: int) -> Change:
    """Mark ``count`` blocks for the cache, the system prompt included."""

    def change(body: Body) -> None:
        blocks = [block for message in body["messages"][2:] for block in message["content"]]
        for block in blocks[: count - 1]:
            block["cache_control"] = {"type": "ephemeral"}

    return change


def nothing(_: Body) -> None:
    pass


TWO_RESULTS = [result("t1"), result("t2")]
REASONING = [thinking(), text("So."), use("t1"), use("t2")]

RULES = {
    "a model is named": (drop("model"), "model: Field required", nothing),
    "an unknown field is refused": (
        put(0.5, "temperature"),
        "temperature: Extra inputs are not permitted",
        put([], "stop_sequences"),
    ),
    "max_tokens is there": (drop("max_tokens"), "max_tokens: Field required", nothing),
    "max_tokens is positive": (
        put(0, "max_tokens"),
        "greater than or equal to 1",
        put(1, "max_tokens"),
    ),
    "max_tokens is a number": (put("9", "max_tokens"), "valid integer", put(9, "max_tokens")),
    "the thinking setting is known": (
        put({"type": "deep"}, "thinking"),
        "does not match any of the expected tags",
        put({"type": "disabled"}, "thinking"),
    ),
    "the effort is known": (
        put({"effort": "huge"}, "output_config"),
        "output_config.effort",
        put({"effort": "max"}, "output_config"),
    ),
    "the system prompt is not blank": (
        put([text(" ")], "system"),
        "system: text content blocks must contain non-whitespace",
        put("You help.", "system"),
    ),
    "a tool has a proper name": (
        put("my tool", "tools", 0, "name"),
        "tools.0.custom.name",
        nothing,
    ),
    "a tool takes an object": (
        put({"type": "string"}, "tools", 0, "input_schema"),
        "input_schema.type",
        nothing,
    ),
    "tool names are unique": (
        put([good()["tools"][0]] * 2, "tools"),
        "Tool names must be unique",
        put([], "tools"),
    ),
    "there are messages": (put([], "messages"), "at least one message is required", nothing),
    "roles are known": (
        put("system", "messages", 3, "role"),
        "'system' is not supported",
        nothing,
    ),
    "the first message is the user's": (
        drop("messages", 0),
        'first message must use the "user" role',
        nothing,
    ),
    "a picture is of a known kind": (
        put(picture(media_type="image/bmp"), "messages", 2, "content", 3),
        "base64.media_type: Input should be 'image/png'",
        put(picture(jpeg(), "image/jpeg"), "messages", 2, "content", 3),
    ),
    "a picture is what it says": (
        put(picture(PNG, "image/jpeg"), "messages", 2, "content", 3),
        "specified using the image/jpeg media type",
        put(picture(gif(), "image/gif"), "messages", 2, "content", 3),
    ),
    "a picture is not too large": (
        put(picture(png(padding=MAX_PICTURE_BYTES)), "messages", 2, "content", 3),
        "image exceeds 5 MB maximum",
        put(picture(png(padding=MAX_PICTURE_BYTES - 1000)), "messages", 2, "content", 3),
    ),
    "a picture is encoded": (
        put("§", "messages", 2, "content", 3, "source", "data"),
        "invalid base64 data",
        put(picture(webp(), "image/webp"), "messages", 2, "content", 3),
    ),
    "a picture is given": (
        drop("messages", 2, "content", 3, "source", "data"),
        "base64.data: Field required",
        nothing,
    ),
    "a picture has a source": (
        put({"type": "url"}, "messages", 2, "content", 3, "source"),
        "Input should be a base64 source",
        nothing,
    ),
    "pictures are few": (
        put([picture()] * 21, "messages", 3, "content"),
        "many-image requests",
        put([picture()] * 19, "messages", 3, "content"),
    ),
    "pictures are the user's": (
        put([picture()], "messages", 4, "content"),
        "`image` blocks are not allowed in `assistant` messages",
        nothing,
    ),
    "the last message is the user's": (
        drop("messages", 5),
        "must end with a user message",
        nothing,
    ),
    "two assistant messages do not meet": (
        put("assistant", "messages", 3, "role"),
        "roles must alternate",
        nothing,  # two user messages in a row are in the good body
    ),
    "a message is not empty": (put([], "messages", 3, "content"), "non-empty content", nothing),
    "a text is not empty": (
        put([text("")], "messages", 3, "content"),
        "text content blocks must be non-empty",
        put([text(".")], "messages", 3, "content"),
    ),
    "a text is not blank": (
        put([text(" \n")], "messages", 3, "content"),
        "must contain non-whitespace text",
        put([text(" a ")], "messages", 3, "content"),
    ),
    "a string content is not empty": (
        put("", "messages", 0, "content"),
        "text content blocks must be non-empty",
        nothing,
    ),
    "block types are known": (
        put([{"type": "hologram"}], "messages", 3, "content"),
        "Input tag 'hologram'",
        nothing,
    ),
    "a block has no unknown field": (
        put([{**text("a"), "mood": "good"}], "messages", 3, "content"),
        "text.mood: Extra inputs are not permitted",
        nothing,
    ),
    "the user does not use tools": (
        put([use("t9")], "messages", 3, "content"),
        "`tool_use` blocks are not allowed in `user` messages",
        nothing,
    ),
    "the assistant has no tool results": (
        put([result("t1")], "messages", 4, "content"),
        "`tool_result` blocks are not allowed in `assistant` messages",
        nothing,
    ),
    "every tool use has its result": (
        put([result("t1"), text("And?")], "messages", 2, "content"),
        "`tool_use` ids were found without `tool_result` blocks immediately after: t2",
        put([result("t2"), result("t1")], "messages", 2, "content"),
    ),
    "the result is in the very next message": (
        put(
            [{"role": "user", "content": "Wait"}, *good()["messages"][2:]],
            "messages",
            slice(2, None),
        ),
        "without `tool_result` blocks immediately after: t1, t2",
        nothing,
    ),
    "a tool result answers a tool use": (
        put([*TWO_RESULTS, result("t3")], "messages", 2, "content"),
        "unexpected `tool_use_id` found in `tool_result` blocks: t3",
        put(TWO_RESULTS, "messages", 2, "content"),
    ),
    "a tool use has a single result": (
        put([*TWO_RESULTS, result("t1")], "messages", 2, "content"),
        "each tool_use must have a single result",
        nothing,
    ),
    "tool results come first": (
        put([text("And?"), *TWO_RESULTS], "messages", 2, "content"),
        "`tool_result` blocks must come first",
        put([*TWO_RESULTS, text("And?")], "messages", 2, "content"),
    ),
    "a failure says something": (
        put(
            [result("t1"), {**result("t2"), "content": "", "is_error": True}],
            "messages",
            2,
            "content",
        ),
        "content cannot be empty if `is_error` is true",
        put([result("t1"), {**result("t2"), "content": ""}], "messages", 2, "content"),
    ),
    "tool use ids are unique in a message": (
        put([thinking(), use("t1"), use("t1")], "messages", 1, "content"),
        "`tool_use` ids must be unique",
        nothing,
    ),
    "tool use ids are unique in the history": (
        put(
            [
                {"role": "assistant", "content": [use("t1")]},
                {"role": "user", "content": [result("t1")]},
            ],
            "messages",
            slice(4, 6),
        ),
        "`tool_use` ids must be unique",
        put(
            [
                {"role": "assistant", "content": [use("t9")]},
                {"role": "user", "content": [result("t9")]},
            ],
            "messages",
            slice(4, 6),
        ),
    ),
    "a tool use has a proper id": (
        put("t 1", "messages", 1, "content", 2, "id"),
        "tool_use.id: String should match",
        nothing,
    ),
    "a tool use has a proper name": (
        put("functions.Read", "messages", 1, "content", 2, "name"),
        "tool_use.name: String should match",
        put("mcp__server__tool", "messages", 1, "content", 2, "name"),
    ),
    "a tool use has an object as input": (
        put('{"a": 1}', "messages", 1, "content", 2, "input"),
        "tool_use.input: Input should be a valid dictionary",
        put({}, "messages", 1, "content", 2, "input"),
    ),
    "thinking is not changed": (
        put("Hmm", "messages", 1, "content", 0, "thinking"),
        "Invalid `signature` in `thinking` block",
        put(thinking("Hmm"), "messages", 1, "content", 0),
    ),
    "thinking is signed": (
        put("", "messages", 1, "content", 0, "signature"),
        "thinking.signature: Field required",
        put(REASONING[1:], "messages", 1, "content"),
    ),
    "thinking is of this model": (
        put(thinking(model=OTHER), "messages", 1, "content", 0),
        "Invalid `signature` in `thinking` block",
        nothing,
    ),
    "redacted thinking is not changed": (
        put({"type": "redacted_thinking", "data": "x:y"}, "messages", 1, "content", 0),
        "Invalid `data` in `redacted_thinking` block",
        put(
            {"type": "redacted_thinking", "data": "x:" + sign(MODEL, "redacted x")},
            "messages",
            1,
            "content",
            0,
        ),
    ),
    "thinking comes before tool uses": (
        put([text("So."), thinking(), use("t1"), use("t2")], "messages", 1, "content"),
        "Expected `thinking` or `redacted_thinking`, but found `text`",
        put(REASONING, "messages", 1, "content"),
    ),
    "thinking is not the end": (
        put([text("Done."), thinking()], "messages", 4, "content"),
        "final block in an assistant message cannot be `thinking`",
        put([thinking(), text("Done.")], "messages", 4, "content"),
    ),
    "there are at most four cache marks": (
        marks(5),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        marks(4),
    ),
    "a cache mark is ephemeral": (
        put({"type": "eternal"}, "system", 0, "cache_control"),
        "cache_control.type",
        nothing,
    ),
}


def post(url: str, body: object, **headers: str) -> tuple[int, str]:
    """The status and the text of the answer."""
    given = {"content-type": "application/json", "anthropic-version": "1", "x-api-key": KEY}
    kept = {name: value for name, value in {**given, **headers}.items() if value}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), kept)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_is_refused_and_its_good_twin_is_not(rule: str) -> None:
    break_it, words, make_twin = RULES[rule]
    bad, twin = good(), good()
    break_it(bad)
    make_twin(twin)
    assert bad != good()
    with MessagesServer(
        Reply(Says("Hi")), options=ServerOptions(violations_expected=True)
    ) as server:
        status, answer = post(server.url, bad)
        assert (status, json.loads(answer)["error"]["type"]) == (400, "invalid_request_error")
        assert words in json.loads(answer)["error"]["message"]
        assert len(server.violations) == 1
        assert post(server.url, twin)[0] == 200
        assert len(server.violations) == 1


def test_a_violation_is_known_to_the_whole_suite_unless_the_test_expects_it() -> None:
    before = list(violations_of_all)
    with MessagesServer(options=ServerOptions(violations_expected=True)) as server:
        post(server.url, {})
    assert violations_of_all == before
    with MessagesServer() as server:
        post(server.url, {})
    assert violations_of_all.pop() == "model: Field required"
    assert violations_of_all == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": ""}, 401),
        ({"x-api-key": "wrong"}, 401),
        ({"x-api-key": "", "authorization": "Bearer wrong"}, 401),
        ({"content-type": "text/plain"}, 400),
        ({"anthropic-version": ""}, 400),
        ({}, 200),
        ({"x-api-key": "", "authorization": f"Bearer {KEY}"}, 200),
    ],
)
def test_the_headers_are_checked(headers: dict[str, str], status: int) -> None:
    options = ServerOptions(key=KEY, violations_expected=True)
    with MessagesServer(Reply(Says("Hi")), options=options) as server:
        assert post(server.url, good(), **headers)[0] == status


def test_another_path_is_not_found() -> None:
    with MessagesServer() as server:
        assert post(f"{server.url}/v1", good())[0] == 404


def test_a_request_after_the_end_of_the_script_is_a_violation() -> None:
    with MessagesServer(options=ServerOptions(violations_expected=True)) as server:
        assert post(server.url, good())[0] == 400
        assert "end of the script" in server.violations[0]
        server.add(Reply(Says("Hi")))
        assert post(server.url, good())[0] == 200


def test_a_function_in_the_script_answers_from_the_request() -> None:
    with MessagesServer() as server:
        server.always(lambda request: Failure(500, message=f"you said {request.texts[-1]}"))
        assert "you said Thanks" in post(server.url, good())[1]


def test_a_latch_holds_the_reply_until_the_test_opens_it() -> None:
    latch = Latch()
    done = Gate("the answer")
    with MessagesServer(Reply(Says("One ", latch, "two"))) as server:

        def send() -> None:
            post(server.url, good())
            done.open()

        thread = threading.Thread(target=send)
        thread.start()
        latch.reached.wait()
        assert not done.is_open
        assert not server.requests[0].answered.is_open
        latch.open()
        done.wait()
        server.requests[0].answered.wait()
        thread.join()
