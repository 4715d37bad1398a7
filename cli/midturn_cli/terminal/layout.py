"""The live region: tail, tools, queue, question, input, menu, status; at most half the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.containers import AnyContainer
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from midturn_cli.terminal.completion_menu import MENU_ROWS, cut_to_width, menu_fragments
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.frame_output import NO_WRAP
from midturn_cli.terminal.hidden_letters import HiddenLetters, Tabs, shown_line, visible
from midturn_cli.terminal.region_rows import RegionTexts, RowsControl, row_fragments

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
    return max(3, screen_rows // 2)


def input_rows_limit(screen_rows: int, asking: bool, stashed: bool = False) -> int:
    """The most rows of the input line; a question and the stash must stay visible beside it."""
    beside = (4 if asking else 1) + stashed
    return max(1, min(MAX_INPUT_ROWS, region_rows(screen_rows) - beside))


@dataclass(frozen=True, slots=True)
class RegionModel:
    """Everything the layout looks at while it paints."""

    texts: RegionTexts
    draft: Draft
    reason: Buffer
    size: Callable[[], Size]
    busy: Callable[[], bool]
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
class Region:
    layout: Layout
    input_window: Window
    reason_window: Window


def build_region(model: RegionModel) -> Region:
    """Put the windows together; the texts are looked up at each paint."""
    search = SearchToolbar()
    search.control.input_processors = [HiddenLetters(), *(search.control.input_processors or ())]
    input_window = _input_window(model, search)
    reason_window = Window(
        BufferControl(
            model.reason, input_processors=[HiddenLetters(), BeforeInput("reason: ", "class:hint")]
        ),
        height=1,
        dont_extend_height=True,
    )
    menu = Condition(lambda: _menu_rows(model) > 0)
    status = FormattedTextControl(lambda: _status(model), show_cursor=False)
    parts: list[AnyContainer] = [
        _parts_window(model),
        ConditionalContainer(_stash_window(model), Condition(lambda: _stash_rows(model) > 0)),
        ConditionalContainer(reason_window, Condition(model.reasoning)),
        ConditionalContainer(_tall_draft_window(model), Condition(lambda: _is_tall(model))),
        input_window,
        ConditionalContainer(search, is_searching),
        ConditionalContainer(_menu_window(model), menu),
        Window(status, height=1, dont_extend_height=True),
        # The renderer keeps the tallest height until the next commit; the rest stays blank.
        Window(height=Dimension(min=0, preferred=0)),
    ]
    return Region(Layout(HSplit(parts), input_window), input_window, reason_window)


def _parts_window(model: RegionModel) -> ConditionalContainer:
    def rows() -> list[str]:
        room = region_rows(model.size().rows) - _rows_below_parts(model)
        return model.texts.rows(max(0, room))

    window = Window(RowsControl(rows), dont_extend_height=True)
    return ConditionalContainer(window, Condition(lambda: bool(rows())))


def _input_window(model: RegionModel, search: SearchToolbar) -> Window:
    control = BufferControl(
        model.draft.buffer,
        input_processors=[HiddenLetters(), Tabs(), BeforeInput(lambda: _prefix(model))],
        search_buffer_control=search.control,
        preview_search=True,
    )

    def height() -> Dimension:
        return Dimension(min=1, max=_most_input_rows(model) - _is_tall(model))

    return Window(control, height=height, dont_extend_height=True, wrap_lines=True)


def _tall_draft_window(model: RegionModel) -> Window:
    """Stands for the first row of a draft that does not fit, where its tag is."""

    def fragments() -> StyleAndTextTuples:
        rows, shown = _draft_rows(model), _most_input_rows(model) - 1
        return [*_tag(model), ("class:stash", f"{rows} rows, {shown} of them shown")]

    control = FormattedTextControl(fragments, show_cursor=False)
    return Window(control, height=1, dont_extend_height=True)


def _is_tall(model: RegionModel) -> bool:
    """The draft has more rows than the input line may take."""
    most = _most_input_rows(model)
    return most > 1 and _draft_rows(model) > most


def _stash_window(model: RegionModel) -> Window:
    control = FormattedTextControl(lambda: [("class:stash", _stash_row(model))], show_cursor=False)
    return Window(control, height=1, dont_extend_height=True)


def _stash_row(model: RegionModel) -> str:
    way_back = f" ({model.stash_key} brings it back)" if model.stash_key else ""
    # Its own line ends and blanks do not matter here.
    text = visible(" ".join(model.draft.stashed_shown.split()))
    return cut_to_width(f"stashed{way_back}: {text}", model.size().columns - 1)


def _stash_rows(model: RegionModel) -> int:
    return 1 if model.draft.stashed_shown else 0


def _menu_window(model: RegionModel) -> Window:
    control = FormattedTextControl(
        lambda: menu_fragments(
            model.draft.buffer.complete_state, model.size().columns, _menu_rows(model)
        ),
        show_cursor=False,
    )
    return Window(control, dont_extend_height=True)


def _menu_rows(model: RegionModel) -> int:
    state = model.draft.buffer.complete_state
    if state is None:
        return 0
    room = region_rows(model.size().rows) - input_rows(model) - _stash_rows(model) - 1
    return max(0, min(MENU_ROWS, len(state.completions), room))


def input_rows(model: RegionModel) -> int:
    """About how many rows the input line takes."""
    return min(_draft_rows(model), _most_input_rows(model))


def _draft_rows(model: RegionModel) -> int:
    columns = max(1, model.size().columns)
    lines = model.draft.buffer.document.lines
    # Wide letters that meet the last column leave it empty, so this may be a row too few.
    cells = [get_cwidth(shown_line(line)) for line in lines[:_MEASURED_LINES]]
    cells[0] += sum(get_cwidth(text) for _, text, *_ in _prefix(model))
    return sum(1 + used // columns for used in cells) + len(lines[_MEASURED_LINES:])


def _most_input_rows(model: RegionModel) -> int:
    stashed = _stash_rows(model) > 0
    return input_rows_limit(model.size().rows, model.texts.asking, stashed)


def _rows_below_parts(model: RegionModel) -> int:
    beside = _stash_rows(model) + (1 if model.reasoning() else 0)
    return input_rows(model) + _menu_rows(model) + 1 + beside


def parts_room(model: RegionModel) -> int:
    """How many rows the presenter may use altogether, its status row included."""
    return max(1, region_rows(model.size().rows) - _rows_below_parts(model) + 1)


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
