"""The client against a service that answers well."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace

import pytest

from midturn_core.errors import ConfigError, CredentialRejectedError, MissingCredentialError
from midturn_core.model.anthropic_client import AnthropicClient
from midturn_core.model.client import (
    BlockFinished,
    RequestCounted,
    TextChunk,
    ThinkingChunk,
    ToolUseStarting,
)
from midturn_core.model.client_settings import ClientSettings, normalise_base_url
from midturn_core.model.messages import (
    AssistantMessage,
    Outcome,
    RedactedThinkingBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserMessage,
)
from tests.support.client_kit import MODEL, ask, client_of, hear, settings_for
from tests.support.messages_connection import ServerOptions
from tests.support.messages_script import (
    Calls,
    Latch,
    Pause,
    Reply,
    Says,
    Thinks,
    ThinksSecretly,
    ping,
    sign,
)
from tests.support.messages_server import KEY, MessagesServer


async def test_text_comes_in_chunks_and_ends_with_the_usage() -> None:
    usage = {
        "input_tokens": 7,
        "output_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 30,
    }
    with MessagesServer(Reply(Says("Hel", "lo ", "안녕 😀"), usage=usage)) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.events[:3] == [TextChunk("Hel"), TextChunk("lo "), TextChunk("안녕 😀")]
    assert heard.blocks == [TextBlock("Hello 안녕 😀")]
    assert heard.finish.stop_reason is StopReason.END_TURN
    assert heard.finish.usage == Usage(7, 3, 20, 30)


async def test_several_tool_uses_of_one_response_keep_their_order_and_input() -> None:
    reply = Reply(
        Says("I look."),
        Calls("Read", {"file_path": "a"}, id="toolu_a"),
        Calls("Read", {"file_path": "b"}, id="toolu_b"),
    )
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.blocks == [
        TextBlock("I look."),
        ToolUse("toolu_a", "Read", {"file_path": "a"}),
        ToolUse("toolu_b", "Read", {"file_path": "b"}),
    ]
    assert ToolUseStarting("toolu_a", "Read") in heard.events
    assert heard.finish.stop_reason is StopReason.TOOL_USE


async def test_a_tool_use_is_there_at_the_end_of_its_block_while_the_stream_goes_on() -> None:
    latch = Latch()
    reply = Reply(Calls("Read", {"file_path": "a"}), latch, Calls("Read", {"file_path": "b"}))
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            stream = client.stream(ask())
            async with contextlib.aclosing(stream), asyncio.timeout(30):
                async for event in stream:
                    if isinstance(event, BlockFinished):
                        break
                assert not latch.released.is_open
                latch.open()


async def test_a_whole_conversation_with_thinking_and_tools_passes_the_service() -> None:
    first = Reply(Thinks("Let me ", "see."), Says("I look."), Calls("Read", {"file_path": "a"}))
    second = Reply(ThinksSecretly(), Says("Done."))
    with MessagesServer(first, second, Reply(Says("Bye."))) as server:
        async with client_of(server) as client:
            heard = await hear(client)
            thinking = heard.blocks[0]
            assert thinking == ThinkingBlock("Let me see.", sign(MODEL, "Let me see."), MODEL)
            assert ThinkingChunk("Let me ") in heard.events
            use = heard.blocks[2]
            assert isinstance(use, ToolUse)
            result = ToolUseResult(use.id, use.name, Outcome.FAILED, "Error: no such file")
            history = (
                UserMessage((TextBlock("Hello"),)),
                AssistantMessage(tuple(heard.blocks)),
                UserMessage((result, TextBlock("Be quick."))),
            )
            heard = await hear(client, ask(*history))
            assert isinstance(heard.blocks[0], RedactedThinkingBlock)
            last = UserMessage((TextBlock("Thanks"),))
            await hear(client, ask(*history, AssistantMessage(tuple(heard.blocks)), last))
        sent = server.requests[1]
    assert sent.messages[1]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": sign(MODEL, "Let me see.")},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": use.id, "name": "Read", "input": {"file_path": "a"}},
    ]
    assert sent.results[0]["is_error"] is True
    assert sent.texts == ["Be quick."]
    assert server.violations == []


async def test_thinking_of_another_model_is_left_out_after_a_switch() -> None:
    with MessagesServer(Reply(Thinks("Hm."), Says("Hi.")), Reply(Says("Hi again."))) as server:
        async with client_of(server) as client:
            heard = await hear(client)
            reply = AssistantMessage(tuple(heard.blocks))
            heard = await hear(client, ask("Hello", reply, "More", model="claude-sonnet-5"))
            assert client.label == "claude-sonnet-5"
    assert heard.text == "Hi again."
    assert server.requests[1].messages[1]["content"] == [{"type": "text", "text": "Hi."}]


@pytest.mark.parametrize(
    "reason", [reason for reason in StopReason if reason is not StopReason.UNKNOWN]
)
async def test_every_stop_reason_arrives(reason: StopReason) -> None:
    reply = Reply(Says("So"), stop_reason=reason.value)
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.finish.stop_reason is reason


async def test_a_refusal_tells_its_category() -> None:
    reply = Reply(stop_reason="refusal", stop_details={"category": "bio"})
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.blocks == []
    assert (heard.finish.stop_reason, heard.finish.stop_detail) == (StopReason.REFUSAL, "bio")


async def test_twenty_thousand_deltas_arrive_complete() -> None:
    words = [f"word{number} " for number in range(20_000)]
    with MessagesServer(Reply(Says(*words))) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.text == "".join(words)
    assert heard.blocks == [TextBlock("".join(words))]


async def test_a_body_that_drips_byte_by_byte_is_read_right() -> None:
    with MessagesServer(Reply(Says("안녕 ", "hello"), chunk_size=1)) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.text == "안녕 hello"
    assert heard.finish.stop_reason is StopReason.END_TURN


async def test_requests_in_a_row_share_one_connection() -> None:
    with MessagesServer(Reply(Says("One")), Reply(Says("Two"))) as server:
        async with client_of(server) as client:
            await hear(client)
            await hear(client)
    assert server.requests[0].connection == server.requests[1].connection


async def test_cancelling_closes_the_connection_at_once() -> None:
    latch = Latch()
    with MessagesServer(Reply(Says("Once", latch, "never"))) as server:
        async with client_of(server) as client:
            task = asyncio.create_task(hear(client))
            await latch.reached.opened()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.requests[0].disconnected.opened()


async def test_closing_the_stream_closes_the_connection_at_once() -> None:
    latch = Latch()
    with MessagesServer(Reply(Says("Once", latch, "never"))) as server:
        async with client_of(server) as client:
            stream = client.stream(ask())
            assert isinstance(await anext(stream), RequestCounted)
            assert await anext(stream) == TextChunk("Once")
            await stream.aclose()
            await server.requests[0].disconnected.opened()


async def test_cancelling_before_the_headers_closes_the_connection() -> None:
    latch = Latch()
    with MessagesServer(Reply(Says("Never"), before=latch)) as server:
        async with client_of(server) as client:
            task = asyncio.create_task(hear(client))
            await latch.reached.opened()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.requests[0].disconnected.opened()


async def test_a_long_stream_with_pings_is_never_cut() -> None:
    quiet = [step for _ in range(14) for step in (ping(), Pause(0.1))]
    with MessagesServer(Reply(Says("a", *quiet, "b"))) as server:
        settings = replace(settings_for(server.url), idle_timeout=1.0)
        async with client_of(settings) as client:
            heard = await hear(client)
    assert heard.text == "ab"
    assert heard.retries == []
    assert heard.error is None


async def test_a_key_goes_in_both_headers() -> None:
    with MessagesServer(Reply(Says("Hi"))) as server:
        async with client_of(server) as client:
            await hear(client)
    headers = server.requests[0].headers
    assert headers["x-api-key"] == KEY
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"


async def test_a_token_goes_as_bearer_alone() -> None:
    with MessagesServer(Reply(Says("Hi"))) as server:
        async with client_of(settings_for(server.url, key="", token="my-token")) as client:
            await hear(client)
    assert server.requests[0].headers["authorization"] == "Bearer my-token"
    assert "x-api-key" not in server.requests[0].headers


async def test_without_a_key_nothing_is_sent_and_the_way_out_is_told() -> None:
    with MessagesServer() as server:
        async with client_of(settings_for(server.url, key="")) as client:
            heard = await hear(client)
    assert isinstance(heard.error, MissingCredentialError)
    assert "ANTHROPIC_API_KEY" in heard.error.way_out
    assert "midturn demo" in heard.error.way_out
    assert server.requests == []


@pytest.mark.parametrize("key", ["sk-with\nnewline", "sk-wïth-umlaut", "two words"])
async def test_a_key_that_cannot_be_one_is_refused_without_quoting_it(key: str) -> None:
    with MessagesServer() as server:
        async with client_of(settings_for(server.url, key=key)) as client:
            heard = await hear(client)
    assert isinstance(heard.error, CredentialRejectedError)
    assert key not in str(heard.error) + heard.error.way_out
    assert server.requests == []


async def test_the_key_is_in_no_message_repr_or_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = replace(settings_for("http://user:pa55word@127.0.0.1:9"), auth_token="tok-en-123")
    async with client_of(settings) as client:
        heard = await hear(client)
    with MessagesServer(options=ServerOptions(key="another")) as server:
        async with client_of(server) as client:
            refused = await hear(client)
    told = f"{settings!r} {heard!r} {heard.error} {refused!r} {refused.error} {caplog.text}"
    assert caplog.records, "nothing was logged, so nothing was checked"
    for secret in (KEY, "tok-en-123", "pa55word"):
        assert secret not in told


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/messages", "  "])
async def test_the_address_works_with_and_without_slash_and_v1(suffix: str) -> None:
    options = ServerOptions(prefix="/gateway")
    with MessagesServer(Reply(Says("Hi")), options=options) as server:
        async with client_of(settings_for(server.url + suffix)) as client:
            heard = await hear(client)
    assert heard.text == "Hi"


def test_no_address_means_the_service_itself() -> None:
    assert normalise_base_url("") == "https://api.anthropic.com"


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://", "http://h:99999"])
def test_an_address_that_is_none_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        normalise_base_url(url)


def test_the_label_is_the_configured_model_at_first() -> None:
    assert AnthropicClient(ClientSettings("some-model")).label == "some-model"


async def test_a_preload_that_runs_serves_the_first_request() -> None:
    with MessagesServer(Reply(Says("Hi"))) as server:
        async with client_of(server) as client:
            client.preload()
            client.preload()
            heard = await hear(client)
    assert heard.text == "Hi"


@pytest.mark.parametrize(
    ("lacks", "gone"),
    [("thinking", "thinking"), ("output_config", "output_config"), ("cache_control", "")],
)
async def test_a_gateway_that_lacks_a_feature_still_works(lacks: str, gone: str) -> None:
    options = ServerOptions(lacks=frozenset({lacks}))
    with MessagesServer(Reply(Says("One")), Reply(Says("Two")), options=options) as server:
        async with client_of(server) as client:
            first = await hear(client, ask(effort="high"))
            second = await hear(client, ask(effort="high"))
    assert (first.text, second.text) == ("One", "Two")
    assert len(server.requests) == 3, "the lack was learned once"
    assert gone not in server.requests[2].body


async def test_a_gateway_that_lacks_everything_still_works() -> None:
    options = ServerOptions(lacks=frozenset({"thinking", "output_config", "cache_control"}))
    with MessagesServer(Reply(Says("Hi")), options=options) as server:
        async with client_of(server) as client:
            heard = await hear(client, ask(effort="high"))
    assert heard.text == "Hi"
    assert heard.retries == []
