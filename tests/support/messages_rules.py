"""The rules by which the Messages API refuses a request, with words close to the service's.

``check_request`` raises ``RuleBroken`` for the first rule that a body breaks.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from midturn_core.model.messages import JsonObject, JsonValue
from tests.support.messages_script import sign

Blocks: TypeAlias = "list[JsonObject]"

CACHE_MARKS = 4

_TOP_LEVEL = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "thinking"}
    | {"output_config", "metadata", "stop_sequences", "cache_control", "service_tier"}
)
_KNOWN_FIELDS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "image": frozenset({"type", "source", "cache_control"}),
}
_ALLOWED_IN = {
    "user": frozenset({"text", "tool_result", "image"}),
    "assistant": frozenset({"text", "thinking", "redacted_thinking", "tool_use"}),
}
_THINKING = frozenset({"thinking", "redacted_thinking"})
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]+")
PICTURE_LIMIT = 5 * 1024 * 1024
"""Characters of a picture in base64."""
MANY_PICTURES = 20
"""With more in a request, the service takes smaller ones only."""
_PICTURE_MARKS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass
class RuleBroken(Exception):
    """The service's own words for what is wrong."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"

    def __str__(self) -> str:
        return self.message


def check_headers(headers: dict[str, str], key: str) -> None:
    """``headers`` with lower-case names; an empty ``key`` accepts every credential."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
    given = {credential for credential in (bearer, headers.get("x-api-key", "")) if credential}
    if not given or (key and given != {key}):
        raise RuleBroken("invalid x-api-key", 401, "authentication_error")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RuleBroken("content-type: must be application/json")
    if not headers.get("anthropic-version"):
        raise RuleBroken("anthropic-version: header is required")


def check_request(body: JsonObject) -> None:
    for name in body:
        if name not in _TOP_LEVEL:
            raise RuleBroken(f"{name}: Extra inputs are not permitted")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise RuleBroken("model: Field required")
    _check_max_tokens(body)
    _check_thinking_setting(body)
    _check_system(body.get("system"))
    _check_tools(body.get("tools"))
    messages = _check_shape(body)
    for rule in (_check_roles, _check_texts, _check_pictures, _check_tool_uses, _check_results):
        rule(messages)
    _check_thinking(messages, str(body["model"]))
    marks = sum(1 for _ in _cache_marks(dict(body)))
    if marks > CACHE_MARKS:
        raise RuleBroken(
            f"A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {marks}."
        )


@dataclass(frozen=True, slots=True)
class _Message:
    path: str
    role: str
    blocks: Blocks

    def of_type(self, kind: str) -> Blocks:
        return [block for block in self.blocks if block.get("type") == kind]


def _check_max_tokens(body: JsonObject) -> None:
    if "max_tokens" not in body:
        raise RuleBroken("max_tokens: Field required")
    value = body["max_tokens"]
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuleBroken("max_tokens: Input should be a valid integer")
    if value < 1:
        raise RuleBroken("max_tokens: Input should be greater than or equal to 1")


def _check_thinking_setting(body: JsonObject) -> None:
    if "thinking" in body:
        setting = body["thinking"]
        kind = setting.get("type") if isinstance(setting, dict) else None
        if kind not in ("adaptive", "enabled", "disabled"):
            raise RuleBroken(
                f"thinking: Input tag {kind!r} does not match any of the expected tags"
            )
    if "output_config" in body:
        setting = body["output_config"]
        effort = setting.get("effort") if isinstance(setting, dict) else None
        if effort not in _EFFORTS:
            raise RuleBroken(f"output_config.effort: Input should be one of {', '.join(_EFFORTS)}")


def _check_system(system: JsonValue) -> None:
    if system is None or isinstance(system, str):
        return
    for index, block in enumerate(_objects(system, "system")):
        _check_text(block, f"system.{index}", "system")


def _check_tools(tools: JsonValue) -> None:
    if tools is None:
        return
    names: list[str] = []
    for index, tool in enumerate(_objects(tools, "tools")):
        path = f"tools.{index}.custom"
        name = tool.get("name")
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise RuleBroken(f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise RuleBroken(f"{path}.input_schema.type: Input should be 'object'")
        if not isinstance(tool.get("description", ""), str):
            raise RuleBroken(f"{path}.description: Input should be a valid string")
        names.append(name)
    if len(set(names)) != len(names):
        raise RuleBroken("tools: Tool names must be unique.")


def _check_shape(body: JsonObject) -> list[_Message]:
    if "messages" not in body:
        raise RuleBroken("messages: Field required")
    given = _objects(body["messages"], "messages")
    if not given:
        raise RuleBroken("messages: at least one message is required")
    return [_shape(message, f"messages.{index}") for index, message in enumerate(given)]


def _shape(message: JsonObject, path: str) -> _Message:
    role = message.get("role")
    if not isinstance(role, str) or role not in _ALLOWED_IN:
        raise RuleBroken(f"{path}.role: role {role!r} is not supported")
    content = message.get("content")
    if isinstance(content, str):
        blocks: Blocks = [{"type": "text", "text": content}]
    else:
        blocks = _objects(content, f"{path}.content")
    if not blocks:
        raise RuleBroken(f"{path}: all messages must have non-empty content")
    for index, block in enumerate(blocks):
        _check_block(block, role, f"{path}.content.{index}")
    return _Message(path, role, blocks)


def _check_block(block: JsonObject, role: str, path: str) -> None:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN_FIELDS:
        raise RuleBroken(f"{path}: Input tag {kind!r} found using 'type' does not match any tag")
    if kind not in _ALLOWED_IN[role]:
        raise RuleBroken(f"{path}: `{kind}` blocks are not allowed in `{role}` messages")
    for name in block:
        if name not in _KNOWN_FIELDS[kind]:
            raise RuleBroken(f"{path}.{kind}.{name}: Extra inputs are not permitted")


def _check_roles(messages: list[_Message]) -> None:
    if messages[0].role != "user":
        raise RuleBroken('messages: first message must use the "user" role')
    if messages[-1].role != "user":
        raise RuleBroken(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    for before, message in zip(messages, messages[1:], strict=False):
        if before.role == message.role == "assistant":
            raise RuleBroken(f"{message.path}: roles must alternate, two assistant messages meet")


def _check_texts(messages: list[_Message]) -> None:
    for message in messages:
        for index, block in enumerate(message.blocks):
            path = f"{message.path}.content.{index}"
            if block["type"] == "text":
                _check_text(block, path, "messages")
            elif block["type"] == "tool_result":
                _check_result_content(block, path)


def _check_text(block: JsonObject, path: str, where: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise RuleBroken(f"{path}.text.text: Input should be a valid string")
    if not text:
        raise RuleBroken(f"{where}: text content blocks must be non-empty")
    if not text.strip():
        raise RuleBroken(f"{where}: text content blocks must contain non-whitespace text")


def _check_pictures(messages: list[_Message]) -> None:
    count = 0
    for message in messages:
        for index, block in enumerate(message.blocks):
            if block["type"] == "image":
                count += 1
                _check_picture(block, f"{message.path}.content.{index}.image.source")
    if count > MANY_PICTURES:
        raise RuleBroken(
            "messages: At least one of the image dimensions exceed max allowed size for many-image "
            "requests: 2000 pixels"
        )


def _check_picture(block: JsonObject, path: str) -> None:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        raise RuleBroken(f"{path}: Input should be a base64 source")
    media_type, data = source.get("media_type"), source.get("data")
    if not isinstance(media_type, str) or media_type not in _PICTURE_MARKS:
        allowed = ", ".join(f"'{name}'" for name in _PICTURE_MARKS)
        raise RuleBroken(f"{path}.base64.media_type: Input should be {allowed}")
    if not isinstance(data, str) or not data:
        raise RuleBroken(f"{path}.base64.data: Field required")
    if len(data) > PICTURE_LIMIT:
        raise RuleBroken(
            f"{path}.base64: image exceeds 5 MB maximum: {len(data)} bytes > {PICTURE_LIMIT} bytes"
        )
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        raise RuleBroken(f"{path}.base64.data: invalid base64 data") from None
    if not _PICTURE_MARKS[media_type].match(content):
        raise RuleBroken(
            f"{path}.base64.data: The image was specified using the {media_type} media type, but "
            "it does not appear to be one"
        )


def _check_result_content(block: JsonObject, path: str) -> None:
    content = block.get("content", "")
    if isinstance(content, list):
        for index, part in enumerate(_objects(content, f"{path}.content")):
            _check_text(part, f"{path}.content.{index}", "messages")
    elif not isinstance(content, str):
        raise RuleBroken(f"{path}.tool_result.content: Input should be a valid string or list")
    failed = block.get("is_error", False)
    if not isinstance(failed, bool):
        raise RuleBroken(f"{path}.tool_result.is_error: Input should be a valid boolean")
    if failed and not content:
        raise RuleBroken(f"{path}: content cannot be empty if `is_error` is true")


def _check_tool_uses(messages: list[_Message]) -> None:
    seen: set[str] = set()
    for message in messages:
        for use in message.of_type("tool_use"):
            use_id, name = use.get("id"), use.get("name")
            path = f"{message.path}.content.{message.blocks.index(use)}.tool_use"
            if not isinstance(use_id, str) or not _TOOL_USE_ID.fullmatch(use_id):
                raise RuleBroken(f"{path}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
                raise RuleBroken(f"{path}.name: String should match '^[a-zA-Z0-9_-]{{1,128}}$'")
            if not isinstance(use.get("input"), dict):
                raise RuleBroken(f"{path}.input: Input should be a valid dictionary")
            if use_id in seen:
                raise RuleBroken(f"{path}: `tool_use` ids must be unique")
            seen.add(use_id)


def _check_results(messages: list[_Message]) -> None:
    """Exactly one result for each tool use, in the very next message and first in it."""
    nothing = _Message("", "assistant", [])
    for before, message in zip([nothing, *messages], messages, strict=False):
        wanted = [str(use["id"]) for use in before.of_type("tool_use")]
        _check_answers(wanted, message)


def _check_answers(wanted: list[str], message: _Message) -> None:
    given = [str(result.get("tool_use_id")) for result in message.of_type("tool_result")]
    for use_id in given:
        if use_id not in wanted:
            raise RuleBroken(
                f"{message.path}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message."
            )
        if given.count(use_id) > 1:
            raise RuleBroken(
                f"{message.path}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {use_id}"
            )
    missing = [use_id for use_id in wanted if use_id not in given]
    if missing:
        raise RuleBroken(
            f"{message.path}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )
    if any(block["type"] != "tool_result" for block in message.blocks[: len(given)]):
        raise RuleBroken(f"{message.path}: `tool_result` blocks must come first in the content")


def _check_thinking(messages: list[_Message], model: str) -> None:
    for message in messages:
        kinds = [str(block["type"]) for block in message.blocks]
        for index, block in enumerate(message.blocks):
            if kinds[index] in _THINKING:
                _check_signature(block, model, f"{message.path}.content.{index}")
        if not _THINKING.intersection(kinds):
            continue
        if kinds[-1] in _THINKING:
            raise RuleBroken(
                f"{message.path}: The final block in an assistant message cannot be `thinking`."
            )
        if "tool_use" in kinds and kinds[0] not in _THINKING:
            raise RuleBroken(
                f"{message.path}.content.0.type: Expected `thinking` or `redacted_thinking`, "
                f"but found `{kinds[0]}`."
            )


def _check_signature(block: JsonObject, model: str, path: str) -> None:
    if block["type"] == "redacted_thinking":
        name, _, data = str(block.get("data")).rpartition(":")
        if data != sign(model, f"redacted {name}"):
            raise RuleBroken(f"{path}: Invalid `data` in `redacted_thinking` block")
        return
    if not isinstance(block.get("thinking"), str):
        raise RuleBroken(f"{path}.thinking.thinking: Field required")
    if not block.get("signature"):
        raise RuleBroken(f"{path}.thinking.signature: Field required")
    if block["signature"] != sign(model, str(block["thinking"])):
        raise RuleBroken(f"{path}: Invalid `signature` in `thinking` block")


def _cache_marks(value: JsonValue, path: str = "") -> Iterator[str]:
    """The paths of all marks; what a tool's schema or input calls so does not count."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _cache_marks(item, f"{path}.{index}")
    elif isinstance(value, dict):
        mark = value.get("cache_control")
        if mark is not None:
            if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
                raise RuleBroken(
                    f"{path.lstrip('.')}.cache_control.type: Input should be 'ephemeral'"
                )
            yield path
        for name, item in value.items():
            if name not in ("input", "input_schema", "cache_control"):
                yield from _cache_marks(item, f"{path}.{name}")


def _objects(value: JsonValue, path: str) -> Blocks:
    if not isinstance(value, list):
        raise RuleBroken(f"{path}: Input should be a valid list")
    items: Blocks = []
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise RuleBroken(f"{path}.{index}: Input should be an object")
        items.append(item)
    return items
