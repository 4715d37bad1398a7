from __future__ import annotations

import email
import importlib.metadata
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from midturn_cli.render.answer_markdown import AnswerMarkdown
from midturn_cli.render.canvas import Canvas
from midturn_cli.render.clean import clean
from midturn_cli.render.markdown_pieces import MarkdownPiece, render_piece
from midturn_cli.render.markdown_stream import LONG_FENCE, MarkdownStream

THEME = "ansi_dark"
CANVAS = Canvas("truecolor")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def one_shot(text: str, width: int = 80) -> str:
    return CANVAS.render([AnswerMarkdown(text, THEME)], width)


def streamed(text: str, seed: int, width: int = 80, largest: int = 400) -> str:
    rng = random.Random(seed)
    stream = MarkdownStream()
    result = ""
    position = 0
    while position < len(text):
        size = rng.randint(1, largest)
        stream.feed(text[position : position + size])
        position += size
        for piece in stream.take(at_once=True):
            result += render_piece(piece, CANVAS, width, THEME)
    for piece in stream.end():
        result += render_piece(piece, CANVAS, width, THEME)
    return result


BLOCKS = [
    "A paragraph with *emphasis*, **strength** and `code`.",
    "two\nlines",
    "# Heading",
    "Setext\n======",
    "- a\n- b\n  - nested\n- c",
    "- loose\n\n- list\n\n  with a paragraph",
    "1. one\n2. two\n10. ten",
    "> quoted\nlazy\n\n> another",
    "---",
    "***",
    "```python\ndef f():\n    return '''a\n\n    b'''\n```",
    "````\n```\nnested fence\n```\n````",
    "~~~\nunclosed",
    "    indented code\n\n    goes on",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "<details>\n<summary>x</summary>\n\ntext\n\n</details>",
    "![image](http://x.example/i.png)",
    "- item with ![image](http://x.example/i.png) in it\n- next",
    "[![badge](http://x.example/b.svg)](http://x.example) and <kbd>x</kbd>",
    "[link](http://x.example) and <http://auto.example>",
    "[ref]: http://defined.example",
    "use of [ref] after",
    "hard  \nbreak",
    "- [ ] task\n- [x] done",
    "한국어 문단과 emoji 👍",
    "trailing blanks   ",
    "1) other list\n2) style",
    "\\*escaped\\* &amp; entity",
    "* * *\n- after rule",
    "text\n---\nafter setext",
]


def test_nothing_that_was_written_is_left_out_or_moved() -> None:
    text = "first\n\nUse <b>bold</b> and ![a shot](http://x.example/i.png) here\n\n<div>\nkept\n</div>\n"
    shown = SGR.sub("", one_shot(text))
    assert "Use <b>bold</b> and 🌆 a shot (http://x.example/i.png) here" in shown
    assert "<div> kept </div>" in shown


def test_one_empty_row_stands_between_blocks_and_headings_stand_left() -> None:
    text = (
        "# Heading\n\ntext\n\n```python\nx = 1\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |"
        "\n\nmore\n\n---\n\n    indented\n\nend\n"
    )
    assert [row.rstrip() for row in SGR.sub("", one_shot(text)).split("\n")] == [
        "Heading",
        "",
        "text",
        "",
        " x = 1",
        "",
        "▌ quoted",
        "",
        "a  b",
        "────",
        "1  2",
        "",
        "more",
        "",
        "─" * 80,
        "",
        " indented",
        "",
        "end",
        "",
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(BLOCKS), st.sampled_from(["\n", "\n\n", "\n\n\n"])), max_size=12
    ),
    st.integers(0, 10_000),
    st.sampled_from([20, 40, 80]),
)
@settings(max_examples=80, deadline=None)
def test_a_streamed_document_is_byte_for_byte_the_whole_one(
    parts: list[tuple[str, str]], seed: int, width: int
) -> None:
    text = "".join(block + end for block, end in parts)
    if has_forward_reference(text):
        return
    assert streamed(text, seed, width, largest=30) == one_shot(text, width)


def has_forward_reference(text: str) -> bool:
    """The name before its last definition: an earlier one may stand where it is only a use."""
    return "[ref]" in text.rpartition("[ref]: ")[0]


def descriptions() -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.read_text("METADATA") or ""
        text = email.message_from_string(metadata).get_payload()
        if isinstance(text, str) and 400 < len(text) < 60_000:
            found[distribution.name] = clean(text)
    return sorted(found.items())


DESCRIPTIONS = descriptions()


def test_there_are_enough_package_descriptions() -> None:
    assert len(DESCRIPTIONS) >= 50


@pytest.mark.parametrize(("name", "text"), DESCRIPTIONS, ids=[name for name, _ in DESCRIPTIONS])
def test_package_descriptions_stream_like_the_whole(name: str, text: str) -> None:
    env: dict[str, object] = {}
    MarkdownIt().enable("strikethrough").enable("table").parse(text, env)
    if env.get("references"):
        # A reference that is defined after its use cannot be known in a stream.
        definitions = re.findall(r"(?m)^ {0,3}\[[^\]\n]+\]: .*$", text)
        text = "\n\n".join([*definitions, text])
    expected, result = one_shot(text), streamed(text, seed=len(text))
    if has_long_fence(text):
        expected, result = SGR.sub("", expected), SGR.sub("", result)
    assert result == expected


def has_long_fence(text: str) -> bool:
    tokens = MarkdownIt().parse(text)
    return any(t.type == "fence" and t.content.count("\n") > LONG_FENCE for t in tokens)


CODE = "\n".join(
    f"def function_{i}(value):  # {'x' * (i % 90)}\n    return '''{i}\n    more''' + str(value)\n"
    for i in range(150)
)


@pytest.mark.parametrize("around", ["", "Before.\n\n", "---\n\n", "- list\n\n"])
@pytest.mark.parametrize("close", ["\n```\n\nAfter.\n", "\n\n\n\n```\n", "", "\n"])
def test_a_long_code_block_has_the_same_text_whatever_the_pieces(around: str, close: str) -> None:
    text = f"{around}```python\n{CODE}{close}"
    whole = SGR.sub("", one_shot(text, 60))
    assert SGR.sub("", streamed(text, seed=3, width=60)) == whole


def test_the_colours_of_a_long_code_block_hardly_differ() -> None:
    code = "\n".join(f"value_{i} = call({i}, 'text')  # comment" for i in range(350))
    text = f"```python\n{code}\n```\n"
    assert streamed(text, seed=5) == one_shot(text)


@pytest.mark.parametrize("mark", ["-", "*", "1000."])
def test_a_long_list_is_the_same_whatever_the_pieces(mark: str) -> None:
    items = "".join(f"{mark} item {i}\n\n  - nested\n" for i in range(250))
    text = f"Before\n\n{items}\nAfter\n"
    assert streamed(text, seed=4) == one_shot(text)


@pytest.mark.parametrize("items", ["- item\n" * 2, "1. item\n" * 2])
def test_items_of_a_list_are_final_before_its_end(items: str) -> None:
    stream = MarkdownStream()
    stream.feed(items)
    assert stream.take(at_once=True)


@pytest.mark.parametrize(
    "written", [[1] * 130, [95, 2, 7, *range(100)], [0] * 12, [999_999_990] * 20]
)
def test_numbered_items_count_on_whatever_the_pieces(written: list[int]) -> None:
    items = "".join(
        f"{number}. word " + "and more " * (i % 12) + "\n" for i, number in enumerate(written)
    )
    text = f"Before\n\n{items}\nBetween\n\n3) another\n3) list\n"
    shown = SGR.sub("", one_shot(text))
    assert [int(n) for n in re.findall(r"(?m)^ *(\d+)\. word", shown)] == [
        *range(written[0], written[0] + len(written))
    ]
    for largest in (5, 60, 4_000):
        assert streamed(text, seed=largest, largest=largest) == one_shot(text)


def test_the_texts_of_ten_items_and_more_stand_in_one_column() -> None:
    shown = SGR.sub("", one_shot("".join(f"{n}. x\n" for n in range(1, 101))))
    columns = [row.index("x") for row in shown.split("\n") if "x" in row]
    assert set(columns[:99]) == {4} and columns[99] == 5


def test_a_full_stop_stands_after_the_number_of_an_item() -> None:
    text = "Before\n\n1. one\n2. two\n   - inner\n3. three\n"
    shown = SGR.sub("", one_shot(text))
    assert [row.strip() for row in shown.split("\n") if row.strip()] == [
        "Before",
        "1. one",
        "2. two",
        "• inner",
        "3. three",
    ]
    assert streamed(text, seed=3) == one_shot(text)


def test_an_item_without_a_text_has_its_number() -> None:
    text = "1. one\n2.\n3. three\n4."
    shown = SGR.sub("", one_shot(text))
    assert [row.strip() for row in shown.split("\n") if row.strip()] == text.split("\n")
    assert streamed(text, seed=3, largest=1) == one_shot(text)


def test_rows_of_a_long_code_block_are_final_before_its_end() -> None:
    stream = MarkdownStream()
    stream.feed("```\n" + "line\n" * 100)
    assert stream.take(at_once=True)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000,
        "x" * 1_000_000,
        "[" * 50_000 + "]" * 50_000,
        "*a " * 9_000,
        "`" * 9_999 + "\n" + "``" * 4_000,
        "> " * 3_000 + "deep",
        "- " * 3_000 + "deep",
        "![[" * 3_000,
        "<a " * 3_000,
        "|" * 5_000 + "\n" + "|-" * 2_000 + "|\n" + "|" * 3_000,
        "```" + "x" * 5_000 + "\n",
        "```\x00\n",
        "&#x110000; &#0; [a](<b\n",
    ],
    ids=lambda text: text[:8],
)
def test_no_text_is_too_strange(text: str) -> None:
    stream = MarkdownStream()
    stream.feed(text[:100])
    stream.tail(CANVAS, 40, 10, THEME)
    stream.feed(text[100:])
    pieces = stream.take(at_once=True) + stream.end()
    assert render_pieces(pieces)


def render_pieces(pieces: list[MarkdownPiece]) -> str:
    return "".join(render_piece(piece, CANVAS, 40, THEME) for piece in pieces)


def test_the_tail_shows_the_last_rows_of_the_open_block() -> None:
    stream = MarkdownStream(clock=iter(range(1_000)).__next__)
    stream.feed("Done.\n\n" + "".join(f"row {i}  \n" for i in range(30)) + "row 30")
    stream.take(at_once=True)
    rows = [SGR.sub("", row) for row in stream.tail(CANVAS, 40, 10, THEME)]
    assert len(rows) == 10
    assert rows[-1].strip() == "row 30"


def test_the_tail_is_never_filled_to_the_full_width() -> None:
    stream = MarkdownStream()
    stream.feed("> quote\n\n```python\nx = 1\n")
    assert all(len(SGR.sub("", row)) < 40 for row in stream.tail(CANVAS, 40, 10, THEME))


def test_the_tail_is_rendered_less_often_the_more_it_costs() -> None:
    times = iter([0.0, 2.0, 11.9, 12.0, 12.1])
    stream = MarkdownStream(clock=times.__next__)
    stream.feed("one")
    first = stream.tail(CANVAS, 40, 10, THEME)
    stream.feed(" two")
    assert stream.tail(CANVAS, 40, 10, THEME) == first
    assert stream.tail(CANVAS, 40, 10, THEME) != first


def test_a_half_line_defines_no_link() -> None:
    stream = MarkdownStream()
    stream.feed("[a]: http://wrong")
    stream.tail(CANVAS, 80, 10, THEME)
    stream.feed(".example/right\n\n[a]\n")
    assert "http://wrong.example/right" in render_pieces(
        [*stream.take(at_once=True), *stream.end()]
    )
