"""Markdown of others as HTML that is only to be looked at.

Raw HTML in it is text, an image is its description, and a link is its text and its address: what
comes out refers to nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from rich.console import Console
from rich.syntax import Syntax

MAX_COLOURED = 20_000
"""Characters of a code block; a longer one has no colours: some lexers take for ever."""
MAX_SOURCE = 500_000
"""Characters of an answer; a longer one is shown as it stands."""


def html_of(markdown: str) -> str:
    """The text (cleaned) as HTML. Never fails: what cannot be parsed is shown as it stands."""
    if len(markdown) > MAX_SOURCE:
        return f"<pre>{escape(markdown)}</pre>"
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    for name, rule in (
        ("link_open", _nothing),
        ("link_close", _link_target),
        ("image", _image),
        ("fence", _code),
        ("code_block", _code),
    ):
        parser.add_render_rule(name, rule)
    try:
        rendered: str = parser.render(markdown)
    # An isolation wall: a text that a library chokes on must not lose the whole session.
    except Exception:
        return f"<pre>{escape(markdown)}</pre>"
    return rendered


def _nothing(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    return ""


def _link_target(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    start = index
    while tokens[start].type != "link_open":
        start -= 1
    target = str(tokens[start].attrs.get("href", ""))
    text = "".join(token.content for token in tokens[start + 1 : index])
    return "" if text == target else f' <span class="target">({escape(target)})</span>'


def _image(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    target = escape(str(token.attrs.get("src", "")))
    return f'[image: {escape(token.content)}] <span class="target">({target})</span>'


def _code(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    language = token.info.strip().partition(" ")[0]
    return f'<pre class="code">{coloured(token.content, language)}</pre>\n'


def coloured(code: str, language: str) -> str:
    """Code as HTML; a colour is a class named after it, such as ``bright_blue``."""
    if not language or len(code) > MAX_COLOURED:
        return escape(code)
    text = Syntax(code, language, theme="ansi_dark").highlight(code)
    console = Console(color_system="truecolor", width=80)
    pieces: list[str] = []
    for segment in text.render(console):
        color = segment.style.color if segment.style is not None else None
        shown = escape(segment.text)
        if color is None or color.is_default or not shown.strip():
            pieces.append(shown)
        else:
            pieces.append(f'<span class="{color.name}">{shown}</span>')
    return "".join(pieces)
