"""Colours by meaning, for a dark and for a light background.

On a dark background the sixteen colours of the terminal are used, so that a person's own palette
decides. Most palettes are made for dark backgrounds: their green, yellow and cyan cannot be read on
white. So the light theme takes colours of the fixed 256, each with a contrast of at least 4.5 to 1.
Everything that a colour says is also said by a word or a sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["dark", "light"]
ThemeChoice = Literal["auto", "dark", "light"]


LIGHT_CODE = "midturn_light"
"""The Pygments theme of code blocks on a light background."""


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
LIGHT_BLUE = "color(25)"
LIGHT_GREEN = "color(22)"
LIGHT_RED = "color(124)"
LIGHT_PURPLE = "color(90)"
LIGHT_BROWN = "color(94)"
LIGHT_GREY = "color(240)"

LIGHT = Theme(
    code=LIGHT_CODE,
    accent=LIGHT_BLUE,
    dim=LIGHT_GREY,
    good=LIGHT_GREEN,
    bad=LIGHT_RED,
    warning=LIGHT_PURPLE,
    added=LIGHT_GREEN,
    removed=LIGHT_RED,
    panel=LIGHT_GREY,
    ask=f"bold {LIGHT_PURPLE}",
    demo=f"bold {LIGHT_PURPLE}",
)


def theme_named(name: ThemeName) -> Theme:
    return LIGHT if name == "light" else DARK
