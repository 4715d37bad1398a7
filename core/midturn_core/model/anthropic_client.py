"""``AnthropicClient``: the model behind any endpoint that speaks the Messages API.

The only module that imports ``anthropic`` and ``httpx2``. It does so inside functions and first on
a background thread: the import costs more than a second, which no keystroke and no first paint may
wait for. Raw events are read and accumulated by us; retries are ours, the SDK makes none.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from midturn_core.errors import (
    CredentialRejectedError,
    MissingCredentialError,
    ModelError,
    ModelTimeoutError,
    OfflineError,
    ServiceError,
    TruncatedStreamError,
)
from midturn_core.model.client import ModelEvent, ModelRequest, RequestCounted
from midturn_core.model.client_settings import ClientSettings
from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.model.service_errors import (
    Endpoint,
    ServiceFailure,
    describe_wait,
    fitting_max_tokens,
    read_failure,
    to_error,
)
from midturn_core.model.stream_accumulator import StreamAccumulator
from midturn_core.model.wire import WireFeatures, WireObject, build_request, without_refused

if TYPE_CHECKING:
    import anthropic
    import httpx2

    Stream: TypeAlias = anthropic.AsyncStream[object]

DRAIN_TIMEOUT = 0.5
"""Seconds for the end of the body after the last event; then the connection is not kept."""

_NOTHING: JsonObject = {}

_log = logging.getLogger(__name__)


class AnthropicClient:
    """Answers requests through the Messages API (``ModelClient``).

    One instance belongs to one event loop. A failure is retried by itself as long as nothing of
    an answer was yielded (``RetryPolicy``); each retry is announced by ``RetryScheduled``.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._label = settings.model
        self._connection: Future[_Connection] | None = None
        self._features: dict[str, WireFeatures] = {}

    @property
    def label(self) -> str:
        """The model of the newest request."""
        return self._label

    def preload(self) -> None:
        """Begin to import the SDK on a background thread; returns at once.

        Call it after the first paint; without it the first request does. While it runs keys echo
        later (on two busy cores in 9 to 16 ms instead of 2, one in twenty in 30 to 40). A shorter
        switch interval makes that worse, pauses between the modules make the import several times
        as long.
        """
        self._start_connecting()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The events of one message; see ``ModelClient`` and ``errors`` for what is raised."""
        self._label = request.model
        _require_credential(self._settings)
        retries = 0
        while True:
            began = False
            failure: ModelError
            try:
                async with contextlib.aclosing(self._attempt(request)) as events:
                    async for event in events:
                        began = began or not isinstance(event, RequestCounted)
                        yield event
                return
            except ModelError as error:
                failure = error
            retry = self._settings.retry.next_retry(retries, failure, random.random())
            if began or retry is None:
                raise failure
            _log.info("retry %d in %.1f s: %s", retry.attempt, retry.delay, retry.reason)
            yield retry
            await asyncio.sleep(retry.delay)
            retries += 1

    async def close(self) -> None:
        """Close every connection. A request in progress fails."""
        pending = self._connection
        if pending is not None and pending.done() and pending.exception() is None:
            await pending.result().close()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        connection = await self._connected()
        stream = await self._open(connection, request)
        try:
            async with contextlib.aclosing(connection.read(stream, request.model)) as events:
                async for event in events:
                    yield event
        finally:
            await stream.close()

    async def _open(self, connection: _Connection, request: ModelRequest) -> Stream:
        """Send the request; again without each feature that the endpoint turns out to lack, and
        with less room for the answer where the window has no more.
        """
        while True:
            features = self._features.get(request.model, WireFeatures())
            body = build_request(request, features)
            answer = await connection.open(body)
            if not isinstance(answer, ServiceFailure):
                return answer
            room = fitting_max_tokens(answer.message, request.max_tokens)
            if answer.status in (400, 422) and room is not None:
                _log.warning("the window has room for %d tokens only: %s", room, answer.message)
                request = replace(request, max_tokens=room)
                continue
            fewer = None
            if answer.status in (400, 422):
                fewer = without_refused(features, answer.message, body)
            if fewer is None:
                raise connection.error(answer, request.model)
            _log.warning("the endpoint lacks a feature, going on without: %s", answer.message)
            self._features[request.model] = fewer

    async def _connected(self) -> _Connection:
        return await asyncio.wrap_future(self._start_connecting())

    def _start_connecting(self) -> Future[_Connection]:
        if self._connection is None:
            self._connection = Future()
            # From here on a cancelled waiter cannot cancel the import for the others.
            self._connection.set_running_or_notify_cancel()
            threading.Thread(
                target=_connect,
                args=(self._settings, self._connection),
                name="model-preload",
                daemon=True,
            ).start()
        return self._connection


class _Connection:
    """The SDK's client, and the only place where its exceptions are known."""

    def __init__(self, client: anthropic.AsyncAnthropic, settings: ClientSettings) -> None:
        self._client = client
        self._settings = settings

    async def open(self, body: WireObject) -> Stream | ServiceFailure:
        """Send a request; the failure when the service refuses it.

        Raises:
            ModelError: there is no answer, or none of a Messages API.
        """
        import anthropic

        try:
            with _transport_errors(self._settings):
                stream = await self._client.post(
                    "/v1/messages",
                    cast_to=object,
                    body=body,
                    stream=True,
                    stream_cls=anthropic.AsyncStream[object],
                )
        except anthropic.APIStatusError as error:
            return self._failure(error.status_code, error.body, error.response)
        kind = stream.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in ("text/html", "application/json"):
            await stream.close()
            raise _no_stream(kind, self._settings)
        return stream

    async def read(self, stream: Stream, model: str) -> AsyncGenerator[ModelEvent, None]:
        """The events of an open stream up to the message's end.

        Raises:
            ModelError: the stream broke, ended early, went silent or carried an error.
        """
        accumulator = StreamAccumulator(model)
        events = stream.raw_events(stream.response)
        with _transport_errors(self._settings):
            async for sse in events:
                event = _parse(sse.event, sse.data)
                if event.get("type") == "error":
                    raise self.error(self._failure(0, event, stream.response), model)
                for model_event in accumulator.take(event):
                    yield model_event
                if accumulator.complete:
                    break
            else:
                raise _truncated("The stream ended before the message was complete.")
        await _drain(events)

    def error(self, failure: ServiceFailure, model: str) -> ModelError:
        return to_error(failure, Endpoint(self._settings.address, model))

    async def close(self) -> None:
        await self._client.close()

    def _failure(self, status: int, body: object, response: httpx2.Response) -> ServiceFailure:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if 300 <= status < 400:
            # Not followed: the key would go to an address that nobody has configured.
            body = f"it redirects to {headers.get('location', 'nowhere')}"
        failure = read_failure(status, body, headers, time.time())
        return replace(failure, message=self._settings.redact(failure.message))


def _connect(settings: ClientSettings, result: Future[_Connection]) -> None:
    """Import the SDK and build its client; runs on the preload thread."""
    collects = gc.isenabled()
    # Nothing of what an import creates is garbage; collecting meanwhile costs a sixth more, and
    # each full collection of it later would hold the loop up for 60 ms.
    gc.disable()
    try:
        client = _build_client(settings)
        gc.freeze()
    except Exception as error:  # the wall of this thread: whoever waits for the result gets it
        result.set_exception(_setup_error(error, settings))
    else:
        result.set_result(_Connection(client, settings))
    finally:
        if collects:
            gc.enable()


def _build_client(settings: ClientSettings) -> anthropic.AsyncAnthropic:
    import anthropic
    import httpx2

    if not os.environ.get("ANTHROPIC_LOG"):
        # They would write whole conversations, and addresses with passwords, to our log file.
        for name in ("anthropic", "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
    client = anthropic.AsyncAnthropic(
        api_key=settings.api_key or None,
        auth_token=None if settings.api_key else settings.auth_token,
        base_url=settings.base_url,
        max_retries=0,
        # Gateways look at one header or the other; the SDK sends only `Authorization`.
        default_headers={"x-api-key": settings.api_key} if settings.api_key else None,
        open_telemetry=False,
        http_client=anthropic.DefaultAsyncHttpxClient(
            timeout=httpx2.Timeout(settings.idle_timeout, connect=settings.connect_timeout),
            follow_redirects=False,
        ),
    )
    _ = client.messages  # imports the types of requests and answers
    return client


def _require_credential(settings: ClientSettings) -> None:
    credential = settings.api_key or settings.auth_token
    if not credential:
        raise MissingCredentialError(
            "No API key is set.",
            way_out="Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) in the environment and start "
            "again; `midturn demo` works without one.",
        )
    if not (credential.isascii() and credential.isprintable()) or " " in credential:
        # The HTTP library would quote it in its complaint about the header.
        raise CredentialRejectedError(
            "The API key holds characters that no key has.",
            way_out="Set ANTHROPIC_API_KEY again, without quotes, spaces and line ends.",
        )


@contextlib.contextmanager
def _transport_errors(settings: ClientSettings) -> Generator[None]:
    """Turns what the SDK and the HTTP library raise without an answer into a ``ModelError``."""
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError:
        raise
    except anthropic.APIConnectionError as error:
        raise _transport_error(error.__cause__ or error, settings) from error
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise _transport_error(error, settings) from error
    except (anthropic.AnthropicError, UnicodeDecodeError) as error:
        raise _truncated("The answer arrived damaged.") from error


def _transport_error(error: BaseException, settings: ClientSettings) -> ModelError:
    import httpx2

    match error:
        case httpx2.ConnectTimeout():
            return _offline(f"no answer within {settings.connect_timeout:g} s", settings)
        case httpx2.TimeoutException():
            return ModelTimeoutError(
                f"The service was silent for {describe_wait(settings.idle_timeout)}.",
                way_out="/retry sends the step again.",
            )
        case httpx2.ConnectError() if (problem := _tls_problem(error)) is not None:
            return _tls_error(problem, settings)
        case httpx2.ConnectError() | httpx2.ProxyError():
            return _offline(str(error) or type(error).__name__, settings)
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return _truncated("The connection was lost before the answer was complete.")
        case _:
            return _offline(type(error).__name__, settings)


def _offline(reason: str, settings: ClientSettings) -> OfflineError:
    return OfflineError(
        f"No connection to {settings.address}: {settings.redact(reason)}.",
        way_out="Check the network, HTTPS_PROXY, and ANTHROPIC_BASE_URL or [model] base_url; "
        "then /retry.",
    )


def _no_stream(kind: str, settings: ClientSettings) -> ServiceError:
    error = ServiceError(
        f"{settings.address} answered with {kind}, not with a stream of the Messages API.",
        way_out="Check ANTHROPIC_BASE_URL or [model] base_url.",
    )
    error.retryable = False
    return error


def _truncated(sentence: str) -> TruncatedStreamError:
    return TruncatedStreamError(sentence, way_out="/retry sends the step again.")


def _tls_problem(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _tls_error(problem: ssl.SSLError, settings: ClientSettings) -> OfflineError:
    if isinstance(problem, ssl.SSLCertVerificationError):
        reason = problem.verify_message
    else:
        reason = problem.reason or str(problem)
    error = OfflineError(
        f"No trusted connection to {settings.address}: {reason}.",
        way_out="If the service has a certificate of your own authority, name its file in "
        "SSL_CERT_FILE and start again; otherwise check the address.",
    )
    error.retryable = False
    return error


def _setup_error(error: Exception, settings: ClientSettings) -> ModelError:
    """Nothing of it changes before Midturn starts again."""
    told = _setup_problem(error, settings)
    told.retryable = False
    return told


def _setup_problem(error: Exception, settings: ClientSettings) -> OfflineError:
    certificates = os.environ.get("SSL_CERT_FILE")
    if isinstance(error, OSError) and certificates:
        return OfflineError(
            f"The certificates in SSL_CERT_FILE ({certificates}) cannot be read.",
            way_out="Name a readable file of certificates in PEM form and start again.",
        )
    if "socksio" in str(error):
        return OfflineError(
            "The environment names a SOCKS proxy, for which the package socksio is missing.",
            way_out="Install socksio beside Midturn, or name another proxy in HTTPS_PROXY and "
            "ALL_PROXY, then start again.",
        )
    return OfflineError(
        f"The connection could not be prepared: {settings.redact(str(error)).rstrip('.')}.",
        way_out="Check HTTPS_PROXY, SSL_CERT_FILE and the installation, then start again.",
    )


def _parse(kind: str | None, data: str) -> JsonObject:
    """The JSON of one event; empty for what carries none."""
    if not data or data == "[DONE]":
        return _NOTHING
    try:
        value: JsonValue = json.loads(data)
    except (ValueError, RecursionError) as error:
        if kind == "error":
            return {"type": "error", "error": {"message": data}}
        raise _truncated("The answer arrived damaged.") from error
    return value if isinstance(value, dict) else _NOTHING


async def _drain(events: AsyncIterator[object]) -> None:
    """Read the body to its end, so that the connection can be used again."""
    import httpx2

    with contextlib.suppress(TimeoutError, httpx2.HTTPError, UnicodeDecodeError):
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in events:
                pass
