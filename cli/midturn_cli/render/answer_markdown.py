"""The Markdown of answers, as Rich prints it, with nothing left out of what was written.

Rich drops HTML and puts an image before the block it stands in, which may be on the screen by then:
here HTML is text, and an image is its description and address, in its place.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.markdown import Markdown

IMAGE_SIGN = "🌆"


def answer_parser() -> MarkdownIt:
    """A parser of its own: keeping one saves more than parsing a paragraph costs."""
    parser = MarkdownIt(options_update={"html": False}).enable("strikethrough").enable("table")
    parser.core.ruler.push("images_as_text", _images_as_text)
    return parser


class AnswerMarkdown(Markdown):
    """A whole answer in one go."""

    def __init__(self, text: str, code_theme: str) -> None:
        super().__init__("", code_theme=code_theme, hyperlinks=False)
        self.parsed = answer_parser().parse(text)


def _images_as_text(state: StateCore) -> None:
    for token in state.tokens:
        if token.children:
            token.children = [_as_text(child) for child in token.children]


def _as_text(token: Token) -> Token:
    if token.type != "image":
        return token
    words = " ".join(filter(None, (IMAGE_SIGN, token.content, f"({token.attrGet('src')})")))
    return Token("text", "", 0, content=words, level=token.level)
