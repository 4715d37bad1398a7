"""The words about a session and its calls that every document for readers uses, cleaned."""

from __future__ import annotations

from dataclasses import dataclass

from midturn_cli.export.bounds import Bounded, bounded_diff, bounded_result
from midturn_cli.export.transcript import Call, Head
from midturn_cli.render.clean import clean, one_line, reveal_line
from midturn_cli.render.words import duration, sign
from midturn_core.model.messages import ImageBlock, Outcome, ToolUseResult


def title(head: Head) -> str:
    return f"Midturn session {one_line(head.session_id)}"


def head_rows(head: Head) -> list[tuple[str, str]]:
    """What is said of the session as a whole: names and values."""
    rows = (
        ("folder", reveal_line(head.folder)),
        ("started", one_line(head.started)),
        ("exported", f"{head.exported}, by Midturn {head.version}"),
        ("model", reveal_line(head.model)),
        ("tokens", f"{head.usage.context_tokens:,}"),
    )
    return [(name, value) for name, value in rows if value.strip()]


def picture_line(picture: ImageBlock) -> str:
    """Stands where the picture was: documents for readers hold none."""
    size = f"{picture.width} × {picture.height}"
    return f"[picture: {one_line(picture.name)}, {picture.kind}, {size}]"


@dataclass(frozen=True, slots=True)
class CallLine:
    """``tool``, ``title``: what was asked for; ``outcome``: what came of it, in a few words."""

    tool: str
    title: str
    mark: str
    outcome: str
    succeeded: bool


def call_line(call: Call) -> CallLine:
    tool, title = one_line(call.use.name), reveal_line(call.words.title)
    if call.result is None:
        return CallLine(tool, title, "…", "still running when this was written", False)
    result = call.result
    good = result.outcome is Outcome.SUCCEEDED
    return CallLine(tool, title, sign(result.outcome), _outcome(result), good)


def _outcome(result: ToolUseResult) -> str:
    parts = [
        "" if result.outcome is Outcome.SUCCEEDED else result.outcome.value,
        one_line(result.summary),
        duration(result.duration_ms),
        "retried" if result.retried else "",
    ]
    return " · ".join(filter(None, parts))


def call_diff(call: Call) -> Bounded | None:
    """The change that an edit asked for."""
    return None if call.words.diff is None else bounded_diff(clean(call.words.diff.unified))


def call_content(call: Call) -> Bounded | None:
    """What came back; None for nothing, and for a change that worked: its diff says it all."""
    if call.result is None or not call.result.content.strip():
        return None
    if call.words.diff is not None and not call.result.is_error:
        return None
    return bounded_result(clean(call.result.content))
