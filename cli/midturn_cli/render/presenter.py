"""``ScreenPresenter``: events in, ANSI text out. Holds the transcript; touches no terminal.

Import it after the first paint: Rich takes 80 ms.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.ports import LiveRegion
from midturn_cli.render.block_rows import NO_KEYS, Look, ShownKeys, needs_gap
from midturn_cli.render.blocks import (
    AnswerEnd,
    AnswerText,
    Block,
    CallBlock,
    EchoBlock,
    OutputBlock,
    PanelTitle,
)
from midturn_cli.render.canvas import Canvas, ColorSystem, row_count
from midturn_cli.render.live_rows import (
    MAX_TAIL_ROWS,
    MAX_TOOL_ROWS,
    AskView,
    Heights,
    ask_rows,
    limited,
    queue_rows,
    share_height,
    shows_rule,
    tool_rows,
)
from midturn_cli.render.status_row import status_parts, status_row
from midturn_cli.render.theme import ThemeName, theme_named
from midturn_cli.render.transcript_entries import (
    AnswerEntry,
    DroppedEntry,
    Entry,
    RowsEntry,
    render_entry,
)
from midturn_cli.ui_events import ThemeChanged, UiEvent
from midturn_cli.ui_state import UiState
from midturn_core.events import CallPhase

if TYPE_CHECKING:
    from midturn_cli.render.markdown_pieces import MarkdownPiece
    from midturn_cli.render.markdown_stream import MarkdownStream

SMALLEST_TAIL = 3
"""Rows of an unfinished answer that are shown however little stands above it."""
BELOW_TAIL = 3
"""Rows of the live region that are always there, and may break as well."""
KEPT_ENTRIES = 500
"""Entries of the transcript that can be rendered again at another width."""


class ScreenPresenter:
    """The ``Presenter`` of the terminal (see ``ports.py``). One per session.

    ``color_system`` None writes no colour at all (NO_COLOR). ``clock`` is monotonic seconds and
    the one that ``live`` is called with.
    """

    def __init__(
        self,
        *,
        theme: ThemeName = "dark",
        color_system: ColorSystem | None = "truecolor",
        keys: ShownKeys = NO_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = Look(Canvas(color_system, theme), theme_named(theme), keys)
        self._clock = clock
        self._state = UiState()
        self._answer: MarkdownStream | None = None
        self._answer_begun = False
        self._pending: deque[Entry] = deque()
        self._done: deque[Entry] = deque(maxlen=KEPT_ENTRIES)
        self._last: Block | None = None

    @property
    def state(self) -> UiState:
        """For reading: questions, calls, whether a turn runs."""
        return self._state

    @property
    def animated(self) -> bool:
        return self._state.animated or (self._answer is not None and self._answer.tail_behind)

    @property
    def has_committed(self) -> bool:
        self._collect()
        return bool(self._pending)

    def apply(self, event: UiEvent) -> None:
        if isinstance(event, ThemeChanged):
            canvas = self._look.canvas.on(event.theme)
            self._look = replace(self._look, canvas=canvas, theme=theme_named(event.theme))
        for block in self._state.apply(event, self._clock()):
            self._add(block)

    def take_committed(self, width: int, max_chars: int | None = None) -> str:
        self._collect()
        parts: list[str] = []
        size = 0
        while self._pending and (max_chars is None or size < max_chars or not size):
            entry = self._pending[0]
            text = render_entry(entry, self._look, width)
            if parts and max_chars is not None and size + len(text) > max_chars:
                break
            self._done.append(self._pending.popleft())
            parts.append(text)
            size += len(text)
        return "".join(parts)

    def drop_backlog(self, width: int, keep_rows: int) -> None:
        self._collect(at_once=True)
        kept: deque[Entry] = deque()
        rows = 0
        while self._pending and rows < keep_rows:
            entry = self._pending.pop()
            kept.appendleft(entry)
            rows += row_count(render_entry(entry, self._look, width))
        dropped = sum(self._lines_of(entry, width) for entry in self._pending)
        if dropped:
            kept.appendleft(DroppedEntry(dropped))
        self._pending = kept

    def _lines_of(self, entry: Entry, width: int) -> int:
        """How much is dropped; of an answer as it was written, since rendering it takes long."""
        if isinstance(entry, AnswerEntry):
            return entry.piece.source.count("\n") + 1
        return row_count(render_entry(entry, self._look, width))

    def recent(self, width: int, rows: int) -> str:
        parts: deque[str] = deque()
        height = 0
        for entry in reversed(self._done):
            if height >= rows:
                break
            text = render_entry(entry, self._look, width)
            parts.appendleft(text)
            height += row_count(text)
        lines = "".join(parts).splitlines(keepends=True)
        return "".join(lines[-rows:]) if rows > 0 else ""

    def live(
        self,
        width: int,
        max_rows: int,
        now: float,
        *,
        keyboard: AskKeyboard = AskKeyboard.NOT_YET,
        rows_above: int = MAX_TAIL_ROWS + BELOW_TAIL,
    ) -> LiveRegion:
        # The last column stays free: a full row would wrap when the window gets narrower.
        width = max(width - 1, 1)
        state, look = self._state, self._look
        tail = self._tail_rows(width, rows_above)
        tools = tool_rows(state, look.theme, width, now, look.keys.cancel)
        queue = queue_rows(state, look.theme, width, len(state.queue.items))
        ask: list[Text] = []
        rule_shown = False
        if state.asks:
            view = AskView(state.asks[0], state.asks_waiting, keyboard)
            ask = ask_rows(view, look, width, max_rows - 1)
            rule_shown = shows_rule(view, look, width, max_rows - 1)
        status = self._status_rows(width)
        wanted = Heights(
            len(tail), min(len(tools), MAX_TOOL_ROWS + 1), len(queue), len(ask), len(status)
        )
        heights = share_height(wanted, max_rows)
        shown_tools = limited(tools, heights.tools, look.theme)
        if shown_tools and not tail and self._gap_above_live() and wanted.rows < max_rows:
            shown_tools.insert(0, Text())
        return LiveRegion(
            tail="\n".join(tail[len(tail) - heights.tail :]),
            tools=self._joined(shown_tools, width),
            queue=self._joined(queue_rows(state, look.theme, width, heights.queue), width),
            ask=self._joined(ask[: heights.ask], width),
            status=self._joined(status[: heights.status], width),
            rule_shown=rule_shown and heights.ask == len(ask),
        )

    def _tail_rows(self, width: int, rows_above: int) -> list[str]:
        if self._answer is None or self._pending:
            # What is final and not written yet comes before it.
            return []
        look = self._look
        # In a window of half the width the live region has twice as many rows, and as many are
        # pushed off the top as come new: they must be rows above it.
        most = min(MAX_TAIL_ROWS, max(rows_above - BELOW_TAIL, SMALLEST_TAIL))
        rows = self._answer.tail(look.canvas, width, most, look.theme.code)
        begins = not self._answer_begun and self._last is not None
        # The empty row that the first piece gets when it is final: the text must not jump then.
        return ["", *rows][-most:] if begins and rows and rows[0].strip() else rows

    def _gap_above_live(self) -> bool:
        """Whether what runs has an empty row above it once it is final: it must not jump then."""
        match self._last:
            case None | EchoBlock() | PanelTitle():
                return False
            case CallBlock(in_panel=True):
                return not self._state.calls
            case _:
                return True

    def _status_rows(self, width: int) -> list[Text]:
        if self._state.status is None:
            return []
        running = sum(
            call.phase is CallPhase.RUNNING and call.result is None for call in self._state.calls
        )
        parts = status_parts(self._state.status, self._look.theme, running, self._state.queue.words)
        return [status_row(parts, width)]

    def _joined(self, rows: Iterable[Text], width: int) -> str:
        return "\n".join(self._look.canvas.rows(rows, width))

    def _add(self, block: Block) -> None:
        match block:
            case AnswerText():
                self._open_answer().feed(block.text)
            case AnswerEnd():
                if self._answer is not None:
                    self._add_pieces(self._answer.end())
                    self._answer = None
            case OutputBlock(markdown=True, error=False):
                self._collect(at_once=True)
                self._add_markdown(block)
            case _:
                # A notice goes before the open tail, never into it.
                self._collect(at_once=True)
                self._pending.append(RowsEntry(block, self._gap_before(block)))

    def _open_answer(self) -> MarkdownStream:
        if self._answer is None:
            self._answer = _new_stream()
            self._answer_begun = False
        return self._answer

    def _add_markdown(self, block: OutputBlock) -> None:
        stream = _new_stream()
        stream.feed(block.text)
        gap = self._gap_before(block)
        for index, piece in enumerate(stream.end()):
            self._pending.append(AnswerEntry(piece, index == 0, gap and index == 0))

    def _collect(self, *, at_once: bool = False) -> None:
        if self._answer is not None:
            self._add_pieces(self._answer.take(at_once=at_once))

    def _add_pieces(self, pieces: Iterable[MarkdownPiece]) -> None:
        for piece in pieces:
            first = not self._answer_begun
            gap = first and self._gap_before(AnswerText(""))
            self._answer_begun = True
            self._last = AnswerText("")
            self._pending.append(AnswerEntry(piece, first, gap))

    def _gap_before(self, block: Block) -> bool:
        gap = self._last is not None and needs_gap(block, self._last)
        self._last = block
        return gap


def _new_stream() -> MarkdownStream:
    # Imported late: rich.markdown costs 75 ms that the first paint must not wait for.
    from midturn_cli.render.markdown_stream import MarkdownStream

    return MarkdownStream()
