"""The Markdown form: to be read, and to be put into notes and issues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from markdown_it import MarkdownIt

from midturn_cli.export.transcript import (
    Answer,
    Call,
    DescribeCall,
    Entry,
    TextKind,
    Transcript,
    UserText,
    entries,
)
from midturn_cli.export.words import (
    call_content,
    call_diff,
    call_line,
    head_rows,
    picture_line,
    title,
)
from midturn_cli.fence import code_span, fenced
from midturn_cli.render.clean import clean
from midturn_core.model.messages import ImageBlock

_HEADINGS = {
    TextKind.PROMPT: "You",
    TextKind.MID_TURN: "You, while it was at work",
    TextKind.NOTE: "Midturn to the model",
    TextKind.SUMMARY: "Summary: from here on the model knew only this of what is above",
}
_PROBE = "the-end-of-an-answer"


def to_markdown(transcript: Transcript, describe: DescribeCall) -> str:
    head = transcript.head
    rows = (f"- {name}: {code_span(value)}" for name, value in head_rows(head))
    blocks = [f"# {_escaped(title(head))}", "\n".join(rows)]
    answering = False
    for entry in entries(transcript, describe):
        if isinstance(entry, UserText | ImageBlock):
            answering = False
        elif not answering:
            answering = True
            blocks.append("## Model")
        blocks += _entry(entry)
    return "\n\n".join(blocks) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    match entry:
        case UserText(kind, text):
            yield f"## {_HEADINGS[kind]}"
            yield _quoted(clean(text, expand_tabs=False))
        case ImageBlock():
            yield _quoted(_escaped(picture_line(entry)))
        case Answer(text):
            yield _contained(clean(text, expand_tabs=False).strip("\n"))
        case Call():
            yield from _call(entry)
        case _:
            assert_never(entry)


def _call(call: Call) -> Iterator[str]:
    line = call_line(call)
    yield (
        " ".join(filter(None, (f"**{_escaped(line.tool)}**", code_span(line.title), line.mark)))
        + f" ({_escaped(line.outcome)})"
    )
    for bounded, language in ((call_diff(call), "diff"), (call_content(call), "text")):
        if bounded is not None:
            yield fenced(bounded.text, language)
            if bounded.left_out:
                yield f"*{bounded.left_out}*"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def _contained(text: str) -> str:
    """An answer as it is, unless it leaves something open that would swallow what follows."""
    tokens = MarkdownIt().parse(f"{text}\n\n{_PROBE}")
    last = tokens[-3:]
    closed = [token.type for token in last] == ["paragraph_open", "inline", "paragraph_close"]
    own = closed and last[1].content == _PROBE and last[0].level == 0
    return text if own else _quoted(text)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|" else c for c in text)
