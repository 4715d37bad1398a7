"""What stands in the transcript, kept so that it can be rendered again at another width."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from rich.text import Text

from midturn_cli.render.block_rows import Look, RowBlock, render_block
from midturn_cli.render.canvas import trimmed

if TYPE_CHECKING:
    from midturn_cli.render.markdown_pieces import MarkdownPiece

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowsEntry:
    block: RowBlock
    gap: bool


@dataclass(frozen=True, slots=True)
class AnswerEntry:
    piece: MarkdownPiece
    first: bool
    """The first piece of its answer: the presenter decides about the empty row before it."""
    gap: bool


@dataclass(frozen=True, slots=True)
class DroppedEntry:
    rows: int


Entry: TypeAlias = RowsEntry | AnswerEntry | DroppedEntry


def render_entry(entry: Entry, look: Look, width: int) -> str:
    """Whole lines of ANSI text. Never fails: what cannot be rendered is a sentence that says so."""
    try:
        return _rendered(entry, look, width)
    # An isolation wall: one block that cannot be rendered must not end the session.
    except Exception:
        _LOG.exception("a block could not be rendered")
        return "[something could not be shown here; the log file says why]\n"


def _rendered(entry: Entry, look: Look, width: int) -> str:
    match entry:
        case RowsEntry():
            text = trimmed(render_block(entry.block, look, width))
            return f"\n{text}" if entry.gap else text
        case AnswerEntry():
            text = trimmed(_render_piece(entry.piece, look, width))
            if entry.first:
                text = text.lstrip("\n")
            return f"\n{text}" if entry.gap else text
        case DroppedEntry():
            notice = Text(f"[{entry.rows} lines not shown]", look.theme.dim)
            return look.canvas.render([notice], width)
        case _:
            assert_never(entry)


def _render_piece(piece: MarkdownPiece, look: Look, width: int) -> str:
    # Imported late: rich.markdown costs 75 ms that the first paint must not wait for.
    from midturn_cli.render.markdown_pieces import render_piece

    return render_piece(piece, look.canvas, width, look.theme.code)
