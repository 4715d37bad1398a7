"""A tool result whole, as /expand shows it."""

from __future__ import annotations

from rich.text import Text

from midturn_cli.render.blocks import ExpandedBlock
from midturn_cli.render.call_rows import RULE, detail_rows, label
from midturn_cli.render.cells import wrap_hard
from midturn_cli.render.theme import Theme
from midturn_cli.render.words import sign, took

MAX_ROWS = 4_000
"""Of one result; more of them would only push the rest of the transcript out of the scrollback."""


def expanded_rows(block: ExpandedBlock, theme: Theme, width: int) -> list[Text]:
    """A heading, then every row behind a rule; beyond ``MAX_ROWS`` the middle is left out."""
    inner = width - len(RULE) - 1
    text = [Text(row) for line in block.text.split("\n") for row in wrap_hard(line, inner)]
    rows = text if block.text else []
    rows += detail_rows(block.diff, theme, inner, max_rows=MAX_ROWS)
    ruled = [Text.assemble((RULE, theme.panel), row) for row in _bounded(rows, theme)]
    return [_heading(block, theme, width), *ruled]


def _heading(block: ExpandedBlock, theme: Theme, width: int) -> Text:
    which = "" if block.number == 1 else f" · number {block.number}, counted from the newest"
    after = f" {sign(block.outcome)}{took(block.duration_ms)}{which}"
    room = max(width - len(after), 12)
    return Text.assemble(label(block.call, theme, room, in_panel=False), (after, theme.dim))


def _bounded(rows: list[Text], theme: Theme) -> list[Text]:
    if not rows:
        return [Text("(empty)", theme.dim)]
    if len(rows) <= MAX_ROWS:
        return rows
    half = MAX_ROWS // 2
    left_out = len(rows) - 2 * half
    mark = Text(f"… {left_out} rows left out …", theme.warning)
    return [*rows[:half], mark, *rows[-half:]]
