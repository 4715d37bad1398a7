"""Keys as people read them: ``Ctrl-S`` for ``c-s``, ``Alt-Enter`` for ``escape enter``."""

from __future__ import annotations

_HELD = {"c": "Ctrl", "s": "Shift"}
_WORDS = {"pageup": "PageUp", "pagedown": "PageDown", "escape": "Esc"}


def key_label(keys: str) -> str:
    """One entry of ``[keys]``."""
    words = keys.split(" ")
    if words[0] == "escape" and len(words) == 2:
        return f"Alt-{_one(words[1])}"
    return " ".join(map(_one, words))


def key_labels(keys: tuple[str, ...]) -> str:
    """All keys of an action."""
    return ", ".join(map(key_label, keys)) or "none"


def _one(key: str) -> str:
    *held, name = key.split("-") if len(key) > 1 else [key]
    shown = _WORDS.get(name, name.capitalize() if len(name) > 1 or held else name)
    return "-".join([*(_HELD[letter] for letter in held), shown])
