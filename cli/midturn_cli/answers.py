"""What a person may want to take out of a history: answers, and the code blocks in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from midturn_core.model.messages import AssistantMessage, Message


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """``language`` is empty where the answer names none."""

    language: str
    code: str
    """Without the line end of its last line: pasted into a shell, it waits for Enter."""


def answers(messages: Iterable[Message]) -> list[str]:
    """The texts of the model, the newest first; messages of tool uses alone are none."""
    texts = [m.text.strip("\n") for m in messages if isinstance(m, AssistantMessage)]
    return [text for text in reversed(texts) if text.strip()]


def code_blocks(texts: Sequence[str]) -> list[CodeBlock]:
    """The code blocks of Markdown texts: in the order of the texts, in each the last one first."""
    # Imported here: it costs start-up time, and no other command needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt()
    return [
        CodeBlock(token.info.strip().partition(" ")[0], token.content.removesuffix("\n"))
        for text in texts
        for token in reversed(parser.parse(text))
        if token.type in ("fence", "code_block") and token.content.strip()
    ]
