"""The rows above the input line: how they share the height, and how they are painted.

From one frame to the next most stay the same: each is parsed once and kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import UIContent, UIControl

from midturn_cli.terminal.hidden_letters import steady

if TYPE_CHECKING:
    from midturn_cli.ports import LiveRegion

PARTS = ("tail", "tools", "queue", "ask")
"""The presenter's parts above the input line, top to bottom."""
_GIVES_WAY = ("tail", "queue", "tools", "ask")
"""Which part loses rows first when there is no room."""
KEPT_ROWS = 128
"""More than the region of a high screen holds."""
KEPT_STYLES = 64
_CODE = re.compile("(\x1b\\[[0-9;]*m)")
_RESETS = ("\x1b[0m", "\x1b[m")


class RegionTexts:
    """What the windows show now; the writer replaces it at each paint."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {part: "" for part in PARTS}
        self.status = ""
        self.rule_shown = False
        self._fitted: tuple[int, list[str]] | None = None

    def take(self, region: LiveRegion) -> None:
        self.parts = {
            "tail": region.tail,
            "tools": region.tools,
            "queue": region.queue,
            "ask": region.ask,
        }
        self.status = region.status
        self.rule_shown = region.rule_shown
        self._fitted = None

    @property
    def asking(self) -> bool:
        return bool(self.parts["ask"])

    def rows(self, room: int) -> list[str]:
        """The rows of all parts, cut to ``room`` rows altogether."""
        if self._fitted is None or self._fitted[0] != room:
            texts = fit(self.parts, room).values()
            self._fitted = room, [row for text in texts if text for row in text.split("\n")]
        return self._fitted[1]


def rows_of(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def fit(parts: Mapping[str, str], rows: int) -> dict[str, str]:
    """Cut the parts to ``rows`` rows altogether; each keeps its last rows."""
    fitted = dict(parts)
    excess = sum(rows_of(text) for text in fitted.values()) - rows
    for part in _GIVES_WAY:
        if excess <= 0:
            break
        lines = fitted[part].split("\n") if fitted[part] else []
        cut = min(excess, len(lines))
        fitted[part] = "\n".join(lines[cut:])
        excess -= cut
    return fitted


@lru_cache(KEPT_ROWS)
def row_fragments(row: str) -> StyleAndTextTuples:
    """One row of ANSI text, with as few fragments as it has styles; not to be changed."""
    fragments: StyleAndTextTuples = []
    codes = ""
    parts = _CODE.split(row)
    for text, code in zip(parts[::2], [*parts[1::2], ""], strict=True):
        if text:
            fragments.append((_style(codes), steady(text)))
        codes = "" if code in _RESETS else codes + code
    return fragments


@lru_cache(KEPT_STYLES)
def _style(codes: str) -> str:
    """The style of a letter after these colour codes."""
    return to_formatted_text(ANSI(f"{codes}."))[0][0]


class RowsControl(UIControl):
    """Rows of ANSI text that are never wrapped, since they were made for this width."""

    def __init__(self, rows: Callable[[], Sequence[str]]) -> None:
        self._rows = rows

    def create_content(self, width: int, height: int | None) -> UIContent:
        lines = [row_fragments(row) for row in self._rows()]
        return UIContent(lines.__getitem__, line_count=len(lines), show_cursor=False)
