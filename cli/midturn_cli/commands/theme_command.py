"""/theme: the colours of the screen."""

from __future__ import annotations

import os
from typing import TypeGuard

from midturn_cli.commands.arguments import unknown_word
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.saving import SAVE, save_setting
from midturn_cli.render.choose import theme_for
from midturn_cli.render.theme import ThemeChoice
from midturn_cli.ui_events import ThemeChanged

THEMES: tuple[ThemeChoice, ...] = ("dark", "light", "auto")


def theme(use: Use) -> None:
    words = [word for word in use.words if word != SAVE]
    save = SAVE in use.words
    if not words and not save:
        use.say(f"{_in_words(use.engine.theme)} /theme dark, light or auto changes it.")
        return
    if len(words) > 1:
        raise CommandError("/theme takes one theme (example: /theme light)")
    name = words[0] if words else use.engine.theme
    if not _is_theme(name):
        raise unknown_word("/theme", name, (*THEMES, SAVE), "/theme light")
    use.engine.theme = name
    use.engine.emit(ThemeChanged(theme_for(name, os.environ)))
    use.say(_in_words(name))
    if save:
        save_setting(use, "ui", "theme", name)


def _is_theme(name: str) -> TypeGuard[ThemeChoice]:
    return name in THEMES


def _in_words(name: ThemeChoice) -> str:
    if name == "auto":
        chosen = theme_for(name, os.environ)
        return f"The theme is auto: here {chosen}, by what the terminal says of its background."
    return f"The theme is {name}."


THEME = Command(
    "theme",
    "see or change the colours",
    "[dark | light | auto] [--save]",
    now=theme,
    forms=(
        Form("/theme", "see which one is used"),
        Form("/theme dark, /theme light", "use the colours for such a background, at once"),
        Form("/theme auto", "follow COLORFGBG, which some terminals set; dark without it"),
        Form("... --save", "write it to your configuration file as well"),
    ),
)
