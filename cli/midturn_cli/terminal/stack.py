"""Parts of the screen one above the other, each with a number of rows of its own.

``HSplit`` does the same and more: it asks every part three times a paint how high it wants to be,
and paints an empty window between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prompt_toolkit.layout import Container, Dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Screen, WritePosition


@dataclass(frozen=True, slots=True)
class StackPart:
    container: Container
    rows: Callable[[], int]
    """How many rows it takes; with none it is not shown."""


class Stack(Container):
    """From top to bottom; what does not fit is left out at the bottom."""

    def __init__(self, parts: Sequence[StackPart]) -> None:
        self._parts = parts

    def reset(self) -> None:
        for part in self._parts:
            part.container.reset()

    def preferred_width(self, max_available_width: int) -> Dimension:
        return Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        return Dimension.exact(sum(part.rows() for part in self._parts))

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        row, end = write_position.ypos, write_position.ypos + write_position.height
        for part in self._parts:
            rows = min(part.rows(), end - row)
            if rows > 0:
                place = WritePosition(write_position.xpos, row, write_position.width, rows)
                part.container.write_to_screen(
                    screen, mouse_handlers, place, parent_style, erase_bg, z_index
                )
                row += rows
        # The renderer keeps the tallest height until the next commit; the rest stays blank.
        screen.height = max(screen.height, end)

    def get_children(self) -> list[Container]:
        return [part.container for part in self._parts]
