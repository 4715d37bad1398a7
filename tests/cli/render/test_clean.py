from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from rich.cells import cell_len

from midturn_cli.render.cells import cut, wrap_hard
from midturn_cli.render.clean import StreamCleaner, beginning, clean, one_line, reveal, reveal_line
from tests.support.terminal_text import TerminalTextCase, acts_on_terminal, cases, shows

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_cleaned_text_cannot_act_on_the_terminal_and_keeps_what_is_readable(
    case: TerminalTextCase,
) -> None:
    for result in (clean(case.text), reveal(case.text), one_line(case.text)):
        assert acts_on_terminal(result) == []
        assert shows(result, case.must_show)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_text_in_pieces_is_cleaned_like_text_in_one(case: TerminalTextCase) -> None:
    for seed in range(10):
        assert in_pieces(case.text, random.Random(seed)) == clean(case.text)


@given(st.text(alphabet="\x1b[]0;m\x07\x9b\x9d\\\r\n\tab\u202eP", max_size=60), st.integers(0, 999))
def test_any_text_in_pieces_is_safe(text: str, seed: int) -> None:
    assert acts_on_terminal(in_pieces(text, random.Random(seed))) == []


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def in_pieces(text: str, rng: random.Random) -> str:
    cleaner = StreamCleaner()
    result = ""
    position = 0
    while position < len(text):
        size = rng.randint(1, 5)
        result += cleaner.feed(text[position : position + size])
        position += size
    return result + cleaner.end()


def test_an_unfinished_title_sequence_does_not_swallow_the_text_after_it() -> None:
    assert "rm -rf" in clean("\x1b]0;title without end\nrm -rf ~")


@pytest.mark.parametrize("before", ["a", "👍"])
def test_no_letter_of_a_question_is_painted_wider_than_its_row_was_made_for(before: str) -> None:
    """Otherwise enough of them push the end of a command out of the window."""
    revealed = (reveal(before + chr(code)) for code in range(0x80, 0x20000) if code >> 11 != 0x1B)
    assert [text for text in revealed if sum(map(get_cwidth, text)) > cell_len(text)] == []


def test_a_command_hidden_in_an_escape_sequence_is_revealed() -> None:
    assert reveal("echo \x1b]0;; rm -rf ~\x07 hi") == "echo ␛]0;; rm -rf ~␇ hi"


def test_blanks_that_push_a_command_out_of_sight_are_counted() -> None:
    assert reveal_line("ls" + " " * 500 + "; rm x") == "ls ⟨500 blanks⟩ ; rm x"


def test_line_ends_of_all_kinds_become_one_kind() -> None:
    assert clean("a\r\nb\rc\x0bd\u2028e") == "a\nb\nc\nd\ne"


def test_one_line_shows_line_ends() -> None:
    assert one_line("  a\n  b ") == "a ⏎ b"
    assert one_line("a\nb", line_end=" ") == "a b"


def test_a_cut_is_made_by_cell_width_and_marked() -> None:
    assert cut("안녕하세요", 5) == "안녕…"
    assert cut("hello", 5) == "hello"
    assert cut("hello!", 5) == "hell…"
    assert cut("hello", 1) == "…"
    assert cut("hello", 0) == ""


@given(st.text(alphabet="ab안녕é👍", max_size=80), st.integers(2, 20))
def test_hard_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    rows = wrap_hard(text, width)
    assert "".join(rows) == text
    assert all(cell_len(row) <= width for row in rows)


def test_a_megabyte_of_sequence_starts_is_cleaned_in_one_pass() -> None:
    for start in ("\x9d", "\x1b]", "\x1b[", "\x1b]a\x1b"):
        assert acts_on_terminal(clean(start * 200_000)) == []


def test_a_list_shows_the_beginning_of_a_long_text_and_says_that_there_is_more() -> None:
    assert beginning(" two\nlines ", 20) == "two ⏎ lines"
    assert beginning("\n\n" + "x" * 21, 20) == "x" * 20 + "…"
    assert beginning("\x1b]0;" + "x" * 50, 20).startswith("]0;xx")
