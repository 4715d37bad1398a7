"""One connection to the scripted Messages API, and what it shares with the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from midturn_core.model.messages import JsonObject, JsonValue
from tests.support.messages_rules import RuleBroken, check_headers, check_request
from tests.support.messages_script import (
    Answer,
    Close,
    Cut,
    Event,
    Failure,
    Gate,
    HangUp,
    Latch,
    NoAnswer,
    Page,
    Pause,
    RawBytes,
    Reply,
    Silence,
    steps_of,
)

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}

violations_of_all: list[str] = []
"""What every server of this process refused, except where a test expects it."""


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came in."""

    number: int
    """From 1, refused ones included."""
    path: str
    headers: Mapping[str, str]
    """Lower-case names."""
    body: JsonObject
    connection: int
    """Requests with the same number came over one connection."""
    disconnected: Gate
    """Opens when the client goes away before the answer is complete."""
    answered: Gate
    """Opens when the answer was sent to its end."""

    @property
    def messages(self) -> list[JsonObject]:
        return _objects(self.body.get("messages"))

    @property
    def last_content(self) -> list[JsonObject]:
        """The blocks of the last message."""
        content = self.messages[-1].get("content")
        return (
            [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content)
        )

    @property
    def texts(self) -> list[str]:
        """The text blocks of the last message."""
        return [str(block["text"]) for block in self.last_content if block["type"] == "text"]

    @property
    def results(self) -> list[JsonObject]:
        """The tool results of the last message."""
        return [block for block in self.last_content if block["type"] == "tool_result"]


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


ScriptItem: TypeAlias = Answer | Callable[[RecordedRequest], Answer]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How this server differs from the real service.

    ``key``: the only credential that is accepted; empty accepts any. ``prefix``: a path before
    ``/v1/messages``. ``lacks``: features of the API that this gateway refuses: ``thinking``,
    ``output_config``, ``cache_control``, ``image``. ``violations_expected``: refusals are the test's subject.
    """

    key: str = ""
    prefix: str = ""
    lacks: frozenset[str] = frozenset()
    tls: ssl.SSLContext | None = None
    violations_expected: bool = False


@dataclass
class ServerState:
    """What both threads see; guarded by ``changed``."""

    script: list[ScriptItem]
    always: ScriptItem | None = None
    requests: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    violations: list[str] = field(default_factory=list[str])
    connections: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)


class _BrokenOffError(Exception):
    """The script ends the connection here."""


class ClientConnection:
    """One connection: requests in a row, each answered by the script."""

    def __init__(
        self,
        state: ServerState,
        options: ServerOptions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._state = state
        self._options = options
        self._reader = reader
        self._writer = writer
        self._number = state.connections
        self._early = b""
        """The first byte of the next request, read while watching for the client's end."""

    async def serve(self) -> None:
        try:
            while await self._serve_request():
                pass
        except (_BrokenOffError, ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
                await self._writer.wait_closed()

    async def _serve_request(self) -> bool:
        try:
            head = self._early + await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        self._early = b""
        start, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = start.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await self._reader.readexactly(int(headers.get("content-length", "0")))
        request = self._record(path, headers, raw)
        answer = self._answer_for(method, request)
        await self._send_while_listening(answer, request)
        return True

    def _record(self, path: str, headers: dict[str, str], raw: bytes) -> RecordedRequest:
        try:
            body: JsonValue = json.loads(raw)
        except ValueError:
            body = None
        with self._state.changed:
            number = len(self._state.requests) + 1
            request = RecordedRequest(
                number,
                path,
                headers,
                body if isinstance(body, dict) else {},
                self._number,
                Gate(f"the end of the client of request {number}"),
                Gate(f"the whole answer to request {number}"),
            )
            self._state.requests.append(request)
            self._state.changed.notify_all()
        return request

    def _answer_for(self, method: str, request: RecordedRequest) -> Answer:
        wanted = f"{self._options.prefix}/v1/messages"
        if (method, request.path.partition("?")[0]) != ("POST", wanted):
            return Failure(404, "not_found_error", f"{method} {request.path}: Not Found")
        try:
            check_headers(dict(request.headers), self._options.key)
            self._check_features(request.body)
        except RuleBroken as broken:
            return Failure(broken.status, broken.type, broken.message)
        try:
            check_request(request.body)
        except RuleBroken as broken:
            return self._refuse(broken.message)
        item = self._next_item()
        if item is None:
            return self._refuse(f"request {request.number} comes after the end of the script")
        if isinstance(item, Reply | Failure | Page | NoAnswer | HangUp):
            return item
        try:
            return item(request)
        except Exception as error:  # nobody would see it in this thread
            return self._refuse(f"the script's function failed: {error!r}")

    def _check_features(self, body: JsonObject) -> None:
        for name in ("thinking", "output_config"):
            if name in self._options.lacks and name in body:
                raise RuleBroken(f"{name}: Extra inputs are not permitted")
        if "cache_control" in self._options.lacks and '"cache_control"' in json.dumps(dict(body)):
            raise RuleBroken("system.0.cache_control: Extra inputs are not permitted")
        if "image" in self._options.lacks and '"type": "image"' in json.dumps(dict(body)):
            raise RuleBroken("this model does not support image input")

    def _refuse(self, message: str) -> Failure:
        with self._state.changed:
            self._state.violations.append(message)
        if not self._options.violations_expected:
            violations_of_all.append(message)
        return Failure(400, "invalid_request_error", message)

    def _next_item(self) -> ScriptItem | None:
        with self._state.changed:
            return self._state.script.pop(0) if self._state.script else self._state.always

    async def _send_while_listening(self, answer: Answer, request: RecordedRequest) -> None:
        """Send the answer; notice at once when the client goes away."""
        sending = asyncio.ensure_future(self._send(answer, request))
        listening = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
                request.answered.open()
            elif not await listening:
                request.disconnected.open()
                raise _BrokenOffError
            await sending
            request.answered.open()
            self._early = await listening if listening.done() else b""
        finally:
            for task in (sending, listening):
                task.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)

    async def _send(self, answer: Answer, request: RecordedRequest) -> None:
        match answer:
            case Reply():
                await self._stream(answer, request)
            case Failure(status, kind, message, headers):
                error = {"type": "error", "error": {"type": kind, "message": message}}
                await self._send_whole(status, "application/json", json.dumps(error), headers)
            case Page(body, status, content_type, headers):
                await self._send_whole(status, content_type, body, headers)
            case NoAnswer():
                await asyncio.Event().wait()
            case HangUp():
                raise _BrokenOffError
            case _:
                assert_never(answer)

    async def _send_whole(
        self, status: int, content_type: str, body: str, headers: Mapping[str, str]
    ) -> None:
        data = body.encode()
        self._head(status, {**headers, "content-type": content_type, "content-length": len(data)})
        self._writer.write(data)
        await self._writer.drain()

    def _head(self, status: int, headers: Mapping[str, object]) -> None:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def _stream(self, reply: Reply, request: RecordedRequest) -> None:
        if reply.before is not None:
            await _hold(reply.before)
        body = _Body(self._writer, reply)
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        await self._writer.drain()
        for step in steps_of(reply, str(request.body["model"]), request.number):
            match step:
                case Event(data):
                    await body.send(_sse(data))
                case RawBytes(data):
                    await body.send(data)
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Latch():
                    await _hold(step)
                case Cut():
                    raise _BrokenOffError
                case Silence():
                    await asyncio.Event().wait()
                case Close():
                    break
                case _:
                    assert_never(step)
        await body.end()


class _Body:
    """A chunked body, sent in the pieces and at the pace that the reply asks for."""

    def __init__(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        self._writer = writer
        self._reply = reply
        self._sent = 0

    async def send(self, data: bytes) -> None:
        limit = self._reply.cut_at
        kept = data if limit is None else data[: max(0, limit - self._sent)]
        for piece in _pieces(kept, self._reply.chunk_size):
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._writer.drain()
            if self._reply.pace:
                await asyncio.sleep(self._reply.pace)
        self._sent += len(kept)
        if limit is not None and self._sent >= limit:
            raise _BrokenOffError

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


def _pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    for start in range(0, len(data), size or max(1, len(data))):
        yield data[start : start + (size or len(data))]


async def _hold(latch: Latch) -> None:
    latch.reached.open()
    await latch.released.until_open()


def _sse(data: JsonObject) -> bytes:
    return f"event: {data.get('type', 'message')}\ndata: {json.dumps(dict(data))}\n\n".encode()
