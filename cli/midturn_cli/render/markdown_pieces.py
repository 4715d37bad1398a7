"""The finished parts of a Markdown answer, and how each is rendered by itself.

Rich puts a separator before a block when the block before it set a flag, which lists, quotes and
tables also do for themselves; a silent leaf before the tokens restores that state.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from markdown_it.token import Token
from rich.console import RenderableType
from rich.markdown import Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text

from midturn_cli.render.answer_markdown import CODE_PADDING, AnswerMarkdown
from midturn_cli.render.canvas import Canvas
from midturn_cli.render.cells import wrap_hard


class _AfterGap(MarkdownElement):
    """A leaf that leaves Rich's separator state as if a block had gone before."""

    new_line: ClassVar[bool] = True


class _AfterNoGap(MarkdownElement):
    new_line: ClassVar[bool] = False


class _BlockMarkdown(AnswerMarkdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **AnswerMarkdown.elements,
        "after_gap": _AfterGap,
        "after_no_gap": _AfterNoGap,
    }


@lru_cache(8)
def _blank_markdown(code_theme: str) -> _BlockMarkdown:
    """Kept, because each new one makes a parser of its own, which costs as much as a paragraph."""
    return _BlockMarkdown("", code_theme)


@dataclass(frozen=True, slots=True)
class BlocksPiece:
    """Finished top-level blocks as parsed tokens."""

    tokens: tuple[Token, ...]
    gap: bool
    """Whether a separator comes before it."""
    source: str
    joined: bool = False
    """It goes on with a list of which the first items are another piece."""

    def renderables(self, code_theme: str) -> list[RenderableType]:
        markdown = copy(_blank_markdown(code_theme))
        state = Token("after_gap" if self.gap else "after_no_gap", "", 0)
        markdown.parsed = [state, *self.tokens]
        return [markdown]


@dataclass(frozen=True, slots=True)
class FencePiece:
    """Some lines of a long code block."""

    language: str
    context: tuple[str, ...]
    """The lines before, which the highlighter must have seen."""
    lines: tuple[str, ...]
    first: bool
    gap: bool

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    def renderables(self, code_theme: str) -> list[RenderableType]:
        start = len(self.context)
        syntax = Syntax(
            "\n".join((*self.context, *self.lines)),
            self.language,
            theme=code_theme,
            word_wrap=True,
            padding=CODE_PADDING,
            line_range=(start + 1, start + len(self.lines)),
        )
        return [Text(""), syntax] if self.gap and self.first else [syntax]


@dataclass(frozen=True, slots=True)
class PlainPiece:
    """Text that is shown as it stands."""

    source: str
    gap: bool


MarkdownPiece: TypeAlias = BlocksPiece | FencePiece | PlainPiece


def leaves_gap(block: Token) -> bool:
    """Whether the top-level block that this token opens asks for a separator after it."""
    return Markdown.elements.get(block.type, MarkdownElement).new_line


def render_piece(piece: MarkdownPiece, canvas: Canvas, width: int, code_theme: str) -> str:
    """Whole lines of ANSI text. Never fails: what cannot be rendered is shown as it stands."""
    if isinstance(piece, PlainPiece):
        return _plain(piece.source, width, piece.gap)
    try:
        text = canvas.render(piece.renderables(code_theme), width)
        joined = isinstance(piece, BlocksPiece) and piece.joined
        return text.removeprefix("\n") if joined else text
    # An isolation wall: a text that a library chokes on must not end the session.
    except Exception:
        return _plain(piece.source, width, piece.gap)


def _plain(source: str, width: int, gap: bool) -> str:
    # Broken anywhere: wrapping the words of a line of a megabyte would take too long.
    lines = source.rstrip("\n").split("\n")
    rows = "".join(row + "\n" for line in lines for row in wrap_hard(line, width))
    return f"\n{rows}" if gap else rows
