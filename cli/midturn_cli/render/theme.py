"""Colours by meaning, for a dark and for a light background.

Only the sixteen colours of the terminal and attributes are used, so that a person's own palette
decides. Everything that a colour says is also said by a word or a sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["dark", "light"]
ThemeChoice = Literal["auto", "dark", "light"]


@dataclass(frozen=True, slots=True)
class Theme:
    """Rich style definitions by meaning, and the Pygments theme of code blocks."""

    code: str
    accent: str = "cyan"
    prompt: str = "bold"
    dim: str = "dim"
    good: str = "green"
    bad: str = "red"
    warning: str = "yellow"
    added: str = "green"
    removed: str = "red"
    panel: str = "dim"
    ask: str = "bold yellow"
    demo: str = "bold magenta"


DARK = Theme(code="ansi_dark", accent="bright_cyan", warning="bright_yellow", bad="bright_red")
LIGHT = Theme(code="ansi_light", accent="blue", warning="magenta", ask="bold magenta")


def theme_named(name: ThemeName) -> Theme:
    return LIGHT if name == "light" else DARK
