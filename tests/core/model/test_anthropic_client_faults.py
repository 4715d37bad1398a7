"""The client against every way in which a service and a network fail."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.errors import (
    BadRequestError,
    ContextFullError,
    CredentialRejectedError,
    ModelError,
    ModelTimeoutError,
    OfflineError,
    OverloadedError,
    RateLimitedError,
    ServiceError,
    TruncatedStreamError,
    UnknownModelError,
)
from midturn_core.model.client import RequestCounted, RetryScheduled, TextChunk
from midturn_core.model.client_settings import ClientSettings
from midturn_core.model.messages import (
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUse,
)
from tests.support.client_kit import MODEL, QUICK, ask, client_of, hear, settings_for
from tests.support.messages_connection import ScriptItem, ServerOptions
from tests.support.messages_script import (
    Calls,
    Close,
    Cut,
    Event,
    Failure,
    HangUp,
    Item,
    Latch,
    NoAnswer,
    Page,
    RawBytes,
    Reply,
    Says,
    Silence,
    Thinks,
    error_event,
    ping,
)
from tests.support.messages_server import KEY, MessagesServer
from tests.support.services import require

PATIENT = QUICK.busy_retries


def impatient(server: MessagesServer) -> ClientSettings:
    return replace(settings_for(server.url), idle_timeout=1.0)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(429, "rate_limit_error", "slow down"), RateLimitedError),
        (Failure(529, "overloaded_error", "Overloaded"), OverloadedError),
        (Failure(500, "api_error", "Internal server error"), ServiceError),
        (Page("<html><title>Bad gateway</title></html>", 502), ServiceError),
        (HangUp(), TruncatedStreamError),
        (Reply(Close()), TruncatedStreamError),
        (Reply(error_event("overloaded_error", "Overloaded")), OverloadedError),
    ],
)
async def test_a_failure_before_anything_was_said_is_retried_then_told(
    failure: ScriptItem, expected: type[ModelError]
) -> None:
    with MessagesServer() as server:
        server.always(failure)
        async with client_of(server) as client:
            heard = await hear(client)
    assert isinstance(heard.error, expected)
    assert heard.error.way_out
    assert len(server.requests) == 1 + PATIENT
    assert [retry.attempt for retry in heard.retries] == list(range(1, PATIENT + 1))
    assert {retry.attempts for retry in heard.retries} == {PATIENT}
    assert heard.events == heard.retries


async def test_a_service_that_recovers_answers() -> None:
    script = (Failure(529, "overloaded_error"), Failure(500), HangUp(), Reply(Says("Hi")))
    with MessagesServer(*script) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.text == "Hi"
    assert len(heard.retries) == 3
    assert isinstance(heard.events[0], RetryScheduled)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(400, "invalid_request_error", "tools: bad"), BadRequestError),
        (Failure(401, "authentication_error", "invalid x-api-key"), CredentialRejectedError),
        (Failure(403, "permission_error", "not for you"), CredentialRejectedError),
        (Failure(404, "not_found_error", "model: nope"), UnknownModelError),
        (Failure(413, "request_too_large", "too large"), ContextFullError),
        (Failure(307, headers={"location": "http://elsewhere/"}), BadRequestError),
        (Page("<html>Sign in</html>"), ServiceError),
    ],
)
async def test_a_failure_that_stays_is_told_at_once(
    failure: ScriptItem, expected: type[ModelError]
) -> None:
    with MessagesServer(failure) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert isinstance(heard.error, expected)
    assert heard.error.way_out
    assert heard.events == []
    assert len(server.requests) == 1


async def test_a_redirect_is_not_followed_and_its_target_is_named() -> None:
    with MessagesServer() as other:
        redirect = Failure(307, headers={"location": f"{other.url}/v1/messages"})
        with MessagesServer(redirect) as server:
            async with client_of(server) as client:
                heard = await hear(client)
        assert other.requests == [], "the key went to an address that nobody configured"
        assert other.url in str(heard.error)


async def test_a_service_that_quotes_the_key_is_not_passed_on() -> None:
    with MessagesServer(Failure(401, "authentication_error", f"bad key {KEY}")) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert "bad key ***" in str(heard.error)


async def test_retry_after_is_waited_for() -> None:
    busy = Failure(429, "rate_limit_error", headers={"retry-after-ms": "15"})
    with MessagesServer(busy, Reply(Says("Hi"))) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert [retry.delay for retry in heard.retries] == [0.015]
    assert heard.text == "Hi"


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "3600"},
        {
            "date": "Mon, 30 Nov 2026 10:00:00 GMT",
            "retry-after": "Mon, 30 Nov 2026 11:00:00 GMT",
        },
    ],
)
async def test_a_long_retry_after_is_told_and_not_waited_for(headers: dict[str, str]) -> None:
    with MessagesServer(Failure(429, "rate_limit_error", headers=headers)) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert isinstance(heard.error, RateLimitedError)
    assert heard.error.retry_after == 3600
    assert "1 h" in str(heard.error)
    assert heard.retries == []


async def test_cancelling_a_wait_ends_it() -> None:
    busy = Failure(429, "rate_limit_error", headers={"retry-after": "59"})
    with MessagesServer(busy) as server:
        async with client_of(server) as client:
            stream = client.stream(ask())
            assert isinstance(await anext(stream), RetryScheduled)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (Cut(), TruncatedStreamError),
        (Close(), TruncatedStreamError),
        (Silence(), ModelTimeoutError),
        (error_event("overloaded_error", "Overloaded"), OverloadedError),
        (error_event("rate_limit_error", "Slow"), RateLimitedError),
        (error_event("api_error", "Oops"), ServiceError),
        (error_event("invalid_request_error", "prompt is too long"), ContextFullError),
        (error_event("of_the_future", "What?"), ServiceError),
        (RawBytes(b"event: error\ndata: not json\n\n"), ServiceError),
        (RawBytes(b"event: message_delta\ndata: {not json\n\n"), TruncatedStreamError),
        (RawBytes(b"event: message_delta\ndata: \xff\xfe\n\n"), TruncatedStreamError),
    ],
)
async def test_a_failure_in_mid_stream_is_told_and_not_retried(
    end: Item, expected: type[ModelError]
) -> None:
    with MessagesServer(Reply(Says("Done"), Says("More"), end)) as server:
        settings = impatient(server) if end == Silence() else settings_for(server.url)
        async with client_of(settings) as client:
            heard = await hear(client)
    assert isinstance(heard.error, expected)
    assert heard.error.way_out
    assert heard.blocks == [TextBlock("Done"), TextBlock("More")]
    assert heard.retries == []
    assert len(server.requests) == 1


async def test_a_stream_cut_at_any_byte_never_counts_as_complete() -> None:
    def reply(cut_at: int | None) -> Reply:
        return Reply(Thinks("Hm"), Says("안녕"), Calls("Read", {"file_path": "é"}), cut_at=cut_at)

    once = replace(QUICK, busy_retries=0)
    cuts = range(1, 1900, 37)
    with MessagesServer(*[reply(cut) for cut in cuts], reply(None)) as server:
        settings = replace(settings_for(server.url), retry=once)
        async with client_of(settings) as client:
            for cut in cuts:
                heard = await hear(client)
                assert isinstance(heard.error, TruncatedStreamError), f"cut at {cut}"
                for block in heard.blocks:
                    assert not isinstance(block, ToolUse) or block.input == {"file_path": "é"}
            heard = await hear(client)
    assert heard.finish.stop_reason is StopReason.TOOL_USE


async def test_a_cut_inside_tool_json_gives_no_tool_use() -> None:
    reply = Reply(Says("I write."), Calls("Write", None, '{"file_path":', Cut()))
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert isinstance(heard.error, TruncatedStreamError)
    assert heard.blocks == [TextBlock("I write.")]


async def test_thinking_that_is_not_signed_is_shown_and_dropped() -> None:
    with MessagesServer(Reply(Thinks("Hm", signed=False), Says("Hi"))) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.blocks == [TextBlock("Hi")]


@pytest.mark.parametrize("json", ['{"file_path": ', "[1]", "nonsense", '{"a": NaN}'])
async def test_bad_tool_json_becomes_an_input_error(json: str) -> None:
    reply = Reply(Says("I try."), Calls("Read", None, json), Calls("Read", {"file_path": "b"}))
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    _, bad, good = heard.blocks
    assert isinstance(bad, ToolUse)
    assert bad.input_error
    assert bad.input == {}
    assert isinstance(good, ToolUse)
    assert good.input == {"file_path": "b"}


async def test_max_tokens_inside_a_tool_use_gives_no_complete_one() -> None:
    reply = Reply(
        Says("I write."),
        Calls("Write", None, '{"file_path":"x"', unfinished=True),
        stop_reason="max_tokens",
    )
    with MessagesServer(reply) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.blocks == [TextBlock("I write.")]
    assert heard.finish.stop_reason is StopReason.MAX_TOKENS


async def test_what_this_version_does_not_know_is_passed_over() -> None:
    unknown = (
        Event({"type": "content_block_start", "index": 9, "content_block": {"type": "hologram"}}),
        Event({"type": "content_block_delta", "index": 9, "delta": {"type": "beam", "text": "x"}}),
        Event({"type": "content_block_stop", "index": 9}),
        Event({"type": "weather_report", "sky": "blue"}),
        RawBytes(b": a comment\n\nevent: odd\ndata: 5\n\ndata: [DONE]\n\n"),
        ping(),
        ping(),
    )
    with MessagesServer(Reply(*unknown, Says("Hi"), *unknown, stop_reason="bored")) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.blocks == [TextBlock("Hi")]
    assert heard.finish.stop_reason is StopReason.UNKNOWN
    assert heard.finish.stop_detail == "bored"


async def test_a_stream_without_end_after_the_last_event_ends_all_the_same() -> None:
    message_stop = RawBytes(b'event: message_stop\ndata: {"type": "message_stop"}\n\n')
    with MessagesServer(Reply(Says("Hi"), message_stop, Silence())) as server:
        async with client_of(server) as client:
            heard = await hear(client)
            await server.requests[0].disconnected.opened()
    assert heard.text == "Hi"
    assert heard.error is None


async def test_silence_before_the_headers_is_tried_once_more_then_told() -> None:
    with MessagesServer() as server:
        server.always(NoAnswer())
        async with client_of(impatient(server)) as client:
            heard = await hear(client)
    assert isinstance(heard.error, ModelTimeoutError)
    assert "silent" in str(heard.error)
    assert len(server.requests) == 2


async def test_silence_right_after_the_headers_is_tried_once_more_then_told() -> None:
    with MessagesServer() as server:
        server.always(Reply(Silence()))
        async with client_of(impatient(server)) as client:
            heard = await hear(client)
    assert isinstance(heard.error, ModelTimeoutError)
    assert len(server.requests) == 2


async def test_a_silent_stream_that_the_test_holds_can_be_cancelled() -> None:
    latch = Latch()
    with MessagesServer(Reply(Says("Half", latch))) as server:
        async with client_of(server) as client:
            stream = client.stream(ask())
            assert isinstance(await anext(stream), RequestCounted)
            assert await anext(stream) == TextChunk("Half")
            waiting = asyncio.ensure_future(anext(stream))
            await latch.reached.opened()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await server.requests[0].disconnected.opened()


async def test_an_address_where_nobody_listens_is_named() -> None:
    with MessagesServer() as server:
        url = server.url
    async with client_of(settings_for(url)) as client:
        heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert url in str(heard.error)
    assert len(heard.retries) == QUICK.connection_retries


async def test_an_unknown_host_is_offline() -> None:
    async with client_of(settings_for("http://nowhere.invalid")) as client:
        heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert "http://nowhere.invalid" in str(heard.error)


async def test_https_to_a_port_that_speaks_http_is_told_at_once() -> None:
    def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with client_of(settings_for(f"https://127.0.0.1:{port}")) as client:
            heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert f"https://127.0.0.1:{port}" in str(heard.error)
    assert heard.retries == []


async def test_a_signature_that_the_service_refuses_does_not_brick_the_session() -> None:
    """A history from another endpoint: the name of the model is the same, its key is not."""
    earlier = AssistantMessage((ThinkingBlock("Hm", "foreign", MODEL), TextBlock("Hi")))
    options = ServerOptions(violations_expected=True)
    with MessagesServer(Reply(Says("Fine")), options=options) as server:
        async with client_of(server) as client:
            heard = await hear(client, ask("Hello", earlier, "More"))
    assert heard.text == "Fine"
    assert len(server.requests) == 2


@pytest.fixture
def authority(tmp_path: Path) -> ssl.SSLContext:
    """A private certificate for localhost; SSL_CERT_FILE is up to the test."""
    program = require("openssl")
    command = (
        f"{program} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
        f"-keyout {tmp_path}/key.pem -out {tmp_path}/cert.pem"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


async def test_ssl_cert_file_is_honoured(
    authority: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with MessagesServer(Reply(Says("Hi")), options=ServerOptions(tls=authority)) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert heard.text == "Hi"


async def test_an_unknown_certificate_names_the_setting(authority: ssl.SSLContext) -> None:
    with MessagesServer(options=ServerOptions(tls=authority)) as server:
        async with client_of(server) as client:
            heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert "SSL_CERT_FILE" in heard.error.way_out
    assert heard.retries == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://user:pa55word@127.0.0.1:1", "a SOCKS proxy"),
        ("gopher://user:pa55word@127.0.0.1:1", "could not be prepared"),
        ("http://user:pa55word@[::1", "could not be prepared"),
    ],
)
async def test_a_proxy_of_no_use_is_told_once_with_a_way_out(
    proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    async with client_of(settings_for("https://docs.example")) as client:
        heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert heard.retries == []
    assert words in str(heard.error)
    assert "PROXY" in heard.error.way_out
    assert "pa55word" not in str(heard.error) + heard.error.way_out


async def test_a_certificate_file_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "none.pem")
    monkeypatch.setenv("SSL_CERT_FILE", missing)
    async with client_of(settings_for("https://localhost:1")) as client:
        heard = await hear(client)
    assert isinstance(heard.error, OfflineError)
    assert missing in str(heard.error)
