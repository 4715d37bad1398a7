"""Text by its width in terminal cells."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells, set_cell_size

ELLIPSIS = "…"


def cut(text: str, width: int) -> str:
    """One line of at most ``width`` cells; a cut is marked with an ellipsis."""
    if len(text) <= width and text.isascii():
        return text
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS if width == 1 else ""
    # A character is at most two cells and at least one after cleaning, accents apart.
    return set_cell_size(text[: width * 4], width - 1).rstrip() + ELLIPSIS


def wrap_hard(line: str, width: int) -> list[str]:
    """One line as rows of at most ``width`` cells, broken anywhere: nothing is left out."""
    return chop_cells(line, max(width, 2)) or [""]


def cell_width(text: str) -> int:
    """How many terminal cells the text takes."""
    return len(text) if text.isascii() else cell_len(text)
