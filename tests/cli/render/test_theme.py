"""The colours of the light theme can be read: their contrast to white is at least 4.5 to 1."""

from __future__ import annotations

import re
from dataclasses import astuple

import pytest
from rich.color import Color
from rich.style import Style
from rich.syntax import RICH_SYNTAX_THEMES

from midturn_cli.render.answer_markdown import AnswerMarkdown
from midturn_cli.render.canvas import Canvas
from midturn_cli.render.light_styles import LIGHT_MARKDOWN
from midturn_cli.render.theme import LIGHT, LIGHT_CODE
from midturn_cli.terminal.layout import STYLE

LEAST = 4.5
DOCUMENT = """\
# One
## Two
### Three
#### Four
###### Six

`code` [link](https://example.com) > no

> quote

1. one
- two

| a | b |
|---|---|
| c | d |

---

```python
# comment
import os
class A(B): x = "s" + 1; raise E
```
"""


def brightness(color: Color) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [part / 255 for part in color.get_truecolor()]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def on_white(color: Color) -> float:
    return 1.05 / (brightness(color) + 0.05)


def is_readable(style: Style) -> bool:
    """Without a colour of its own it is the terminal's; ``dim`` depends on the terminal."""
    return not style.dim and (style.color is None or on_white(style.color) >= LEAST)


def test_white_and_black_are_as_far_apart_as_can_be() -> None:
    assert on_white(Color.parse("#000000")) == pytest.approx(21)
    assert on_white(Color.parse("#ffffff")) == pytest.approx(1)


def test_every_colour_of_the_light_theme_can_be_read_on_white() -> None:
    names = [style for style in astuple(LIGHT) if style != LIGHT_CODE]
    assert [name for name in names if not is_readable(Style.parse(name))] == []


def test_code_and_markdown_can_be_read_on_white() -> None:
    elements = [
        style for name, style in LIGHT_MARKDOWN.styles.items() if name.startswith("markdown")
    ]
    code = RICH_SYNTAX_THEMES[LIGHT_CODE].values()
    assert [str(style) for style in (*elements, *code) if not is_readable(style)] == []


def test_a_document_on_a_light_background_has_no_other_colours() -> None:
    document = AnswerMarkdown(DOCUMENT, LIGHT_CODE)
    text = Canvas("truecolor", "light").render([document], 80)
    codes = set(re.findall(r"\x1b\[([\d;]+)m", text))
    others = {re.sub(r"38;5;\d+", "", code) for code in codes}
    assert {code for code in others if re.search(r"[349]\d|10\d", code)} == set()
    assert any("38;5;" in code for code in codes)


def test_the_greys_of_the_input_line_can_be_read_on_white() -> None:
    colours = [
        Color.parse(found[1])
        for _, style in STYLE.style_rules
        if (found := re.search(r"fg:(#\w{6})", style))
    ]
    assert colours
    assert [colour.name for colour in colours if on_white(colour) < LEAST] == []
