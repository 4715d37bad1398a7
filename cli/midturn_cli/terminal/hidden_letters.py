"""Making letters of the draft visible that a terminal would obey or hide.

Pasted text may hold them: marks that turn the direction of writing around, and letters without a
width. Each is shown as a dot, so that what stands in the input line is what will be sent. Control
characters are shown by prompt_toolkit itself.
"""

from __future__ import annotations

import re

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

SHOWN_AS = "·"

_HIDDEN = re.compile(
    "[\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


class HiddenLetters(Processor):
    """One letter stays one letter: the cursor is where it belongs."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not any(_HIDDEN.search(fragment[1]) for fragment in fragments):
            return Transformation(fragments)
        shown: StyleAndTextTuples = [
            (fragment[0], _HIDDEN.sub(SHOWN_AS, fragment[1])) for fragment in fragments
        ]
        return Transformation(shown)
