"""Changes of a conversation and read stamps as JSON objects, and back.

Unknown fields are ignored, so that a later version may add some. What only the screen needs of a
tool result is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, assert_never, cast

from midturn_core.conversation import (
    AssistantAdded,
    Cleared,
    Compacted,
    ConversationChange,
    ResultsAdded,
    UserTextAdded,
)
from midturn_core.model.messages import (
    AssistantBlock,
    JsonObject,
    JsonValue,
    Outcome,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserPart,
)
from midturn_core.queue.attachments import AttachmentFinder, AttachmentRef
from midturn_core.read_files import ReadStamp

Data: TypeAlias = dict[str, JsonValue]


def change_to_json(change: ConversationChange) -> tuple[str, Data]:
    """The record type and its data."""
    match change:
        case UserTextAdded(parts, inputs):
            return "user_text", {**_parts_to_json(parts), **_inputs_to_json(inputs)}
        case AssistantAdded(blocks):
            return "assistant", {"blocks": [block_to_json(block) for block in blocks]}
        case ResultsAdded(results, parts, inputs):
            return "results", {
                "results": [result_to_json(result) for result in results],
                **_parts_to_json(parts),
                **_inputs_to_json(inputs),
            }
        case Compacted(texts):
            return "compacted", {"texts": list(texts)}
        case Cleared():
            return "cleared", {}
        case _:
            assert_never(change)


def change_from_json(
    kind: str, data: JsonObject, find: AttachmentFinder
) -> ConversationChange | None:
    """The change of a record; None for a record of another type. ``find`` gives the pictures.

    Raises:
        ValueError: a field is missing or has the wrong type.
    """
    match kind:
        case "user_text":
            return UserTextAdded(_parts_from_json(data, find), _inputs_from_json(data))
        case "assistant":
            return AssistantAdded(tuple(map(_block_from_json, _objects(data, "blocks"))))
        case "results":
            results = tuple(map(_result_from_json, _objects(data, "results")))
            return ResultsAdded(results, _parts_from_json(data, find), _inputs_from_json(data))
        case "compacted":
            return Compacted(_texts(data))
        case "cleared":
            return Cleared()
        case _:
            return None


def _parts_to_json(parts: tuple[UserPart, ...]) -> Data:
    """The texts, and where among them a picture stands; its content is a file of the session."""
    texts: list[JsonValue] = []
    pictures: list[JsonValue] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            pictures.append({"after": len(texts), "file": part.file_id, "name": part.name})
    return {"texts": texts, "pictures": pictures} if pictures else {"texts": texts}


def _parts_from_json(data: JsonObject, find: AttachmentFinder) -> tuple[UserPart, ...]:
    texts = _texts(data)
    placed: list[tuple[int, UserPart]] = [(number, text) for number, text in enumerate(texts)]
    for picture in _objects(data, "pictures") if "pictures" in data else []:
        after = picture.get("after")
        if not isinstance(after, int):
            raise ValueError("after is not a number")
        ref = AttachmentRef(_text(picture, "file"), _text(picture, "name"))
        placed.append((after - 1, find(ref)))
    return tuple(part for _, part in sorted(placed, key=lambda pair: pair[0]))


def _inputs_to_json(inputs: tuple[str, ...]) -> Data:
    return {"inputs": list(inputs)} if inputs else {}


def _inputs_from_json(data: JsonObject) -> tuple[str, ...]:
    uuids = data.get("inputs", [])
    if not isinstance(uuids, list):
        raise ValueError("inputs is not a list")
    return tuple(uuid for uuid in uuids if isinstance(uuid, str))


def stamp_to_json(path: Path, stamp: ReadStamp) -> Data:
    lines: list[JsonValue] = [[first, last] for first, last in stamp.lines_seen]
    return {"path": str(path), "hash": stamp.content_hash, "lines": lines}


def stamp_from_json(data: JsonObject) -> tuple[Path, ReadStamp]:
    """Raises: ValueError: a field is missing or has the wrong type."""
    lines = data.get("lines", [])
    if not isinstance(lines, list):
        raise ValueError("lines is not a list")
    seen: list[tuple[int, int]] = []
    for pair in lines:
        match pair:
            case [int(first), int(last)]:
                seen.append((first, last))
            case _:
                raise ValueError("a line range is not two numbers")
    return Path(_text(data, "path")), ReadStamp(_text(data, "hash"), tuple(seen))


def usage_to_json(usage: Usage) -> Data:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }


def usage_from_json(data: JsonObject) -> Usage:
    """Raises: ValueError: a count is no number."""
    counts = [data.get(key, 0) for key in ("input", "output", "cache_read", "cache_write")]
    numbers = [count for count in counts if isinstance(count, int)]
    if len(numbers) != len(counts):
        raise ValueError("a token count is no number")
    return Usage(*numbers)


def block_to_json(block: AssistantBlock) -> Data:
    """One block of the model's message."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ThinkingBlock(thinking, signature, model):
            return {
                "type": "thinking",
                "thinking": thinking,
                "signature": signature,
                "model": model,
            }
        case RedactedThinkingBlock(data, model):
            return {"type": "redacted_thinking", "data": data, "model": model}
        case ToolUse(tool_use_id, name, tool_input, input_error):
            return {
                "type": "tool_use",
                "id": tool_use_id,
                "name": name,
                "input": dict(tool_input),
                "input_error": input_error,
            }
        case _:
            assert_never(block)


def _block_from_json(data: JsonObject) -> AssistantBlock:
    match data.get("type"):
        case "text":
            return TextBlock(_text(data, "text"))
        case "thinking":
            return ThinkingBlock(
                _text(data, "thinking"), _text(data, "signature"), _text(data, "model")
            )
        case "redacted_thinking":
            return RedactedThinkingBlock(_text(data, "data"), _text(data, "model"))
        case "tool_use":
            tool_input = data.get("input")
            if not isinstance(tool_input, dict):
                raise ValueError("the input of a tool use is not an object")
            error = data.get("input_error")
            return ToolUse(
                _text(data, "id"),
                _text(data, "name"),
                tool_input,
                error if isinstance(error, str) else None,
            )
        case other:
            raise ValueError(f"unknown block type {other!r}")


def result_to_json(result: ToolUseResult) -> Data:
    """What is kept of a tool result."""
    return {
        "tool_use_id": result.tool_use_id,
        "name": result.name,
        "outcome": result.outcome.value,
        "content": result.content,
        "duration_ms": result.duration_ms,
        "summary": result.summary,
        "retried": result.retried,
    }


def _result_from_json(data: JsonObject) -> ToolUseResult:
    duration = data.get("duration_ms", 0)
    return ToolUseResult(
        _text(data, "tool_use_id"),
        _text(data, "name"),
        Outcome(_text(data, "outcome")),
        _text(data, "content"),
        float(duration) if isinstance(duration, int | float) else 0.0,
        _text(data, "summary"),
        retried=data.get("retried") is True,
    )


def _text(data: JsonObject, key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value


def _texts(data: JsonObject) -> tuple[str, ...]:
    values = data.get("texts", [])
    if not isinstance(values, list):
        raise ValueError("texts is not a list")
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(values):
        raise ValueError("one of texts is not a text")
    return tuple(texts)


def _objects(data: JsonObject, key: str) -> list[JsonObject]:
    values = data.get(key)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError(f"{key} is not a list of objects")
    return [cast(Mapping[str, JsonValue], value) for value in values]
