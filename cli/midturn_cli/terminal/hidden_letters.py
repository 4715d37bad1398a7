"""Letters that the input line shows by others, and the live region too where widths differ.

Pasted text may hold letters that a terminal would obey or hide: control characters, marks that turn
the direction of writing around, and letters without a width. What stands in the input line is what
will be sent, so each is visible. Halves of flags and skin tones take another width beside their
neighbours than by themselves, in some terminals: what is painted after them would be misplaced.
"""

from __future__ import annotations

import re

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import (
    Processor,
    TabsProcessor,
    Transformation,
    TransformationInput,
)

SHOWN_AS = "·"
TAB_WIDTH = 4
_CONTROL_PICTURES = 0x2400
_DELETE_PICTURE = "␡"
_FLAG_LETTERS = {0x1F1E6 + place: chr(ord("A") + place) for place in range(26)}
_SKIN_TONES = dict.fromkeys(range(0x1F3FB, 0x1F400), "")
_STEADY = {**_FLAG_LETTERS, **_SKIN_TONES}

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with a letter that can be seen in place of each that cannot; tabs stay."""
    return _HIDDEN.sub(_shown, text)


def _shown(hidden: re.Match[str]) -> str:
    # prompt_toolkit would show ^[ in two cells and count none for it.
    code = ord(hidden[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == 0x7F else _FLAG_LETTERS.get(code, SHOWN_AS)


def steady(text: str) -> str:
    """Text of the live region, every letter of which has the same width in every terminal: flags
    as their letters, no skin tones. Its final rows have both.
    """
    return text.translate(_STEADY)


def shown_line(line: str) -> str:
    """A line of the draft as it is shown, but for wide letters before a tab."""
    return visible(line).expandtabs(TAB_WIDTH)


class HiddenLetters(Processor):
    """One letter stays one letter: the cursor is where it belongs."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not any(_HIDDEN.search(fragment[1]) for fragment in fragments):
            return Transformation(fragments)
        shown: StyleAndTextTuples = [(fragment[0], visible(fragment[1])) for fragment in fragments]
        return Transformation(shown)


class Tabs(TabsProcessor):
    """Tabs up to the next column that is a multiple of ``TAB_WIDTH``."""

    def __init__(self) -> None:
        super().__init__(tabstop=TAB_WIDTH, char1=" ", char2=" ")

    def apply_transformation(self, ti: TransformationInput) -> Transformation:
        # It looks at each letter by itself, which takes time that most lines need not spend.
        if not any("\t" in fragment[1] for fragment in ti.fragments):
            return Transformation(ti.fragments)
        return super().apply_transformation(ti)
