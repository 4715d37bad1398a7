"""The Markdown of answers, as Rich prints it, but for what cannot be known while it comes.

Rich drops HTML and puts an image before the block it stands in, which may be on the screen by then:
here HTML is text, and an image is its description and address, in its place. Rich makes the numbers
of a list as wide as its last one: here an item depends on no later one, and a full stop stands after its number.

Headings are not centred, and one empty row stands between blocks: Rich also puts one inside the
edges of code and tables.
"""

from __future__ import annotations

from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    ListElement,
    Markdown,
    MarkdownElement,
    TableElement,
)
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

CODE_PADDING = (0, 1)
"""Cells above and below, and beside: code is set in by one."""
IMAGE_SIGN = "🌆"
_WIDEST_USUAL_NUMBER = 99
"""Items up to this one have their texts in one column."""


class NumberedList(ListElement):
    """An ordered list whose items need no more room than their own number."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first = 1 if self.list_start is None else self.list_start
        style = console.get_style("markdown.item.number", default="none")
        for number, item in enumerate(self.items, first):
            widest = max(number, _WIDEST_USUAL_NUMBER)
            yield Segment(f"{number}. ".rjust(len(f"{widest}. ")), style)
            # Rich gives no row to an item without a text, such as one whose number has just come.
            written = list(item.render_number(console, options, number, widest))
            yield from written[1:] or [Segment.line()]


class LeftHeading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=CODE_PADDING)


class PlainTable(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                part.show_edge = False
            yield part


class LineRule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr", characters="─")
        yield Text()


def answer_parser() -> MarkdownIt:
    """A parser of its own: keeping one saves more than parsing a paragraph costs."""
    parser = MarkdownIt(options_update={"html": False}).enable("strikethrough").enable("table")
    parser.core.ruler.push("images_as_text", _images_as_text)
    return parser


class AnswerMarkdown(Markdown):
    """A whole answer in one go."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": Code,
        "code_block": Code,
        "table_open": PlainTable,
        "hr": LineRule,
        "ordered_list_open": NumberedList,
    }

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
