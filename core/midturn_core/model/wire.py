"""Requests in the JSON of the Messages API. Pure: values in, a JSON object out.

The history is expected to be valid (``Conversation`` sees to that); what depends on the request
itself is decided here: which thinking the asked model takes back, where the cache marks stand, and
which features beyond the core of the API are used.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from midturn_core.model.client import ModelRequest, ToolDefinition
from midturn_core.model.messages import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    JsonValue,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    UserBlock,
    UserMessage,
)
from midturn_core.pictures import described

WireObject: TypeAlias = "dict[str, JsonValue]"

CACHED_USER_MESSAGES = 2
"""Marks at the end of the history: one to write the grown prefix, one to find the last one again.

With those of the tools and the system prompt that makes 4, the most that the service takes.
"""

MAX_PICTURES = 20
"""With more of them in one request the service takes smaller ones only."""
MAX_PICTURES_ENCODED = 24 * 1024 * 1024
"""Characters of all pictures in one request; the service takes 32 MB altogether."""

_ADAPTIVE_SINCE = (4, 6)
_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_FOREIGN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ABOUT_PICTURES = re.compile(r"image|vision|multimodal")
_REFUSAL = re.compile(
    r"not (?:support|permit|allow|recogni)|unsupported|unknown|unexpected|unrecogni|invalid"
    r"|extra inputs|does not match",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WireFeatures:
    """What is used of the API beyond its core; a gateway may lack any of it."""

    caching: bool = True
    thinking: bool = True
    effort: bool = True
    thinking_history: bool = True
    """Thinking of earlier messages goes back to the model that signed it."""
    refused_pictures: frozenset[str] = frozenset()
    """The digests of pictures that the endpoint did not take: a note goes in their place, so that
    they do not block every later turn."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The pictures of one request. Those in neither do not fit into it any more."""

    sent: Mapping[ImageBlock, str]
    """Each with its base64 form."""
    refused: frozenset[ImageBlock]


def without_refused(
    features: WireFeatures, refusal: str, request: WireObject
) -> WireFeatures | None:
    """The features without the one that the text of a 400 refuses; None when it names none.

    Of pictures, those that were said last are what it refuses.

    Only what ``request`` really used counts, so that a refusal is never answered by sending the
    same request again.
    """
    text = refusal.lower()
    if _ABOUT_PICTURES.search(text) and (newest := _newest_pictures(request)):
        return replace(features, refused_pictures=features.refused_pictures | newest)
    if not _REFUSAL.search(text):
        return None
    if "cache_control" in text and features.caching:
        return replace(features, caching=False)
    if text.startswith("messages"):
        is_thinking = features.thinking_history and "thinking" in text
        return replace(features, thinking_history=False) if is_thinking else None
    if ("effort" in text or "output_config" in text) and "output_config" in request:
        return replace(features, effort=False)
    if "thinking" in text and "thinking" in request:
        return replace(features, thinking=False)
    return None


def build_request(request: ModelRequest, features: WireFeatures | None = None) -> WireObject:
    """The body of ``POST /v1/messages`` for a streamed answer."""
    used = features or WireFeatures()
    system = [_text(request.system)] if request.system.strip() else []
    tools = [_tool(tool) for tool in request.tools]
    pictures = _encode_pictures(request.messages, used)
    contents = (_message(message, request.model, used, pictures) for message in request.messages)
    messages = [(role, content) for role, content in contents if content]
    if used.caching:
        _mark_cache(system, tools, [content for role, content in messages if role == "user"])
    body: WireObject = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "stream": True,
        "messages": [{"role": role, "content": [*content]} for role, content in messages],
    }
    if system:
        body["system"] = [*system]
    if tools:
        body["tools"] = [*tools]
    if used.thinking and supports_adaptive_thinking(request.model):
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if used.effort and request.effort:
        body["output_config"] = {"effort": request.effort}
    return {key: _encodable(value) for key, value in body.items()}


def supports_adaptive_thinking(model: str) -> bool:
    """Whether the model decides by itself how much to think; judged by its name."""
    match = _VERSION.search(model)
    if match is None:
        return False
    return (int(match[1]), int(match[2] or 0)) >= _ADAPTIVE_SINCE


def _mark_cache(
    system: list[WireObject], tools: list[WireObject], user_contents: list[list[WireObject]]
) -> None:
    for blocks in (system, tools, *user_contents[-CACHED_USER_MESSAGES:]):
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}


def _tool(tool: ToolDefinition) -> WireObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
    }


def _encode_pictures(messages: Sequence[Message], features: WireFeatures) -> _Encoded:
    sent: dict[ImageBlock, str] = {}
    refused: set[ImageBlock] = set()
    room = MAX_PICTURES_ENCODED
    for picture in _pictures_newest_first(messages):
        encoded = base64.b64encode(picture.data).decode("ascii")
        if features.refused_pictures and _digest(encoded) in features.refused_pictures:
            refused.add(picture)
            continue
        room -= len(encoded)
        if room < 0 or len(sent) == MAX_PICTURES:
            break
        sent[picture] = encoded
    return _Encoded(sent, frozenset(refused))


def _pictures_newest_first(messages: Sequence[Message]) -> Iterator[ImageBlock]:
    """Each once."""
    found = (
        block
        for message in reversed(messages)
        for block in reversed(message.blocks)
        if isinstance(block, ImageBlock)
    )
    return iter(dict.fromkeys(found))


def _newest_pictures(request: WireObject) -> frozenset[str]:
    """The digests of the pictures in the last message of a request that has any."""
    messages = request["messages"]
    for message in reversed(messages if isinstance(messages, list) else []):
        content = message["content"] if isinstance(message, dict) else None
        digests = {
            _digest(str(source["data"]))
            for block in (content if isinstance(content, list) else [])
            if isinstance(block, dict) and isinstance(source := block.get("source"), dict)
        }
        if digests:
            return frozenset(digests)
    return frozenset()


def _digest(encoded: str) -> str:
    return hashlib.sha256(encoded.encode("ascii")).hexdigest()


def _message(
    message: Message, model: str, features: WireFeatures, pictures: _Encoded
) -> tuple[str, list[WireObject]]:
    match message:
        case UserMessage(blocks):
            return "user", _user_content(blocks, pictures)
        case AssistantMessage(blocks):
            return "assistant", _assistant_content(blocks, model, features)
        case _:
            assert_never(message)


def _user_content(blocks: Iterable[UserBlock], pictures: _Encoded) -> list[WireObject]:
    results: list[WireObject] = []
    said: list[WireObject] = []
    for block in blocks:
        match block:
            case ToolUseResult():
                results.append(_tool_result(block))
            case TextBlock(text):
                if text.strip():
                    said.append(_text(text))
            case ImageBlock():
                said.append(_picture(block, pictures))
            case _:
                assert_never(block)
    return results + said


def _picture(picture: ImageBlock, pictures: _Encoded) -> WireObject:
    encoded = pictures.sent.get(picture)
    if encoded is None:
        why = "was refused by the service" if picture in pictures.refused else "is no longer sent"
        return _text(f"[The picture {picture.name} ({described(picture)}) {why}.]")
    source: WireObject = {"type": "base64", "media_type": picture.media_type, "data": encoded}
    return {"type": "image", "source": source}


def _tool_result(result: ToolUseResult) -> WireObject:
    block: WireObject = {
        "type": "tool_result",
        "tool_use_id": result.tool_use_id,
        "content": result.content,
    }
    if result.is_error:
        # The service refuses a failure that says nothing.
        block["content"] = result.content if result.content.strip() else "Error: no message"
        block["is_error"] = True
    return block


def _assistant_content(
    blocks: Iterable[AssistantBlock], model: str, features: WireFeatures
) -> list[WireObject]:
    content: list[WireObject] = []
    for block in blocks:
        match block:
            case TextBlock(text):
                if text.strip():
                    content.append(_text(text))
            case ThinkingBlock(thinking, signature, signer):
                if signature and signer == model and features.thinking_history:
                    content.append(
                        {"type": "thinking", "thinking": thinking, "signature": signature}
                    )
            case RedactedThinkingBlock(data, signer):
                if signer == model and features.thinking_history:
                    content.append({"type": "redacted_thinking", "data": data})
            case ToolUse():
                content.append(_tool_use(block))
            case _:
                assert_never(block)
    while content and content[-1]["type"] in ("thinking", "redacted_thinking"):
        content.pop()
    return content


def _tool_use(use: ToolUse) -> WireObject:
    # A model can invent a name that the service does not take back.
    name = _FOREIGN_NAME.sub("_", use.name)[:64] or "unknown"
    return {"type": "tool_use", "id": use.id, "name": name, "input": dict(use.input)}


def _text(text: str) -> WireObject:
    return {"type": "text", "text": text}


def _encodable(value: JsonValue) -> JsonValue:
    """The value without lone surrogates, which have no UTF-8 form (file names, odd output)."""
    match value:
        case str():
            return _without_lone_surrogates(value)
        case list():
            return [_encodable(item) for item in value]
        case dict():
            return {_without_lone_surrogates(key): _encodable(item) for key, item in value.items()}
        case _:
            return value


def _without_lone_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
