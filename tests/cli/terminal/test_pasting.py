from __future__ import annotations

import asyncio
import hashlib

import pytest

from midturn_cli.terminal.enter_bursts import EnteredLines, PastedLines, judge
from midturn_cli.terminal.pastes import PasteShelf
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import live_terminal, until

START, END = "\x1b[200~", "\x1b[201~"


def bracketed(text: str) -> str:
    return f"{START}{text}{END}"


async def test_a_bracketed_paste_is_one_draft_with_its_line_ends_unified() -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed("a\r\nb\rc\nd"))
        await terminal.draft_is("a\nb\nc\nd")
        assert terminal.session.texts == []


@pytest.mark.parametrize(
    ("text", "placeholder"),
    [
        ("line\n" * 21, "[Pasted #1 22 lines]"),
        ("x" * 2001, "[Pasted #1 2001 chars]"),
    ],
)
async def test_a_long_paste_is_shown_as_a_placeholder_and_submitted_whole(
    text: str, placeholder: str
) -> None:
    async with live_terminal() as terminal:
        terminal.send("look: ")
        terminal.send(bracketed(text))
        await terminal.shows(placeholder)
        terminal.send("\r")
        await terminal.submitted(f"look: {text}")


@pytest.mark.parametrize("text", ["x" * 2000, "line\n" * 19 + "line"])
async def test_a_short_paste_is_shown_as_it_is(text: str) -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed(text))
        await terminal.draft_is(text)
        assert "Pasted" not in terminal.screen_text()


async def test_two_hundred_kilobytes_arrive_unchanged_mid_turn() -> None:
    text = "".join(f"{number:06} äöü €\n" for number in range(14_000))
    async with live_terminal(FakeSession(busy=True)) as terminal:
        # In a thread: it is more than the pipe holds at once.
        await asyncio.to_thread(terminal.send, bracketed(text.replace("\n", "\r")) + "\r")
        await until(lambda: terminal.session.texts)
        sent = terminal.session.texts[0]
        assert hashlib.sha256(sent.encode()).digest() == hashlib.sha256(text.encode()).digest()


async def test_pasted_text_that_looks_like_a_placeholder_stays_text() -> None:
    inner = "[Pasted #1 2001 chars]" + "y" * 2000
    async with live_terminal() as terminal:
        terminal.send(bracketed("x" * 2001))
        terminal.send(bracketed(inner) + "\r")
        await terminal.submitted("x" * 2001 + inner)


@pytest.mark.parametrize(
    ("keys", "pasted"),
    [
        (bracketed("/clear\nrm x"), True),
        ("/clear", False),
        (f"see {bracketed('/clear')}", False),
        (bracketed("/clear") + "\x15" + "/help ", False),
        ("eins\rzwei\rdrei", True),
    ],
)
async def test_the_session_learns_whether_the_text_begins_with_a_paste(
    keys: str, pasted: bool
) -> None:
    async with live_terminal() as terminal:
        terminal.send(keys)
        await until(lambda: terminal.front.draft)
        await until(lambda: "\r" not in keys or "\n" in terminal.front.draft)
        terminal.send("\r")
        await until(lambda: terminal.session.submitted)
        assert [line.pasted for line in terminal.session.submitted] == [pasted]


async def test_lines_without_a_final_enter_in_one_read_are_one_pasted_draft() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("eins\rzwei\rdrei")
        await terminal.draft_is("eins\nzwei\ndrei")
        assert terminal.session.texts == []
        terminal.send("\r")
        await terminal.submitted("eins\nzwei\ndrei")


async def test_lines_that_each_end_with_enter_are_submitted_one_by_one() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("A\rB\rC\r")
        await terminal.submitted("A", "B", "C")
        assert terminal.front.draft == ""


async def test_where_pastes_come_with_marks_lines_typed_far_ahead_are_entered_one_by_one() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(bracketed("pasted"))
        await terminal.draft_is("pasted")
        terminal.send("\reins\rzwei\rdrei")
        await terminal.submitted("pasted", "eins", "zwei")
        await terminal.draft_is("drei")


async def test_lines_before_a_marked_paste_are_no_part_of_it() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(f"eins\rzwei\r{bracketed('drei')}")
        await terminal.submitted("eins", "zwei")
        await terminal.draft_is("drei")


async def test_one_enter_with_text_after_it_submits_at_once() -> None:
    async with live_terminal() as terminal:
        terminal.send("first\rsecond")
        await terminal.submitted("first")
        await terminal.draft_is("second")


async def test_a_burst_longer_than_one_read_is_judged_as_a_whole() -> None:
    lines = [f"line {number:04} of a long paste" for number in range(200)]
    async with live_terminal() as terminal:
        terminal.send("\r".join(lines))
        await terminal.draft_is("\n".join(lines))
        assert terminal.session.texts == []


async def test_editing_keys_inside_a_burst_act_on_their_line() -> None:
    async with live_terminal() as terminal:
        terminal.send("abx\x7fc\rworld\x01hello \rlast\r")
        await terminal.submitted("abc", "hello world", "last")


async def test_lines_of_a_burst_after_a_refused_one_stay_in_the_input() -> None:
    async with live_terminal(FakeSession(refusal="full")) as terminal:
        terminal.send("A\rB\rC\r")
        await terminal.draft_is("A\nB\nC")


async def test_ctrl_c_after_a_burst_comes_after_its_lines() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("A\rB\r\x03")
        await until(lambda: terminal.session.acts)
        assert terminal.session.texts == ["A", "B"]


def test_a_burst_is_judged_by_how_it_ends() -> None:
    assert judge(("a", "b"), "") == EnteredLines(("a", "b"))
    assert judge(("a", "b"), "c") == PastedLines(("a", "b", "c"))


def test_pastes_that_an_editor_left_as_they_were_are_folded_again_in_their_order() -> None:
    shelf = PasteShelf()
    first, second = shelf.fold("one\n" * 30), shelf.fold("two\n" * 30)
    shown = f"a {first} b {second} c {first}"
    whole = shelf.expand(shown)
    assert shelf.refold(whole, shown) == shown
    assert shelf.refold(whole.replace(" b ", " better "), shown) == shown.replace(" b ", " better ")
    changed = whole.replace("two\n", "2\n", 1)
    assert shelf.refold(changed, shown) == f"a {first} b 2\n" + "two\n" * 29 + f" c {first}"


def test_an_unknown_placeholder_stays_as_it_is() -> None:
    assert PasteShelf().expand("[Pasted #9 30 lines]") == "[Pasted #9 30 lines]"


async def test_control_characters_take_as_many_rows_as_they_need() -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed("\x01\x02" * 100 + "\x7f\x9b the end"))
        await terminal.shows("› ␁␂␁␂")
        await terminal.shows("␡· the end")


async def test_tabs_are_shown_as_blanks_and_stay_tabs() -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed("if x:\n\treturn 1\ny\tz"))
        await terminal.shows("\n    return 1\ny   z")
        await terminal.draft_is("if x:\n\treturn 1\ny\tz")


async def test_letters_that_a_terminal_would_hide_or_obey_are_shown_as_dots() -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed("safe\u202egpj.exe\u200b!"))
        await terminal.shows("› safe·gpj.exe·!")
        await terminal.draft_is("safe\u202egpj.exe\u200b!")
