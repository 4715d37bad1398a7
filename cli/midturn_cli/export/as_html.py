"""The HTML form: one file with colours that runs nothing and loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TypeAlias, assert_never

from midturn_cli.export.bounds import Bounded
from midturn_cli.export.transcript import (
    Answer,
    Call,
    DescribeCall,
    Entry,
    Head,
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
from midturn_cli.render.clean import clean
from midturn_core.model.messages import ImageBlock

MarkdownToHtml: TypeAlias = Callable[[str], str]
"""Markdown of others (cleaned) as HTML that refers to nothing and runs nothing."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Should anything slip through all the same, a browser neither runs nor loads it."""
_LABELS = {
    TextKind.PROMPT: "you",
    TextKind.MID_TURN: "you, while it was at work",
    TextKind.NOTE: "Midturn to the model",
    TextKind.SUMMARY: "summary: from here on the model knew only this of what is above",
}
_STYLES = """\
:root { color-scheme: light dark; --text: #1f2328; --back: #ffffff; --dim: #59636e;
  --accent: #0550ae; --good: #1a7f37; --bad: #cf222e; --shade: #f6f8fa; --line: #d1d9e0;
  --yellow: #7d4e00; --blue: #0969da; --magenta: #8250df; --cyan: #1b7c83; }
body { color: var(--text); background: var(--back); max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
pre, code, .call { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono",
  "Noto Sans Mono CJK KR", monospace; font-size: 0.85rem; }
pre { background: var(--shade); padding: 0.6rem 0.8rem; overflow-x: auto; tab-size: 4; }
h1 { font-size: 1.3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; color: var(--dim); }
dd { margin: 0; }
.said { border-left: 3px solid var(--accent); padding-left: 0.8rem; margin: 1.5rem 0;
  white-space: pre-wrap; font-weight: 600; }
.note, .summary { border-color: var(--dim); font-weight: 400; color: var(--dim); }
.label, .target, .cut { color: var(--dim); font-size: 0.8rem; font-weight: 400; }
.label { display: block; }
.call { border-left: 1px solid var(--line); padding-left: 0.8rem; margin: 0.6rem 0; }
.tool { color: var(--accent); }
.good, .added { color: var(--good); }
.bad, .removed { color: var(--bad); }
.outcome, .hunk, .bright_black { color: var(--dim); }
.red, .bright_red { color: var(--bad); }
.green, .bright_green { color: var(--good); }
.yellow, .bright_yellow { color: var(--yellow); }
.blue, .bright_blue { color: var(--blue); }
.magenta, .bright_magenta { color: var(--magenta); }
.cyan, .bright_cyan { color: var(--cyan); }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: 0.2rem 0.6rem; }
@media (prefers-color-scheme: dark) {
:root { --text: #e6edf3; --back: #0d1117; --dim: #9198a1; --accent: #79c0ff; --good: #3fb950;
  --bad: #ff7b72; --shade: #161b22; --line: #3d444d; --yellow: #d29922; --blue: #79c0ff;
  --magenta: #d2a8ff; --cyan: #56d4dd; }
}
"""


def to_html(transcript: Transcript, describe: DescribeCall, html_of: MarkdownToHtml) -> str:
    heading = escape(title(transcript.head))
    body = "\n".join(
        block for entry in entries(transcript, describe) for block in _entry(entry, html_of)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{heading}</title>\n<style>\n{_STYLES}</style>\n</head>\n<body>\n"
        f"<h1>{heading}</h1>\n{_head(transcript.head)}\n{body}\n</body>\n</html>\n"
    )


def _head(head: Head) -> str:
    cells = (f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in head_rows(head))
    return f"<dl>{''.join(cells)}</dl>"


def _entry(entry: Entry, html_of: MarkdownToHtml) -> Iterator[str]:
    match entry:
        case UserText(kind, text):
            label = f'<span class="label">{_LABELS[kind]}</span>'
            shown = escape(clean(text).strip("\n"))
            yield f'<div class="said {kind.value}">{label}{shown}</div>'
        case ImageBlock():
            yield f'<div class="said note">{escape(picture_line(entry))}</div>'
        case Answer(text):
            yield f'<div class="answer">{html_of(clean(text))}</div>'
        case Call():
            yield from _call(entry)
        case _:
            assert_never(entry)


def _call(call: Call) -> Iterator[str]:
    line = call_line(call)
    style = "good" if line.succeeded else "bad"
    yield (
        f'<div class="call"><span class="tool">{escape(line.tool)}</span> {escape(line.title)} '
        f'<span class="{style}">{line.mark}</span> '
        f'<span class="outcome">({escape(line.outcome)})</span>'
    )
    if (diff := call_diff(call)) is not None:
        yield _pre("".join(map(_diff_line, diff.text.split("\n"))), diff)
    if (content := call_content(call)) is not None:
        # Folded: results are long, and the line above says what came of the call.
        yield f"<details><summary>result</summary>{_pre(escape(content.text), content)}</details>"
    yield "</div>"


def _pre(inner: str, bounded: Bounded) -> str:
    cut = f'<div class="cut">{bounded.left_out}</div>' if bounded.left_out else ""
    return f"<pre>{inner}</pre>{cut}"


def _diff_line(line: str) -> str:
    if line.startswith("@@"):
        style = "hunk"
    elif line.startswith("+") and not line.startswith("+++ "):
        style = "added"
    elif line.startswith("-") and not line.startswith("--- "):
        style = "removed"
    else:
        return f"{escape(line)}\n"
    return f'<span class="{style}">{escape(line)}</span>\n'
