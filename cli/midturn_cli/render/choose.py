"""Which theme and how many colours: from the configuration and the environment, never by asking
the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping

from midturn_cli.key_labels import key_label
from midturn_cli.render.block_rows import NO_KEYS, ShownKeys
from midturn_cli.render.canvas import ColorSystem
from midturn_cli.render.presenter import ScreenPresenter
from midturn_cli.render.theme import ThemeChoice, ThemeName
from midturn_core.config import KeysConfig

LIGHT_BACKGROUNDS = {"7", "15"}
"""Colour numbers of the last part of COLORFGBG that mean a light background."""


def screen_presenter(
    theme: ThemeChoice, environ: Mapping[str, str], keys: ShownKeys = NO_KEYS
) -> ScreenPresenter:
    return ScreenPresenter(
        theme=theme_for(theme, environ), color_system=color_system_for(environ), keys=keys
    )


def shown_keys(keys: KeysConfig) -> ShownKeys:
    """The first key of each action that the screen names."""
    return ShownKeys(
        expand="".join(map(key_label, keys.expand[:1])),
        cancel="".join(map(key_label, keys.cancel[:1])),
    )


def theme_for(theme: ThemeChoice, environ: Mapping[str, str]) -> ThemeName:
    """``auto`` follows COLORFGBG, which some terminals set, and is dark without it."""
    if theme != "auto":
        return theme
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in LIGHT_BACKGROUNDS else "dark"


def color_system_for(environ: Mapping[str, str]) -> ColorSystem | None:
    """None without colours: NO_COLOR is set, to whatever."""
    if environ.get("NO_COLOR"):
        return None
    if environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "truecolor"
    term = environ.get("TERM", "")
    return "256" if "256color" in term or "kitty" in term or "direct" in term else "standard"
