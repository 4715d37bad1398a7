"""The JSON form: everything, as it was, to be read by programs. docs/export.md has its shape."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import assert_never

from midturn_cli.export.transcript import Part, Transcript, UserText, user_parts
from midturn_core.model.messages import (
    AssistantMessage,
    ImageBlock,
    JsonValue,
    ToolUseResult,
    UserMessage,
)
from midturn_core.session.codec import block_to_json, result_to_json, usage_to_json

FORMAT = "midturn-session"
FORMAT_VERSION = 1


def to_json(transcript: Transcript) -> str:
    """One JSON object and a line end. ASCII alone: nothing in it can act on a terminal."""
    head = transcript.head
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "midturn": head.version,
        "session": {"id": head.session_id, "folder": head.folder, "started": head.started},
        "exported": head.exported,
        "model": head.model,
        "usage": usage_to_json(head.usage),
        "messages": [
            message for part in transcript.parts for message in _messages(part, transcript)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _messages(part: Part, transcript: Transcript) -> Iterator[JsonValue]:
    for message in part.messages:
        match message:
            case UserMessage(blocks):
                results: list[JsonValue] = [
                    {"type": "tool_result", **result_to_json(block)}
                    for block in blocks
                    if isinstance(block, ToolUseResult)
                ]
                said: list[JsonValue] = [
                    _said(block) for block in user_parts(part, message, transcript.reminders)
                ]
                yield {"role": "user", "blocks": [*results, *said]}
            case AssistantMessage(blocks):
                yield {"role": "assistant", "blocks": [block_to_json(block) for block in blocks]}
            case _:
                assert_never(message)


def _said(block: UserText | ImageBlock) -> JsonValue:
    match block:
        case UserText(kind, text):
            return {"type": "text", "kind": kind.value, "text": text}
        case ImageBlock():
            return {
                "type": "image",
                "name": block.name,
                "media_type": block.media_type,
                "width": block.width,
                "height": block.height,
                "data": base64.b64encode(block.data).decode("ascii"),
            }
        case _:
            assert_never(block)
