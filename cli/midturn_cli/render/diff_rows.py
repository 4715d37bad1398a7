"""A change of a file as rows with line numbers; short of room it is the context that goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from midturn_cli.render.cells import wrap_hard
from midturn_cli.render.theme import Theme
from midturn_core.model.messages import DiffDetail

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
CONTEXT_STEPS = (None, 1, 0)
"""How many unchanged lines stand beside a change, from most to least; None: all there are."""


@dataclass(frozen=True, slots=True)
class _Line:
    """``text`` begins with its sign; a removed line has its old number. None is a gap."""

    number: int
    text: str

    @property
    def changed(self) -> bool:
        return self.text[0] in "+-"


def diff_rows(
    detail: DiffDetail, theme: Theme, width: int, context: int | None = None
) -> list[Text]:
    """All rows, with at most ``context`` unchanged lines beside each change."""
    lines: Sequence[_Line | None] = list(_lines(detail.unified))
    if context is not None:
        lines = list(_near_changes(lines, context))
    return [row for line in lines for row in _rows(line, theme, width)]


def fitting_diff_rows(detail: DiffDetail, theme: Theme, width: int, room: int) -> list[Text]:
    """As much context as leaves every change visible in ``room`` rows; more rows than that only
    when the changes alone do not fit.
    """
    rows: list[Text] = []
    for context in CONTEXT_STEPS:
        rows = diff_rows(detail, theme, width, context)
        if len(rows) <= room:
            break
    return rows


def _lines(unified: str) -> Iterator[_Line | None]:
    old = new = 0
    in_hunk = False
    for line in unified.split("\n"):
        if hunk := _HUNK.match(line):
            if in_hunk:
                yield None
            old, new = int(hunk[1]), int(hunk[2])
            in_hunk = True
        elif not in_hunk or not line:
            continue
        else:
            yield _Line(old if line[0] == "-" else new, line)
            old += line[0] != "+"
            new += line[0] != "-"


def _near_changes(lines: Sequence[_Line | None], context: int) -> Iterator[_Line | None]:
    """A gap stands where lines between two kept ones are left out."""
    changes = [n for n, line in enumerate(lines) if line is not None and line.changed]
    kept = {near for n in changes for near in range(max(n - context, 0), n + context + 1)} & {
        n for n, line in enumerate(lines) if line is not None
    }
    before: int | None = None
    for n in sorted(kept):
        if before is not None and n != before + 1:
            yield None
        yield lines[n]
        before = n


def _rows(line: _Line | None, theme: Theme, width: int) -> Iterator[Text]:
    if line is None:
        yield Text("   ⋮", theme.dim)
        return
    style = {"+": theme.added, "-": theme.removed}.get(line.text[0], theme.dim)
    mark = f"{line.number:>5} {line.text[0]} "
    for row in wrap_hard(line.text[1:], width - len(mark)):
        yield Text(f"{mark}{row}".rstrip(), style)
        mark = " " * len(mark)
