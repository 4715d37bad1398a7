"""What the scripted Messages API answers: replies, faults, and latches to hold them.

A ``Reply`` is a list of items in stream order. ``Says``, ``Thinks`` and ``Calls`` are whole content
blocks; everything else is a single step and may also stand among the parts of a block: a ``Latch``
that the test opens, a ``Pause``, or an end such as ``Cut()``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from midturn_core.model.messages import JsonObject, JsonValue

DEADLINE = 30.0
"""Seconds after which a wait of a test fails; generous, nothing measures it."""

_SIGNING_KEY = b"the key of the scripted service"


def sign(model: str, thinking: str) -> str:
    """The signature of a thinking block; another text or another model has another one."""
    text = f"{model}\0{thinking}".encode("utf-8", "surrogatepass")
    return hmac.new(_SIGNING_KEY, text, hashlib.sha256).hexdigest()


class Gate:
    """Opens once and stays open; may be waited for from any thread and from coroutines."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        return self._event.is_set()

    def open(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_open(self, callback: Callable[[], None]) -> None:
        """Call back, on the opening thread, as soon as it is open."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def wait(self) -> None:
        """Block until it is open.

        Raises:
            AssertionError: it did not open in time.
        """
        if not self._event.wait(DEADLINE):
            raise AssertionError(f"{self._name} did not happen within {DEADLINE:g} s")

    async def opened(self) -> None:
        """Like ``wait``, for a coroutine."""
        try:
            async with asyncio.timeout(DEADLINE):
                await self.until_open()
        except TimeoutError:
            raise AssertionError(f"{self._name} did not happen within {DEADLINE:g} s") from None

    async def until_open(self) -> None:
        """Like ``opened``, however long it takes."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self.on_open(lambda: _call_in(loop, event.set))
        await event.wait()


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)


class Latch:
    """Holds a reply where it stands until the test opens it.

    ``reached`` opens when the stream has come to it: all before it has been sent.
    """

    def __init__(self, name: str = "latch") -> None:
        self.reached = Gate(f"reaching the {name}")
        self.released = Gate(f"the release of the {name}")

    def open(self) -> None:
        self.released.open()


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks: the body has no end."""


@dataclass(frozen=True, slots=True)
class Close:
    """The body ends cleanly here, without ``message_stop``."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing more comes, and the connection stays open."""


@dataclass(frozen=True, slots=True)
class RawBytes:
    """Bytes of the body as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One raw event, known or unknown."""

    data: JsonObject


def ping() -> Event:
    return Event({"type": "ping"})


def error_event(kind: str, message: str) -> Event:
    """An error in mid-stream, such as ``error_event("overloaded_error", "Overloaded")``."""
    return Event({"type": "error", "error": {"type": kind, "message": message}})


Step: TypeAlias = Event | RawBytes | Pause | Latch | Cut | Close | Silence
Part: TypeAlias = str | Step


class Says:
    """A text block; each string is one delta."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts


class Thinks:
    """A thinking block, signed for the model of the request unless ``signed`` is False."""

    def __init__(self, *parts: Part, signed: bool = True) -> None:
        self.parts = parts
        self.signed = signed


@dataclass(frozen=True, slots=True)
class ThinksSecretly:
    """A redacted thinking block for the model of the request."""


class Calls:
    """A tool use. ``parts`` stream its JSON piece by piece in place of ``input``, whether or not
    it is valid. ``unfinished`` leaves out the end of the block.
    """

    def __init__(
        self,
        name: str,
        input: JsonObject | None = None,
        *parts: Part,
        id: str = "",
        unfinished: bool = False,
    ) -> None:
        self.name = name
        self.parts = parts or _halves(json.dumps(dict(input or {})))
        self.id = id
        self.unfinished = unfinished


def _halves(text: str) -> tuple[Part, ...]:
    """The service begins with an empty delta and splits anywhere."""
    middle = len(text) // 2
    return ("", text[:middle], text[middle:])


Item: TypeAlias = Says | Thinks | ThinksSecretly | Calls | Step


class Reply:
    """A streamed message.

    ``before`` is a latch that holds even the headers. ``cut_at`` breaks the connection after so
    many bytes of the body. ``chunk_size`` and ``pace`` send the body in pieces of so many bytes
    with so many seconds between them.
    """

    def __init__(
        self,
        *items: Item,
        stop_reason: str = "",
        stop_details: JsonObject | None = None,
        usage: Mapping[str, int] | None = None,
        before: Latch | None = None,
        cut_at: int | None = None,
        chunk_size: int | None = None,
        pace: float = 0.0,
    ) -> None:
        self.items = items
        self.stop_reason = stop_reason or _natural_stop(items)
        self.stop_details = stop_details
        self.usage = {"input_tokens": 10, "output_tokens": 5, **(usage or {})}
        self.before = before
        self.cut_at = cut_at
        self.chunk_size = chunk_size
        self.pace = pace


def _natural_stop(items: tuple[Item, ...]) -> str:
    return "tool_use" if any(isinstance(item, Calls) for item in items) else "end_turn"


@dataclass(frozen=True, slots=True)
class Failure:
    """A refused request, in the form of the service's errors."""

    status: int
    type: str = "api_error"
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that is no stream, such as a proxy's error page."""

    body: str
    status: int = 200
    content_type: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The request is taken and not a byte comes back."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is closed without an answer."""


Answer: TypeAlias = Reply | Failure | Page | NoAnswer | HangUp


def steps_of(reply: Reply, model: str, number: int) -> Iterator[Step]:
    """The raw steps of a reply to request ``number``."""
    start_usage = {**reply.usage, "output_tokens": 1}
    message: JsonObject = {
        "id": f"msg_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _json(start_usage),
    }
    yield Event({"type": "message_start", "message": dict(message)})
    yield ping()
    index = 0
    for item in reply.items:
        if isinstance(item, Says | Thinks | ThinksSecretly | Calls):
            yield from _block(item, index, model, f"toolu_{number:04d}_{index}")
            index += 1
        else:
            yield item
    delta: dict[str, JsonValue] = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    if reply.stop_details is not None:
        delta["stop_details"] = dict(reply.stop_details)
    output = {"output_tokens": reply.usage["output_tokens"]}
    yield Event({"type": "message_delta", "delta": delta, "usage": _json(output)})
    yield Event({"type": "message_stop"})


def _block(
    item: Says | Thinks | ThinksSecretly | Calls, index: int, model: str, use_id: str
) -> Iterator[Step]:
    match item:
        case Says():
            yield _start(index, {"type": "text", "text": ""})
            yield from _deltas(item.parts, index, "text_delta", "text")
        case Thinks():
            yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
            yield from _deltas(item.parts, index, "thinking_delta", "thinking")
            if item.signed:
                text = "".join(part for part in item.parts if isinstance(part, str))
                yield _delta(index, {"type": "signature_delta", "signature": sign(model, text)})
        case ThinksSecretly():
            data = sign(model, f"redacted {use_id}")
            yield _start(index, {"type": "redacted_thinking", "data": f"{use_id}:{data}"})
        case Calls():
            block: dict[str, JsonValue] = {"type": "tool_use", "id": item.id or use_id}
            yield _start(index, {**block, "name": item.name, "input": {}})
            yield from _deltas(item.parts, index, "input_json_delta", "partial_json")
    if not (isinstance(item, Calls) and item.unfinished):
        yield Event({"type": "content_block_stop", "index": index})


def _deltas(parts: tuple[Part, ...], index: int, kind: str, key: str) -> Iterator[Step]:
    for part in parts:
        yield _delta(index, {"type": kind, key: part}) if isinstance(part, str) else part


def _delta(index: int, delta: dict[str, JsonValue]) -> Event:
    return Event({"type": "content_block_delta", "index": index, "delta": delta})


def _start(index: int, block: dict[str, JsonValue]) -> Event:
    return Event({"type": "content_block_start", "index": index, "content_block": block})


def _json(counts: Mapping[str, int]) -> dict[str, JsonValue]:
    return dict(counts)
