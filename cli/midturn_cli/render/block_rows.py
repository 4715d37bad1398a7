"""Finished blocks as rows of text; answers are rendered by ``markdown_pieces``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from midturn_cli.render.blocks import (
    AnswerEnd,
    AnswerText,
    Block,
    CallBlock,
    EchoBlock,
    ExpandedBlock,
    GreetingBlock,
    NoticeBlock,
    OutputBlock,
    PanelFooter,
    PanelTitle,
    PromptBlock,
    RemarkBlock,
    ShellBlock,
    TableBlock,
    ThoughtBlock,
    TurnEndBlock,
)
from midturn_cli.render.call_rows import call_rows, panel_footer_rows, panel_title_rows
from midturn_cli.render.canvas import Canvas
from midturn_cli.render.cells import wrap_hard
from midturn_cli.render.expanded_rows import expanded_rows
from midturn_cli.render.theme import Theme
from midturn_cli.render.words import turn_end
from midturn_core.events import NoticeLevel, TurnEndReason

MAX_PROMPT_ROWS = 40
MAX_SHELL_ROWS = 200
MAX_NOTICE_CHARS = 4_000

RowBlock: TypeAlias = (
    PromptBlock
    | EchoBlock
    | ThoughtBlock
    | CallBlock
    | ExpandedBlock
    | PanelTitle
    | PanelFooter
    | NoticeBlock
    | RemarkBlock
    | OutputBlock
    | TableBlock
    | ShellBlock
    | GreetingBlock
    | TurnEndBlock
)
"""Every block but the pieces of an answer."""


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """Keys that are named where they help, as people read them; empty: it is not named."""

    expand: str = ""
    cancel: str = ""


NO_KEYS = ShownKeys()


@dataclass(frozen=True, slots=True)
class Look:
    """How everything is rendered: on which canvas, in which colours, with which keys."""

    canvas: Canvas
    theme: Theme
    keys: ShownKeys = NO_KEYS


def render_block(block: RowBlock, look: Look, width: int) -> str:
    """Whole lines of ANSI text."""
    return look.canvas.render(_renderables(block, look, width), width)


def needs_gap(block: Block, before: Block | None) -> bool:
    """Whether an empty row stands between two neighbouring blocks."""
    match block:
        case RemarkBlock() | PanelFooter() | AnswerEnd():
            return False
        case AnswerText():
            return before is not None
        case CallBlock():
            return not block.in_panel
        case NoticeBlock() | ThoughtBlock():
            return before is not None and not isinstance(before, (NoticeBlock, ThoughtBlock))
        case OutputBlock() | ShellBlock() | TableBlock():
            return not isinstance(before, EchoBlock)
        case _:
            return before is not None


def _renderables(block: RowBlock, look: Look, width: int) -> list[RenderableType]:
    theme = look.theme
    match block:
        case CallBlock():
            return [*call_rows(block, theme, width, look.keys.expand)]
        case ExpandedBlock():
            return [*expanded_rows(block, theme, width)]
        case PanelTitle():
            return [*panel_title_rows(block, theme, width, look.canvas.wrap)]
        case PanelFooter():
            return [*panel_footer_rows(block, theme, width, look.canvas.wrap)]
        case TableBlock():
            return _table(block, theme)
        case ShellBlock():
            return [*_shell(block, theme, width)]
        case GreetingBlock():
            return [*_greeting(block, look, width)]
        case _:
            return [*_text_rows(block, look, width)]


def _text_rows(
    block: PromptBlock
    | EchoBlock
    | ThoughtBlock
    | NoticeBlock
    | RemarkBlock
    | OutputBlock
    | TurnEndBlock,
    look: Look,
    width: int,
) -> list[Text]:
    theme = look.theme
    match block:
        case PromptBlock():
            return _prompt(block, look, width)
        case EchoBlock():
            rows = _shortened(wrap_hard_lines(block.text, width - 3))
            return _marked("❯ ", theme.dim, rows, theme.accent)
        case ThoughtBlock():
            return [Text(f"thought for {max(round(block.seconds), 1)} s", f"{theme.dim} italic")]
        case NoticeBlock():
            return _notice(block, look, width)
        case RemarkBlock():
            return look.canvas.wrap(Text(block.text[:MAX_NOTICE_CHARS], theme.dim), width - 1)
        case OutputBlock():
            style = theme.bad if block.error else ""
            if len(block.text) > MAX_NOTICE_CHARS:
                return [Text(row, style) for row in wrap_hard_lines(block.text, width - 1)]
            return look.canvas.wrap(Text(block.text, style), width - 1)
        case TurnEndBlock():
            style = theme.bad if block.reason is TurnEndReason.FAILED else theme.warning
            return look.canvas.wrap(Text(turn_end(block)[:MAX_NOTICE_CHARS], style), width - 1)
        case _:
            assert_never(block)


def wrap_hard_lines(text: str, width: int) -> list[str]:
    return [row for line in text.split("\n") for row in wrap_hard(line, width)]


def _wrap_lines(text: str, look: Look, width: int) -> list[str]:
    """Broken at blanks where possible; a very long text anywhere, which is much faster."""
    if len(text) > MAX_NOTICE_CHARS:
        return wrap_hard_lines(text, width)
    return [row.plain for line in text.split("\n") for row in look.canvas.wrap(Text(line), width)]


def _prompt(block: PromptBlock, look: Look, width: int) -> list[Text]:
    theme = look.theme
    rows = _shortened(_wrap_lines(block.text, look, width - 3))
    marked = _marked("❯ ", theme.accent, rows, theme.prompt)
    if block.where:
        marked.append(Text(f"  {block.where}", theme.dim))
    return marked


def _shortened(rows: list[str]) -> list[str]:
    """What the user entered; its middle is left out when it is long."""
    if len(rows) <= MAX_PROMPT_ROWS:
        return rows
    left_out = len(rows) - MAX_PROMPT_ROWS + 1
    return [*rows[: MAX_PROMPT_ROWS - 6], f"… {left_out} more rows …", *rows[-5:]]


def _notice(block: NoticeBlock, look: Look, width: int) -> list[Text]:
    theme = look.theme
    mark, style = {
        NoticeLevel.INFO: ("· ", theme.dim),
        NoticeLevel.WARNING: ("! ", theme.warning),
        NoticeLevel.ERROR: ("✗ ", theme.bad),
    }[block.level]
    text = block.text
    if len(text) > MAX_NOTICE_CHARS:
        text = f"{text[:MAX_NOTICE_CHARS]} … ({len(text) - MAX_NOTICE_CHARS} more characters)"
    rows = look.canvas.wrap(Text(text, style), width - 3)
    return [
        Text.assemble((mark if first else "  ", style), row)
        for first, row in ((index == 0, row) for index, row in enumerate(rows))
    ]


def _marked(mark: str, mark_style: str, rows: list[str], style: str) -> list[Text]:
    return [
        Text.assemble((mark if index == 0 else " " * len(mark), mark_style), (row, style))
        for index, row in enumerate(rows)
    ]


def _shell(block: ShellBlock, theme: Theme, width: int) -> list[Text]:
    lines = wrap_hard_lines(block.output, width - 3) if block.output else []
    rows = [Text(f"  {row}") for row in lines[-MAX_SHELL_ROWS:]]
    if len(lines) > MAX_SHELL_ROWS:
        rows.insert(0, Text(f"  … {len(lines) - MAX_SHELL_ROWS} rows above", theme.dim))
    if block.exit_code is None:
        rows.append(Text("  interrupted", theme.warning))
    elif block.exit_code != 0:
        rows.append(Text(f"  exit code {block.exit_code}", theme.bad))
    elif not rows:
        rows.append(Text("  (no output)", theme.dim))
    return rows


def _table(block: TableBlock, theme: Theme) -> list[RenderableType]:
    table = Table(
        box=None, show_header=any(block.header), header_style=theme.dim, padding=(0, 2, 0, 0)
    )
    columns = max([len(block.header), *(len(row) for row in block.rows)], default=0)
    for index in range(columns):
        header = block.header[index] if index < len(block.header) else ""
        table.add_column(Text(header), overflow="fold")
    for row in block.rows:
        table.add_row(*(Text(cell) for cell in row))
    parts: list[RenderableType] = [Text(block.title, "bold")] if block.title else []
    if columns:
        parts.append(table)
    return [*parts, Text(block.footer, theme.dim)] if block.footer else parts


def _greeting(block: GreetingBlock, look: Look, width: int) -> list[Text]:
    theme = look.theme
    demo = ("  DEMO", theme.demo) if block.status.demo else ""
    title = Text.assemble(
        ("Midturn", "bold"), f" {block.version}", demo, (f"  {block.folder}", theme.dim)
    )
    # Model and mode stand in the status row, right below.
    hints = [Text(hint, theme.dim) for hint in block.hints]
    return [row for text in (title, *hints) for row in look.canvas.wrap(text, width - 1)]
