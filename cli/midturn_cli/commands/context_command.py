"""/context: what occupies the model's window."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import assert_never

from midturn_cli.commands.arguments import no_arguments
from midturn_cli.commands.command import Command, Use
from midturn_cli.session_status import CONTEXT_WINDOW
from midturn_core.model.messages import (
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
)

BYTES_PER_TOKEN = 4
"""Of UTF-8: near enough for prose and code; the service alone can count."""
PIXELS_PER_TOKEN = 750
MAX_COUNTED_PIXELS = 1_200_000


def context(use: Use) -> None:
    no_arguments(use, "/context")
    engine = use.engine
    definitions = engine.registry.definitions()
    parts = {
        "system prompt": estimate(engine.system_prompt()),
        f"{len(definitions)} tools": sum(
            estimate(f"{tool.name}{tool.description}{json.dumps(dict(tool.input_schema))}")
            for tool in definitions
        ),
        **message_parts(engine.conversation.messages),
    }
    known, guess = engine.agent.context_tokens, sum(parts.values())
    used = known or guess
    rows = [(name, f"~{tokens:,}", _share(tokens, "~")) for name, tokens in parts.items()]
    sign = "" if known else "~"
    rows.append(("in use", f"{sign}{used:,}", _share(used, sign)))
    rows.append(("free", f"~{max(CONTEXT_WINDOW - used, 0):,}", ""))
    counted = "in use: as of the last request" if known else "nothing was counted yet"
    footer = f"window {CONTEXT_WINDOW:,} tokens; ~ is estimated; {counted}; /compact makes room"
    use.table("Context", ("part", "tokens", "of the window"), rows, footer)


def message_parts(messages: Iterable[Message]) -> dict[str, int]:
    """Estimated tokens of the history by kind."""
    parts = {"your messages": 0, "answers": 0, "tool uses": 0, "tool results": 0}
    for message in messages:
        own = "your messages" if isinstance(message, UserMessage) else "answers"
        for block in message.blocks:
            match block:
                case TextBlock(text):
                    parts[own] += estimate(text)
                case ImageBlock():
                    parts[own] += picture_tokens(block)
                case ThinkingBlock():
                    parts["answers"] += estimate(block.thinking)
                case RedactedThinkingBlock():
                    parts["answers"] += estimate(block.data)
                case ToolUse(_, name, tool_input):
                    parts["tool uses"] += estimate(f"{name}{json.dumps(dict(tool_input))}")
                case ToolUseResult():
                    parts["tool results"] += estimate(block.content)
                case _:
                    assert_never(block)
    return parts


def estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", errors="replace")) // BYTES_PER_TOKEN)


def picture_tokens(picture: ImageBlock) -> int:
    """As the service counts: by pixels, after it has made a large picture smaller."""
    pixels = min(picture.width * picture.height, MAX_COUNTED_PIXELS)
    return -(-pixels // PIXELS_PER_TOKEN)


def _share(tokens: int, sign: str) -> str:
    return f"{sign}{100 * tokens / CONTEXT_WINDOW:.1f}%"


CONTEXT = Command("context", "see what fills the model's window", now=context)
