"""The status row: parts by importance, so that a narrow window loses the least first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from midturn_cli.render.clean import one_line
from midturn_cli.render.theme import Theme
from midturn_cli.render.words import tokens
from midturn_cli.ui_events import StatusInfo

SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class StatusPart:
    importance: int
    text: Text


def status_parts(
    status: StatusInfo,
    theme: Theme,
    running: int = 0,
    queue: str = "",
) -> list[StatusPart]:
    """The parts in reading order; DEMO is always the first. ``queue`` says what waits."""
    mode_style = theme.warning if status.mode == "yolo" else ""
    parts = [
        StatusPart(9, Text("DEMO", theme.demo) if status.demo else Text()),
        StatusPart(4, Text(one_line(status.model), theme.dim)),
        StatusPart(6, Text(one_line(status.mode), mode_style)),
        StatusPart(
            8, Text(_parallel_words(status), theme.accent if status.parallel else theme.dim)
        ),
        StatusPart(1, Text(_slot_words(status), theme.dim)),
        StatusPart(5, Text(f"{running} running" if running else "")),
        StatusPart(7, Text(queue)),
        StatusPart(3, Text(_context_words(status), theme.dim)),
        StatusPart(2, Text(_cost_words(status), theme.dim)),
    ]
    return [part for part in parts if part.text.plain]


def status_row(parts: Sequence[StatusPart], width: int) -> Text:
    """One row of at most ``width`` cells; the least important parts go first."""
    kept = list(parts)
    while len(kept) > 1 and _width(kept) > width:
        kept.remove(min(kept, key=lambda part: part.importance))
    return Text(SEPARATOR, "dim").join(part.text for part in kept)


def _width(parts: Sequence[StatusPart]) -> int:
    return sum(part.text.cell_len for part in parts) + len(SEPARATOR) * (len(parts) - 1)


def _parallel_words(status: StatusInfo) -> str:
    """While calls run together: how many of how many slots they hold (S1.16)."""
    if not status.parallel:
        return "∥ off"
    if status.slots_in_use:
        return f"∥ {status.slots_in_use}/{status.max_concurrency}"
    shares = status.per_batch_max != status.max_concurrency
    return f"∥ on {status.max_concurrency}" + (f"/{status.per_batch_max}" if shares else "")


def _slot_words(status: StatusInfo) -> str:
    """Whose slots they are, when several agents share them."""
    if not status.parallel or len(status.slots_by_agent) < 2:
        return ""
    return ", ".join(f"{one_line(name)} {count}" for name, count in status.slots_by_agent)


def _context_words(status: StatusInfo) -> str:
    return "" if status.context_percent is None else f"context {status.context_percent}%"


def _cost_words(status: StatusInfo) -> str:
    return one_line(status.cost) or (tokens(status.tokens) if status.tokens else "")
