"""The flat part of YAML at the top of a Markdown file."""

from __future__ import annotations

import pytest

from midturn_core.front_matter import FrontMatterError, read_front_matter

FILE = """\
---
# what it is
name: reviewer
description: Reads a change: says what is wrong   # a remark
tools: [Read, "Grep"]
also:
  - one
  - 'two: three'
list:
- a
- b
long: begins here
  and goes on
folded: >
  one
  line
kept: |
  two
  lines
quoted: "a # b"
empty:
---

You review.
---
Still the text.
"""


def test_texts_lists_and_long_values_are_read() -> None:
    matter = read_front_matter(FILE)
    assert {key: entry.value for key, entry in matter.entries.items()} == {
        "name": "reviewer",
        "description": "Reads a change: says what is wrong",
        "tools": ("Read", "Grep"),
        "also": ("one", "two: three"),
        "list": ("a", "b"),
        "long": "begins here and goes on",
        "folded": "one line",
        "kept": "two\nlines",
        "quoted": "a # b",
        "empty": "",
    }
    assert matter.entries["tools"].line == 5
    assert matter.body == "You review.\n---\nStill the text."


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    windows = "\ufeff" + FILE.replace("\n", "\r\n")
    assert read_front_matter(windows) == read_front_matter(FILE)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the first line must be ---"),
        ("# Title\n", 1, "the first line must be ---"),
        ("---\nname: x\n", 1, "that ends the front matter is missing"),
        ("---\nname: x\nwhat\n---\n", 3, "'what' is no key: value line"),
        ("---\n  name: x\n---\n", 2, "'name: x' is no key: value line"),
        ("---\nname: x\nname: y\n---\n", 3, "name is given twice"),
        ("---\ntools: [a,\n  b]\n---\n", 2, "a list in brackets must end in its line"),
        ('---\nname: "x\n---\n', 2, 'the " that ends the text is missing'),
        ("---\ntools:\n  read: true\n---\n", 2, "values within values are not read"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(FrontMatterError) as raised:
        read_front_matter(text)
    assert raised.value.line == line
    assert problem in str(raised.value)
