"""The completion menu as rows of the live region: a float would need room below the prompt."""

from __future__ import annotations

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth

from midturn_cli.terminal.completion import MAX_MATCHES

MENU_ROWS = 7
_MARGIN = 2
_GAP = 2
_NARROWEST_MEANING = 8
"""Cells: less of a meaning says nothing."""


def menu_fragments(state: CompletionState | None, columns: int, rows: int) -> StyleAndTextTuples:
    """At most ``rows`` rows: completions around the chosen one, each with what it means.

    When some are not shown the last row says how many, or which one is chosen.
    """
    if state is None or rows <= 0:
        return []
    count = len(state.completions)
    for_entries = rows if count <= rows else max(1, rows - 1)
    chosen = state.complete_index
    first = max(0, min((chosen or 0) - for_entries // 2, count - for_entries))
    last = first + for_entries
    shown = state.completions[first:last]
    # Imported here: the start has no time for it.
    from midturn_cli.render.clean import reveal_line

    # Files can have any name.
    names = [reveal_line(one.display_text) for one in shown]
    metas = [fragment_list_to_text(one.display_meta) for one in shown]
    widest = _name_column(names, columns) if any(metas) else columns - _MARGIN - 1
    room = columns - widest - _MARGIN - _GAP - 1
    fragments: StyleAndTextTuples = []
    for index, (name, meta) in enumerate(zip(names, metas, strict=True), first):
        style = "class:menu.current" if index == chosen else ""
        fragments.append(("", "\n" if fragments else ""))
        fragments.append((style, f"{' ' * _MARGIN}{cut_to_width(name, widest)}"))
        fragments += _meaning(meta, widest - get_cwidth(cut_to_width(name, widest)), room)
    if for_entries < min(rows, count):
        words = cut_to_width(_what_is_left(state, for_entries), columns - _MARGIN - 1)
        fragments.append(("class:menu.meta", f"\n{' ' * _MARGIN}{words}"))
    return fragments


def _name_column(names: list[str], columns: int) -> int:
    """Cells for the names; long ones leave two thirds of the row to what they mean."""
    widest = max((get_cwidth(name) for name in names), default=0)
    return min(widest, max(columns - _MARGIN - 1, 1), max(columns // 3, 16))


def _meaning(meta: str, indent: int, room: int) -> StyleAndTextTuples:
    if not meta or room < _NARROWEST_MEANING:
        return []
    return [("class:menu.meta", f"{' ' * (indent + _GAP)}{cut_to_width(meta, room)}")]


def _what_is_left(state: CompletionState, shown: int) -> str:
    """``+19 more``, or ``7 of 25``; the search for files ends at ``MAX_MATCHES``."""
    count = len(state.completions)
    at_least = " or more" if count == MAX_MATCHES else ""
    if state.complete_index is not None:
        return f"{state.complete_index + 1} of {count}{at_least}"
    return f"+{count - shown}{at_least or ' more'}"


def cut_to_width(text: str, columns: int) -> str:
    """One row of at most ``columns`` cells; a cut is marked with an ellipsis."""
    if get_cwidth(text) <= columns:
        return text
    cut = ""
    for character in text:
        if get_cwidth(cut + character) >= columns:
            break
        cut += character
    return f"{cut}…"
