"""The live region: tail, tools, queue, question, input, menu, status; at most half the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    FormattedTextControl,
    Layout,
    Window,
    to_container,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from midturn_cli.terminal.completion_menu import MENU_ROWS, cut_to_width, menu_fragments
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.frame_output import NO_WRAP
from midturn_cli.terminal.hidden_letters import HiddenLetters, Tabs, shown_line, visible
from midturn_cli.terminal.region_rows import RegionTexts, RowsControl, row_fragments
from midturn_cli.terminal.search_row import search_row
from midturn_cli.terminal.stack import Stack, StackPart

GLYPH = "› "
MAX_INPUT_ROWS = 8
_MEASURED_LINES = 200
"""Further lines of a draft count as one row each: it is counted at every paint."""
_SHORT_TAG_COLUMNS = 60
"""Narrower terminals show the tier without its meaning."""

# #767676 is read on white and on black alike (4.5 to 1); bright black on white is not.
STYLE = Style.from_dict(
    {
        "tier.now": "bold fg:ansired",
        "tier.next": "bold",
        "tier.later": "fg:#767676",
        "tier.meaning": "fg:#767676",
        "glyph": "bold",
        "vi": "bold",
        "stash": "fg:#767676",
        "hint": "bold",
        "menu.meta": "fg:#767676",
        "menu.current": "reverse",
    }
)


def region_rows(screen_rows: int) -> int:
    """The most rows that the live region may have."""
    return min(screen_rows, max(3, screen_rows // 2))


def input_rows_limit(screen_rows: int, asking: bool, beside: int = 0) -> int:
    """The most rows of the input line; a question and so many other rows must stay visible."""
    kept = (4 if asking else 1) + beside
    return max(1, min(MAX_INPUT_ROWS, region_rows(screen_rows) - kept))


@dataclass(frozen=True, slots=True)
class RegionModel:
    """Everything the layout looks at while it paints."""

    texts: RegionTexts
    draft: Draft
    reason: Buffer
    size: Callable[[], Size]
    busy: Callable[[], bool]
    asking: Callable[[], bool]
    """A question waits, whether or not it is shown."""
    reasoning: Callable[[], bool]
    draft_has_keys: Callable[[], bool]
    """False while a question has the keyboard."""
    hint: Callable[[], str]
    """A text that replaces the status row for a while; empty for none."""
    row_tier: Callable[[], str]
    """The tier of the row of the queue that is being edited; empty for none."""
    vi_mode: Callable[[], str]
    """The mode of the vi keys in a word; empty with other keys."""
    stash_key: str
    """How people read the key that brings the stashed draft back."""


@dataclass(frozen=True, slots=True)
class RegionHeights:
    """How many rows the parts of the live region take."""

    columns: int
    above: int
    """The rows that tell, above everything else."""
    stash: int
    reason: int
    tall: int
    """One in place of the first row of a draft that does not fit, where its tag is."""
    draft: int
    search: int
    menu: int
    room: int
    """The most that the presenter may use altogether, its status row included."""


class Region:
    """The windows, and how high each is: measured once for each paint."""

    def __init__(self, model: RegionModel) -> None:
        self._model = model
        self._search = search_row(model.draft.buffer)
        self._draft = _draft_control(model, self._search)
        self.input_window = Window(self._draft, wrap_lines=True)
        self.reason_window = Window(_reason_control(model))
        self._heights: RegionHeights | None = None
        self.layout = Layout(Stack(self._parts()), self.input_window)

    @property
    def room(self) -> int:
        """The most rows that the presenter may use altogether, its status row included."""
        return self._now.room

    def measure(self) -> bool:
        """Look at everything anew, before each paint; whether ``room`` is another one now."""
        room = self.room
        self._heights = measured(self._model, self._draft)
        return self.room != room

    @property
    def _now(self) -> RegionHeights:
        if self._heights is None:
            self._heights = measured(self._model, self._draft)
        return self._heights

    def _parts(self) -> list[StackPart]:
        model = self._model
        status = FormattedTextControl(lambda: _status(model), show_cursor=False)
        return [
            StackPart(Window(RowsControl(self._rows_above)), lambda: self._now.above),
            StackPart(
                _text_window(lambda: [("class:stash", _stash_row(model, self._now.columns))]),
                lambda: self._now.stash,
            ),
            StackPart(self.reason_window, lambda: self._now.reason),
            StackPart(
                _text_window(lambda: _tall_draft_row(model, self._now)), lambda: self._now.tall
            ),
            StackPart(self.input_window, lambda: self._now.draft),
            StackPart(to_container(self._search), lambda: self._now.search),
            StackPart(_text_window(self._menu), lambda: self._now.menu),
            StackPart(Window(status), lambda: 1),
        ]

    def _rows_above(self) -> list[str]:
        return self._model.texts.rows(self._now.room - 1)

    def _menu(self) -> StyleAndTextTuples:
        state = self._model.draft.buffer.complete_state
        return menu_fragments(state, self._now.columns, self._now.menu)


def measured(model: RegionModel, draft: BufferControl) -> RegionHeights:
    """Share the region out."""
    size = model.size()
    region = region_rows(size.rows)
    stash = 1 if model.draft.stashed_shown else 0
    reason = 1 if model.reasoning() else 0
    search = 1 if is_searching() else 0
    asking = model.asking()
    most = input_rows_limit(size.rows, asking, stash + search)
    wanted = draft.preferred_height(size.columns, most + 1, True, None) or 1
    tall = 1 if wanted > most > 1 else 0
    shown = min(wanted, most)
    free = region - shown - search - reason - 1
    menu = _menu_rows(model.draft.buffer, free - (1 if asking else stash))
    left = max(0, free - menu)
    # If it is one row, the stash has it only while nothing else is to be told, such as a question.
    room = max(left - stash, min(left, 1))
    above = len(model.texts.rows(room))
    return RegionHeights(
        columns=size.columns,
        above=above,
        stash=min(stash, left - above),
        reason=reason,
        tall=tall,
        draft=shown - tall,
        search=search,
        menu=menu,
        room=room + 1,
    )


def _menu_rows(buffer: Buffer, room: int) -> int:
    state = buffer.complete_state
    return 0 if state is None else max(0, min(MENU_ROWS, len(state.completions), room))


def _draft_control(model: RegionModel, search: SearchToolbar) -> BufferControl:
    return BufferControl(
        model.draft.buffer,
        input_processors=[HiddenLetters(), Tabs(), BeforeInput(lambda: _prefix(model))],
        search_buffer_control=search.control,
        preview_search=True,
    )


def _reason_control(model: RegionModel) -> BufferControl:
    return BufferControl(
        model.reason, input_processors=[HiddenLetters(), BeforeInput("reason: ", "class:hint")]
    )


def _text_window(fragments: Callable[[], StyleAndTextTuples]) -> Window:
    return Window(FormattedTextControl(fragments, show_cursor=False))


def _tall_draft_row(model: RegionModel, heights: RegionHeights) -> StyleAndTextTuples:
    rows = _draft_rows(model, heights.columns)
    return [*_tag(model), ("class:stash", f"{rows} rows, {heights.draft} of them shown")]


def _stash_row(model: RegionModel, columns: int) -> str:
    way_back = f" ({model.stash_key} brings it back)" if model.stash_key else ""
    # Its own line ends and blanks do not matter here.
    text = visible(" ".join(model.draft.stashed_shown.split()))
    return cut_to_width(f"stashed{way_back}: {text}", columns - 1)


def _draft_rows(model: RegionModel, columns: int) -> int:
    lines = model.draft.buffer.document.lines
    # Wide letters that meet the last column leave it empty, so this may be a row too few.
    cells = [get_cwidth(shown_line(line)) for line in lines[:_MEASURED_LINES]]
    cells[0] += sum(get_cwidth(text) for _, text, *_ in _prefix(model))
    rows = sum(1 + used // max(1, columns) for used in cells)
    return rows + len(lines[_MEASURED_LINES:])


def _prefix(model: RegionModel) -> StyleAndTextTuples:
    fragments = _tag(model)
    if mode := model.vi_mode():
        fragments.append(("class:vi", f"{mode} "))
    glyph = GLYPH if model.draft_has_keys() else " " * len(GLYPH)
    return [*fragments, ("class:glyph", glyph)]


def _tag(model: RegionModel) -> StyleAndTextTuples:
    fragments: StyleAndTextTuples = []
    if row_tier := model.row_tier():
        fragments.append((f"class:tier.{row_tier}", f"{row_tier.upper()} "))
        fragments.append(("class:tier.meaning", "edit "))
    elif model.busy():
        tier = model.draft.tier
        fragments.append((f"class:tier.{tier}", f"{tier.upper()} "))
        if model.size().columns >= _SHORT_TAG_COLUMNS:
            fragments.append(("class:tier.meaning", f"{model.draft.tier_words} "))
    return fragments


def _status(model: RegionModel) -> StyleAndTextTuples:
    hint = model.hint()
    text: StyleAndTextTuples = [("class:hint", hint)] if hint else row_fragments(model.texts.status)
    # If the row below the cursor broke, in a terminal that has become narrower but has not told so
    # yet, the way back up to the cursor would be longer than what the renderer counts.
    return [("[ZeroWidthEscape]", NO_WRAP), *text]
