"""From the raw events of a streamed message to ``ModelEvent``s. Pure.

Texts are joined once, tool JSON is parsed once at the end of its block, and what this version does
not know (events, blocks, deltas, stop reasons) is passed over.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, assert_never

from midturn_core.ids import new_id
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
    RedactedThinkingBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    Usage,
)

_NOTHING: JsonObject = {}

MAX_DEPTH = 100
"""Objects and lists within each other in a tool's input; deeper ones could not be sent back."""

_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


@dataclass(slots=True)
class _OpenText:
    parts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _OpenThinking:
    signature: str
    parts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _OpenRedacted:
    data: str


@dataclass(slots=True)
class _OpenToolUse:
    id: str
    name: str
    given: JsonObject
    """What came with the start of the block; some gateways send the whole input there."""
    parts: list[str] = field(default_factory=list[str])


_OpenBlock: TypeAlias = _OpenText | _OpenThinking | _OpenRedacted | _OpenToolUse


class StreamAccumulator:
    """Follows one message. ``take`` every raw event in order until ``complete``.

    ``model`` is the name that was asked for: it is noted on thinking blocks as their signer.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._open: dict[int, _OpenBlock] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason = StopReason.UNKNOWN
        self._stop_detail = ""
        self.complete = False
        """``message_stop`` has come."""

    def take(self, event: JsonObject) -> Sequence[ModelEvent]:
        """What this raw event means; empty for what is unknown or says nothing yet."""
        match event.get("type"):
            case "content_block_delta":
                return self._delta(_index(event), _object(event, "delta"))
            case "content_block_start":
                return self._start(_index(event), _object(event, "content_block"))
            case "content_block_stop":
                return self._stop(_index(event))
            case "message_start":
                self._count(_object(_object(event, "message"), "usage"))
                return (RequestCounted(self._usage_so_far()),)
            case "message_delta":
                self._end(_object(event, "delta"))
                self._count(_object(event, "usage"))
            case "message_stop":
                return self._finish()
            case _:
                pass
        return ()

    def _start(self, index: int, block: JsonObject) -> Sequence[ModelEvent]:
        match block.get("type"):
            case "text":
                self._open[index] = _OpenText()
                return self._text(index, _string(block, "text"))
            case "thinking":
                self._open[index] = _OpenThinking(_string(block, "signature"))
                return self._thinking(index, _string(block, "thinking"))
            case "redacted_thinking":
                self._open[index] = _OpenRedacted(_string(block, "data"))
            case "tool_use":
                use_id = _string(block, "id") or new_id("toolu")
                name = _string(block, "name")
                self._open[index] = _OpenToolUse(use_id, name, _object(block, "input"))
                return (ToolUseStarting(use_id, name),)
            case _:
                self._open.pop(index, None)
        return ()

    def _delta(self, index: int, delta: JsonObject) -> Sequence[ModelEvent]:
        match delta.get("type"):
            case "text_delta":
                return self._text(index, _string(delta, "text"))
            case "thinking_delta":
                return self._thinking(index, _string(delta, "thinking"))
            case "input_json_delta":
                block = self._open.get(index)
                if isinstance(block, _OpenToolUse):
                    block.parts.append(_string(delta, "partial_json"))
            case "signature_delta":
                block = self._open.get(index)
                if isinstance(block, _OpenThinking):
                    block.signature = _string(delta, "signature")
            case _:
                pass
        return ()

    def _text(self, index: int, text: str) -> Sequence[ModelEvent]:
        block = self._open.get(index)
        if not text or not isinstance(block, _OpenText):
            return ()
        block.parts.append(text)
        return (TextChunk(text),)

    def _thinking(self, index: int, text: str) -> Sequence[ModelEvent]:
        block = self._open.get(index)
        if not text or not isinstance(block, _OpenThinking):
            return ()
        block.parts.append(text)
        return (ThinkingChunk(text),)

    def _stop(self, index: int) -> Sequence[ModelEvent]:
        block = self._open.pop(index, None)
        match block:
            case None:
                return ()
            case _OpenText(parts):
                return (BlockFinished(TextBlock("".join(parts))),) if parts else ()
            case _OpenThinking(signature, parts):
                if not signature:
                    return ()  # the service would refuse it back
                thinking = ThinkingBlock("".join(parts), signature, self._model)
                return (BlockFinished(thinking),)
            case _OpenRedacted(data):
                return (BlockFinished(RedactedThinkingBlock(data, self._model)),)
            case _OpenToolUse():
                return (BlockFinished(_tool_use(block)),)
            case _:
                assert_never(block)

    def _end(self, delta: JsonObject) -> None:
        reason = delta.get("stop_reason")
        if not isinstance(reason, str):
            return
        details = _object(delta, "stop_details")
        self._stop_detail = (
            _string(details, "explanation")
            or _string(details, "category")
            or _string(delta, "stop_sequence")
        )
        try:
            self._stop_reason = StopReason(reason)
        except ValueError:
            self._stop_reason = StopReason.UNKNOWN
            self._stop_detail = self._stop_detail or reason

    def _count(self, usage: JsonObject) -> None:
        """Counts are cumulative, and a later event may leave some of them out."""
        for name in _USAGE_FIELDS:
            value = usage.get(name)
            if isinstance(value, int):
                self._usage[name] = value

    def _finish(self) -> Sequence[ModelEvent]:
        self.complete = True
        texts = [index for index, block in self._open.items() if isinstance(block, _OpenText)]
        ending = [event for index in sorted(texts) for event in self._stop(index)]
        usage = self._usage_so_far()
        return (*ending, MessageFinished(self._stop_reason, usage, self._stop_detail))

    def _usage_so_far(self) -> Usage:
        return Usage(*(self._usage.get(name, 0) for name in _USAGE_FIELDS))


def _tool_use(block: _OpenToolUse) -> ToolUse:
    text = "".join(block.parts)
    try:
        value = _decoded(text) if text.strip() else dict(block.given)
        _check_sendable(value)
    except (ValueError, RecursionError) as error:
        reason = f"the input is not valid JSON ({error or 'nested too deeply'})"
        return ToolUse(block.id, block.name, input_error=reason)
    if not isinstance(value, dict):
        return ToolUse(block.id, block.name, input_error="the input is not a JSON object")
    return ToolUse(block.id, block.name, value)


def _decoded(text: str) -> JsonValue:
    value: JsonValue = json.loads(text, parse_constant=_refuse_constant)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_sendable(value: JsonValue) -> None:
    """The history goes back as JSON: ``1e999`` reads as infinity, which no JSON can say again."""
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, float) and not math.isfinite(item):
                raise ValueError("a number is too large")
        if not inner:
            return
        level = inner
    raise ValueError(f"more than {MAX_DEPTH} levels of objects and lists")


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1


def _object(event: JsonObject, key: str) -> JsonObject:
    value = event.get(key)
    return value if isinstance(value, dict) else _NOTHING


def _string(event: JsonObject, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
