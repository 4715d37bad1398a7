"""The completion menu as rows of the live region: a float would need room below the prompt."""

from __future__ import annotations

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth

MENU_ROWS = 6


def menu_fragments(state: CompletionState | None, columns: int, rows: int) -> StyleAndTextTuples:
    """At most ``rows`` completions around the chosen one, each with what it means."""
    if state is None or rows <= 0:
        return []
    chosen = state.complete_index
    first = max(0, min((chosen or 0) - rows // 2, len(state.completions) - rows))
    shown = state.completions[first : first + rows]
    widest = max((get_cwidth(one.display_text) for one in shown), default=0)
    fragments: StyleAndTextTuples = []
    for index, completion in enumerate(shown, first):
        style = "class:menu.current" if index == chosen else ""
        name = cut_to_width(completion.display_text, columns - 3)
        meta = fragment_list_to_text(completion.display_meta)
        room = columns - widest - 6
        fragments.append(("", "\n" if fragments else ""))
        fragments.append((style, f"  {name}"))
        if meta and room > 8:
            gap = " " * (widest - get_cwidth(completion.display_text) + 2)
            fragments.append(("class:menu.meta", f"{gap}{cut_to_width(meta, room)}"))
    return fragments


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
