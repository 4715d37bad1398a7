"""Rows of tool calls: finished blocks, panels, live rows, diffs and other details."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, assert_never

from rich.text import Text

from midturn_cli.render.blocks import (
    CallBlock,
    CallInfo,
    CallResult,
    GroupPlace,
    LiveCall,
    PanelFooter,
    PanelTitle,
)
from midturn_cli.render.cells import cell_width, cut, wrap_hard
from midturn_cli.render.diff_rows import diff_rows
from midturn_cli.render.theme import Theme
from midturn_cli.render.words import (
    elapsed,
    panel_footer,
    panel_remarks,
    panel_title,
    sign,
    told_already,
    took,
)
from midturn_core.events import CallPhase
from midturn_core.model.messages import (
    DiffDetail,
    Outcome,
    OutputDetail,
    TodoDetail,
    ToolDetail,
    TranscriptDetail,
)

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_HZ = 10
MAX_DIFF_ROWS = 40
MAX_OUTPUT_ROWS = 10
RULE = "│ "
MAX_COLUMN = 60
"""Cells; a longer call does not push the signs of the others further to the right."""
EXPAND_HINT = " · /expand shows all"

Wrap: TypeAlias = Callable[[Text, int], list[Text]]
"""A text as rows of at most so many cells."""

_GROUP_RULES = {
    GroupPlace.ALONE: RULE,
    GroupPlace.FIRST: "┌ ",
    GroupPlace.MIDDLE: "├ ",
    GroupPlace.LAST: "└ ",
}
"""A bracket around calls that ran together; its end is the row of the last one."""

_TODO_SIGNS = {"completed": "[x]", "in_progress": "[>]"}


def spinner(now: float) -> str:
    """A one-cell glyph that depends on time alone."""
    return SPINNER[int(now * SPINNER_HZ) % len(SPINNER)]


def call_rows(block: CallBlock, theme: Theme, width: int, expand_key: str = "") -> list[Text]:
    """A finished call: a row of a panel (S3.12, S3.13) or a block of its own (S3.14). What is cut
    tells of the key that shows it whole, if there is one.
    """
    hint = f" · {expand_key} or /expand shows all" if expand_key else EXPAND_HINT
    if block.in_panel:
        first, *rest = _panel_call(block, theme, width - len(RULE), hint)
        return [
            Text.assemble((_GROUP_RULES[block.place], theme.panel), first),
            *(Text.assemble((RULE, theme.panel), row) for row in rest),
        ]
    result = block.result
    rows = [_head(block, theme, width)]
    rows += _long_receipt(result, theme, width, 2)
    finding = result.error or result.summary
    if finding:
        style = theme.bad if result.error else theme.dim
        arrow = Text.assemble(("  → ", theme.dim), (cut(finding, width - 5), style))
        rows.append(arrow)
    return [*rows, *_indented(_finished_detail(result, theme, width - 4, hint), 4)]


def _panel_call(block: CallBlock, theme: Theme, width: int, hint: str) -> Iterator[Text]:
    result = block.result
    yield _head(block, theme, width)
    indent = len(block.call.position) + 1
    yield from _long_receipt(result, theme, width, indent)
    if result.error:
        yield Text.assemble((" " * indent, ""), (cut(result.error, width - indent), theme.bad))
    yield from _indented(_finished_detail(result, theme, width - indent, hint), indent)


def _finished_detail(result: CallResult, theme: Theme, width: int, hint: str) -> list[Text]:
    return detail_rows(result.detail, theme, width, hint=hint)


def _head(block: CallBlock, theme: Theme, width: int) -> Text:
    result, in_panel = block.result, block.in_panel
    style = theme.good if result.outcome is Outcome.SUCCEEDED else theme.bad
    suffix = Text.assemble(
        (f"{'  ' if in_panel else ' '}{sign(result.outcome)}", style),
        (took(result.duration_ms), theme.dim),
    )
    remarks = [result.summary] if in_panel and not result.error else []
    told = told_already(result.outcome, result.error, result.receipt)
    if result.outcome not in (Outcome.SUCCEEDED, Outcome.FAILED) and not told:
        remarks.append(result.outcome.value)
    remarks += ["retried"] if result.retried else []
    remarks += [] if _is_long(result.receipt, width) else [result.receipt]
    for remark in filter(None, remarks):
        suffix.append(f" · {cut(remark, max(width // 3, 12))}", theme.dim)
    room = max(width - suffix.cell_len, 12)
    name = label(block.call, theme, room, in_panel=in_panel)
    if in_panel:
        column = min(max(map(cell_width, block.labels), default=0), MAX_COLUMN, room)
        name.pad_right(max(column - name.cell_len, 0))
    return Text.assemble(name, suffix)


def _is_long(receipt: str, width: int) -> bool:
    return cell_width(receipt) > width // 4


def _long_receipt(result: CallResult, theme: Theme, width: int, indent: int) -> list[Text]:
    """What was allowed or why not, on rows of its own: a rule is shown whole."""
    if not _is_long(result.receipt, width):
        return []
    rows = wrap_hard(result.receipt, width - indent)
    return _indented([Text(row, theme.dim) for row in rows], indent)


def label(call: CallInfo, theme: Theme, room: int, *, in_panel: bool) -> Text:
    """``[2/4] Read: path`` in a panel, ``[Read: path]`` alone; at most ``room`` cells."""
    before, after = (f"{call.position} ", "") if in_panel else ("[", "]")
    name = cut(f"{call.name}: " if call.title else call.name, room - len(before) - len(after))
    title = cut(call.title, room - len(before) - len(after) - cell_width(name))
    return Text.assemble((before, theme.dim), (name, theme.accent), title, (after, theme.dim))


def panel_title_rows(block: PanelTitle, theme: Theme, width: int, wrap: Wrap) -> list[Text]:
    return _ruled([Text(panel_title(block), "bold")], theme, width, wrap)


def live_title_row(block: PanelTitle, theme: Theme, width: int) -> Text:
    """The title above calls of which none is final yet; one row."""
    title = cut(panel_title(block), width - len(RULE))
    return Text.assemble((RULE, theme.panel), (title, "bold"))


def panel_footer_rows(block: PanelFooter, theme: Theme, width: int, wrap: Wrap) -> list[Text]:
    """Two lines, each on as many rows as it needs; what else it saved stands apart (D34)."""
    total, other_way = panel_footer(block)
    rows = _ruled([Text(total), Text(other_way, theme.dim)], theme, width, wrap)
    for remark in panel_remarks(block):
        rows += wrap(Text(remark, theme.dim), width)
    return rows


def _ruled(lines: Sequence[Text], theme: Theme, width: int, wrap: Wrap) -> list[Text]:
    return [
        Text.assemble((RULE, theme.panel), row)
        for line in lines
        for row in wrap(line, width - len(RULE))
    ]


def live_call_row(live: LiveCall, theme: Theme, width: int, now: float) -> Text:
    """A call in the live region: a spinner and what it does, or its result while it is held."""
    in_panel = live.call.count >= 2
    if live.result is not None:
        mark = sign(live.result.outcome)
        suffix = took(live.result.duration_ms)
    elif live.phase is CallPhase.RUNNING:
        mark = spinner(now)
        note = f" · {cut(live.note, width // 2)}" if live.note else ""
        suffix = f" {elapsed(now - live.started)}{note}"
    else:
        asks = live.phase is CallPhase.ASKING
        mark = "?" if asks else "·"
        suffix = " asks you" if asks else " waiting"
    room = max(width - 2 - cell_width(suffix), 12)
    name = label(live.call, theme, room, in_panel=in_panel)
    return Text.assemble((f"{mark} ", theme.accent), name, (suffix, theme.dim))


def detail_rows(
    detail: ToolDetail | None,
    theme: Theme,
    width: int,
    max_rows: int = MAX_DIFF_ROWS,
    hint: str = "",
) -> list[Text]:
    """What a tool did, in rows; a cut says how much is missing, and ``hint`` after it."""
    match detail:
        case None:
            return []
        case DiffDetail():
            return _cut_rows(diff_rows(detail, theme, width), max_rows, hint, theme)
        case OutputDetail():
            tail = detail.tail[-min(max_rows, MAX_OUTPUT_ROWS) :]
            above = detail.lines_total - len(tail)
            cut_off = [Text(f"… {above} lines above{hint}", theme.dim)] if above > 0 else []
            return [*cut_off, *(Text(cut(line, width), theme.dim) for line in tail)]
        case TodoDetail():
            return [
                Text(
                    f"{_TODO_SIGNS.get(item.status, '[ ]')} {cut(item.text, width - 4)}",
                    theme.dim if item.status == "completed" else "",
                )
                for item in detail.items
            ]
        case TranscriptDetail():
            return []  # the summary says how much there is, and /expand shows it
        case _:
            assert_never(detail)


def _cut_rows(rows: list[Text], max_rows: int, hint: str, theme: Theme) -> list[Text]:
    if len(rows) <= max_rows:
        return rows
    shown = max(max_rows - 1, 0)
    return [*rows[:shown], Text(f"… {len(rows) - shown} more rows{hint}", theme.dim)]


def _indented(rows: list[Text], indent: int) -> list[Text]:
    return [Text.assemble((" " * indent, ""), row) for row in rows]
