"""The mode of the vi keys, in a word for the input line."""

from __future__ import annotations

from prompt_toolkit.application import Application
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding.vi_state import InputMode

_WORDS = {
    InputMode.INSERT: "[I]",
    InputMode.INSERT_MULTIPLE: "[I]",
    InputMode.NAVIGATION: "[N]",
    InputMode.REPLACE: "[R]",
    InputMode.REPLACE_SINGLE: "[R]",
}


def vi_mode_word(app: Application[int]) -> str:
    """``[I]`` insert, ``[N]`` normal, ``[V]`` visual, ``[R]`` replace; empty without vi keys."""
    if app.editing_mode is not EditingMode.VI:
        return ""
    if app.current_buffer.selection_state is not None:
        return "[V]"
    return _WORDS[app.vi_state.input_mode]
