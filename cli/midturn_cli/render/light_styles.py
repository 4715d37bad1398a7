"""How Markdown and code look on a light background: Rich's own styles cannot be read there."""

from __future__ import annotations

from rich.style import Style
from rich.syntax import ANSI_LIGHT, RICH_SYNTAX_THEMES
from rich.theme import Theme

from midturn_cli.render.theme import (
    LIGHT_BLUE,
    LIGHT_BROWN,
    LIGHT_CODE,
    LIGHT_GREEN,
    LIGHT_GREY,
    LIGHT_PURPLE,
    LIGHT_RED,
)

LIGHT_MARKDOWN = Theme(
    {
        "markdown.code": f"bold {LIGHT_BLUE}",
        "markdown.code_block": LIGHT_BLUE,
        "markdown.block_quote": LIGHT_PURPLE,
        "markdown.list": LIGHT_BLUE,
        "markdown.item.number": LIGHT_BLUE,
        "markdown.hr": LIGHT_GREY,
        "markdown.h2": f"underline {LIGHT_PURPLE}",
        "markdown.h3": f"bold {LIGHT_PURPLE}",
        "markdown.h4": f"italic {LIGHT_PURPLE}",
        "markdown.h6": LIGHT_GREY,
        "markdown.h7": f"italic {LIGHT_GREY}",
        "markdown.link": LIGHT_BLUE,
        "markdown.link_url": f"underline {LIGHT_BLUE}",
        "markdown.table.border": LIGHT_BLUE,
        "markdown.table.header": LIGHT_BLUE,
        "markdown.kbd": f"bold {LIGHT_BROWN}",
    }
)

_INSTEAD = {
    "white": LIGHT_GREY,
    "cyan": LIGHT_BLUE,
    "blue": LIGHT_BLUE,
    "bright_blue": LIGHT_BLUE,
    "magenta": LIGHT_PURPLE,
    "red": LIGHT_RED,
    "bright_red": LIGHT_RED,
    "green": LIGHT_GREEN,
    "yellow": LIGHT_BROWN,
}


def _readable(style: Style) -> Style:
    if style.dim:
        return Style.parse(f"italic {LIGHT_GREY}")
    return style if style.color is None else style + Style(color=_INSTEAD[style.color.name])


# By this name Rich finds it wherever a theme of code is named; it has no background.
RICH_SYNTAX_THEMES[LIGHT_CODE] = {token: _readable(style) for token, style in ANSI_LIGHT.items()}
