"""Markdown that is rendered while it arrives: finished blocks once, only the last one again.

Rendering a growing answer as a whole costs its length at every paint. Here the source of what is
not final is all that is kept: it is parsed at whole lines, every top-level block but the last
becomes a piece, and the pieces rendered one after another are byte for byte ``AnswerMarkdown`` of the
whole text. Exceptions: a link reference that is defined after its use stays as written, and
in code blocks of more than ``LONG_FENCE`` lines a colour may differ inside of a string that spans
many lines.

Importing this module imports ``rich.markdown`` (75 ms): the presenter does it when the first answer
begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

from markdown_it.token import Token

from midturn_cli.render.answer_markdown import answer_parser
from midturn_cli.render.canvas import Canvas, live_rows
from midturn_cli.render.markdown_pieces import (
    BlocksPiece,
    FencePiece,
    MarkdownPiece,
    PlainPiece,
    leaves_gap,
    render_piece,
)

LONG_FENCE = 40
"""Lines of an open code block from which on its rows are final before its end."""
FENCE_STEP = 30
FENCE_KEPT = 6
"""Lines at the end of an open code block whose colours may still change."""
FENCE_CONTEXT = 200
"""Lines after which the highlighter starts afresh, so that a step has a bounded cost."""
LONGEST_LINE = 10_000
LONGEST_BLOCK = 200_000
"""Characters; beyond them text is shown as it is: parsing could take any time."""
PORTION = 40
"""Lines of finished blocks that make a piece: what is rendered at once has a bounded cost."""
COST_FACTOR = 5
"""The pause after a parse or a tail render, in multiples of what it took."""
TAIL_SOURCE = 8_000
"""Characters of what is not final beyond which the tail shows only the end, as it is."""
TAIL_END = 2_500

Environment: TypeAlias = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Block:
    """A top-level block of a parse: its tokens, and the source line after it."""

    tokens: tuple[Token, ...]
    end_line: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """The source after the final blocks: whole lines, how many went before them, a half line."""

    lines: list[str]
    shift: int
    partial: str


@dataclass(slots=True)
class _OpenFence:
    """A long code block of which some lines are final already."""

    language: str
    context: tuple[str, ...]
    gap: bool

    def rest(self, opening: Token) -> FencePiece:
        """What the parse of its last lines has left of it."""
        code = opening.content.rstrip()
        lines = tuple(code.split("\n")) if code else ()
        return FencePiece(self.language, self.context, lines, False, self.gap)


@dataclass(slots=True)
class _OpenList:
    """A list of which some items are final already."""

    number: int
    """That of its next item: what is written there does not count."""

    def numbered(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """The tokens of a parse that began with its next item."""
        opening = copy(tokens[0])
        opening.attrs = {**opening.attrs, "start": self.number}
        return (opening, *tokens[1:])


class MarkdownStream:
    """One answer. ``feed`` its text (cleaned), ``take`` what is final, ``tail`` the rest.

    ``clock`` is monotonic, in seconds; it measures what rendering costs.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._parser = answer_parser()
        self._env: Environment = {}
        self._source = ""
        self._fresh: list[str] = []
        self._new_line_came = False
        self._gap = False
        self._fence: _OpenFence | None = None
        self._list: _OpenList | None = None
        self._parse_again = 0.0
        self._tail_again = 0.0
        self._tail_width = 0
        self._tail_behind = False
        self._tail_rows: list[str] = []

    @property
    def tail_behind(self) -> bool:
        """Text came since the tail was rendered last: it should be asked for again."""
        return self._tail_behind

    def feed(self, text: str) -> None:
        self._fresh.append(text)
        self._tail_behind = True
        self._new_line_came = self._new_line_came or "\n" in text

    def take(self, *, at_once: bool = False) -> list[MarkdownPiece]:
        """The pieces that became final. Costs next to nothing when called again too early,
        unless ``at_once``.
        """
        if not self._new_line_came:
            return []
        started = self._clock()
        if started < self._parse_again and not at_once:
            return []
        self._new_line_came = False
        pieces = self._final_pieces(ended=False)
        if pieces:
            # What is final must not be shown a second time in the tail.
            self._tail_again = 0.0
        ended = self._clock()
        self._parse_again = ended + COST_FACTOR * (ended - started)
        return pieces

    def end(self) -> list[MarkdownPiece]:
        """The text is complete: everything that is left."""
        pieces = self._final_pieces(ended=True)
        self._source = ""
        self._fence = None
        return pieces

    def tail(self, canvas: Canvas, width: int, max_rows: int, code_theme: str) -> list[str]:
        """The last rows of what is not final; rendered again only as often as it is cheap."""
        started = self._clock()
        if started >= self._tail_again or width != self._tail_width:
            self._tail_rows = self._render_tail(canvas, width, code_theme)
            self._tail_width = width
            self._tail_behind = False
            ended = self._clock()
            self._tail_again = ended + COST_FACTOR * (ended - started)
        return self._tail_rows[-max_rows:] if max_rows > 0 else []

    def _joined(self) -> str:
        if self._fresh:
            self._source += "".join(self._fresh)
            self._fresh.clear()
        return self._source

    def _final_pieces(self, *, ended: bool) -> list[MarkdownPiece]:
        source = self._joined()
        whole = source if ended else source[: source.rfind("\n") + 1]
        if not whole:
            return []
        if _too_long(whole):
            self._source = source[len(whole) :]
            return self._plain(whole)
        try:
            blocks = _top_level(self._parser.parse(whole, self._env))
        # An isolation wall: broken Markdown is text that is shown as it stands.
        except Exception:
            self._source = source[len(whole) :]
            return self._plain(whole)
        return self._commit(source, whole, blocks, ended=ended)

    def _commit(
        self, source: str, whole: str, blocks: list[_Block], *, ended: bool
    ) -> list[MarkdownPiece]:
        done = blocks if ended else blocks[:-1]
        lines = whole.split("\n")
        pieces: list[MarkdownPiece] = []
        if done:
            pieces = self._pieces_of(done, lines)
            rest = lines[done[-1].end_line :]
            lines = rest
            self._source = "\n".join(rest) + source[len(whole) :]
        if blocks and not ended:
            cut = _Cut(lines, done[-1].end_line if done else 0, source[len(whole) :])
            pieces += self._open_block_step(blocks[-1], cut)
        return pieces

    def _open_block_step(self, block: _Block, cut: _Cut) -> list[MarkdownPiece]:
        match block.tokens[0].type:
            case "fence":
                return self._fence_step(block.tokens[0], cut)
            case "bullet_list_open" | "ordered_list_open":
                return self._list_step(block, cut)
            case _:
                return []

    def _pieces_of(self, done: list[_Block], lines: list[str]) -> list[MarkdownPiece]:
        pieces: list[MarkdownPiece] = []
        if self._fence is not None:
            pieces.append(self._fence.rest(done[0].tokens[0]))
            self._fence = None
            self._gap = True
            done = done[1:]
        elif self._list is not None:
            tokens = self._list.numbered(done[0].tokens)
            pieces.append(BlocksPiece(tokens, True, _source(done[:1], lines), joined=True))
            self._list = None
            self._gap = True
            done = done[1:]
        for some in _in_portions(done):
            tokens = tuple(token for block in some for token in block.tokens)
            pieces.append(BlocksPiece(tokens, self._gap, _source(some, lines)))
            self._gap = leaves_gap(some[-1].tokens[0])
        return pieces

    def _fence_step(self, opening: Token, cut: _Cut) -> list[MarkdownPiece]:
        """Commit the first lines of a long open code block, and forget their source."""
        code = opening.content.split("\n")[:-1]
        final = _last_filled(code, len(code) - FENCE_KEPT)
        if final < FENCE_STEP or (self._fence is None and len(code) <= LONG_FENCE):
            return []
        fence = self._fence or _OpenFence(_language(opening), (), self._gap)
        taken = tuple(code[:final])
        first = self._fence is None
        piece = FencePiece(fence.language, fence.context, taken, first, fence.gap)
        context = fence.context + taken
        fence.context = () if len(context) >= FENCE_CONTEXT else context
        self._fence = fence
        head, *body = cut.lines[_start_line(opening) - cut.shift :]
        self._source = "\n".join([head, *body[final:]]) + cut.partial
        return [piece]

    def _list_step(self, block: _Block, cut: _Cut) -> list[MarkdownPiece]:
        """Commit all items of an open list but the last, and forget their source."""
        items = _items_of(block)
        if len(items) < 2:
            return []
        last = items[-1]
        opening, following = block.tokens[0], block.tokens[last]
        start, end = _start_line(opening) - cut.shift, _start_line(following) - cut.shift
        open_list = self._list or _OpenList(_first_number(opening))
        tokens = open_list.numbered((*block.tokens[:last], block.tokens[-1]))
        source = "\n".join(cut.lines[start:end])
        piece = BlocksPiece(tokens, self._gap, source, joined=self._list is not None)
        self._list = _OpenList(open_list.number + len(items) - 1)
        self._gap = True
        self._source = "\n".join(cut.lines[end:]) + cut.partial
        return [piece]

    def _plain(self, text: str) -> list[MarkdownPiece]:
        piece = PlainPiece(text, self._gap)
        self._gap = True
        self._fence = None
        self._list = None
        return [piece]

    def _render_tail(self, canvas: Canvas, width: int, code_theme: str) -> list[str]:
        source = self._joined()
        if not source.strip():
            return []
        text = "".join(
            render_piece(piece, canvas, width, code_theme) for piece in self._tail_pieces(source)
        )
        return live_rows(text)

    def _tail_pieces(self, source: str) -> list[MarkdownPiece]:
        if len(source) > TAIL_SOURCE or _too_long(source):
            return [PlainPiece(source[-TAIL_END:], self._gap)]
        # A half line must not define a link for the rest of the answer.
        env: Environment = {"references": dict(self._env.get("references", {}))}
        try:
            tokens = self._parser.parse(source, env)
        # The same isolation wall as for final pieces.
        except Exception:
            return [PlainPiece(source, self._gap)]
        if self._fence is not None and tokens:
            return [self._fence.rest(tokens[0])]
        if not tokens:
            return []
        blocks = tuple(tokens)
        if self._list is not None:
            return [BlocksPiece(self._list.numbered(blocks), self._gap, source, joined=True)]
        return [BlocksPiece(blocks, self._gap, source)]


def _top_level(tokens: list[Token]) -> list[_Block]:
    blocks: list[_Block] = []
    depth = 0
    start = 0
    for position, token in enumerate(tokens):
        if depth == 0:
            start = position
        depth += token.nesting
        if depth == 0:
            opening = tokens[start]
            end_line = opening.map[1] if opening.map else 0
            blocks.append(_Block(tuple(tokens[start : position + 1]), end_line))
    return blocks


def _items_of(block: _Block) -> list[int]:
    """Where in the tokens of a list its own items begin."""
    level = block.tokens[0].level + 1
    return [
        index
        for index, token in enumerate(block.tokens)
        if token.type == "list_item_open" and token.level == level
    ]


def _first_number(opening: Token) -> int:
    start = opening.attrGet("start")
    return 1 if start is None else int(start)


def _start_line(opening: Token) -> int:
    return opening.map[0] if opening.map else 0


def _in_portions(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Neighbouring blocks together, as many as a frame has time to render."""
    start = 0
    for end, block in enumerate(blocks, 1):
        if end == len(blocks) or block.end_line - _start_line(blocks[start].tokens[0]) >= PORTION:
            yield blocks[start:end]
            start = end


def _source(blocks: list[_Block], lines: list[str]) -> str:
    return "\n".join(lines[_start_line(blocks[0].tokens[0]) : blocks[-1].end_line])


def _language(fence: Token) -> str:
    return fence.info.partition(" ")[0] or "text"


def _last_filled(code: list[str], count: int) -> int:
    """At most ``count`` lines, ending with one that is not blank: blank lines at the end of a
    code block are not shown.
    """
    while count > 0 and not code[count - 1].strip():
        count -= 1
    return max(count, 0)


def _too_long(text: str) -> bool:
    return len(text) > LONGEST_BLOCK or (
        len(text) > LONGEST_LINE and max(map(len, text.split("\n"))) > LONGEST_LINE
    )
