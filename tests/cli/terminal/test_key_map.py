"""Keys that a person can change do what their action says, and only then."""

from __future__ import annotations

from dataclasses import fields
from unittest.mock import Mock

from prompt_toolkit.filters import Always

from midturn_cli.terminal.keys import actions
from midturn_core.config import KeysConfig
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import TerminalSetup, live_terminal, until, within_deadline
from tests.support.terminal_screen import Screen


async def test_another_key_submits_and_enter_then_begins_a_new_line() -> None:
    keys = KeysConfig(submit=("escape enter",), newline=("enter",))
    async with live_terminal(setup=TerminalSetup(key_map=keys)) as terminal:
        terminal.send("one\rtwo\rthree\x1b\r")
        await terminal.submitted("one\ntwo\nthree")


async def test_keys_of_another_action_no_longer_have_their_built_in_meaning() -> None:
    keys = KeysConfig(stash=("f5",), leave=("c-s",))
    async with live_terminal(setup=TerminalSetup(key_map=keys)) as terminal:
        await terminal.press("\x04")
        terminal.send("aside\x1b[15~")
        await terminal.shows("stashed (F5 brings it back): aside")
        terminal.send("\x13")
        assert await within_deadline(terminal.task) == 0


async def test_an_action_without_keys_cannot_be_reached() -> None:
    keys = KeysConfig(cancel=())
    async with live_terminal(FakeSession(busy=True), TerminalSetup(key_map=keys)) as terminal:
        terminal.send("\x1b")
        terminal.send("a")
        await terminal.shows("a")
        assert terminal.session.acts == []


async def test_undo_and_redo_walk_through_the_changes_of_the_draft() -> None:
    async with live_terminal() as terminal:
        terminal.send("some words")
        await terminal.draft_is("some words")
        terminal.send("\x17")
        await terminal.draft_is("some ")
        terminal.send("\x1f")
        await terminal.draft_is("some words")
        terminal.send("\x1b_")
        await terminal.draft_is("some ")
        terminal.send("\x18\x15")
        await terminal.draft_is("some words")


async def test_a_chosen_search_key_finds_one_line_after_another() -> None:
    setup = TerminalSetup(key_map=KeysConfig(search=("f3",)))
    async with live_terminal(setup=setup) as terminal:
        for line in ("needle one", "needle two"):
            terminal.send(f"{line}\r")
            await terminal.draft_is("")
        terminal.send("\x1bORneedle")
        await terminal.shows("needle two")
        terminal.send("\x1bOR")
        await terminal.shows("needle one")
        terminal.send("\r")
        await terminal.draft_is("needle one")


async def test_the_expand_key_asks_for_the_newest_result_and_leaves_the_draft() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("half a th\x0fought")
        await terminal.submitted("/expand")
        await terminal.draft_is("half a thought")


async def test_the_mode_key_asks_for_the_next_mode_and_leaves_the_draft() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("half a th\x1b[Zought")
        await terminal.submitted("/mode next")
        await terminal.draft_is("half a thought")


async def test_the_mode_key_goes_back_in_a_completion_menu() -> None:
    async with live_terminal() as terminal:
        terminal.send("/h")
        await terminal.shows("/history  show earlier prompts")
        terminal.send("\t\t")
        await terminal.draft_is("/history")
        terminal.send("\x1b[Z")
        await terminal.draft_is("/help")
        assert terminal.session.texts == []


async def test_the_stash_key_puts_the_draft_aside_and_brings_it_back() -> None:
    async with live_terminal() as terminal:
        terminal.send("a long thought\x13")
        await terminal.shows("stashed (Ctrl-S brings it back): a long thought")
        assert terminal.front.draft == ""
        terminal.send("quick question\r")
        await terminal.submitted("quick question")
        assert terminal.front.stash == "a long thought"
        terminal.send("\x13")
        await terminal.draft_is("a long thought")
        assert terminal.front.stash == ""
        await until(lambda: "stashed" not in terminal.screen().screen_text()[-1])


async def test_draft_and_stash_change_places_so_that_neither_is_lost() -> None:
    async with live_terminal() as terminal:
        terminal.send("first\x13second\x13")
        await terminal.draft_is("first")
        assert terminal.front.stash == "second"
        terminal.send("\x13")
        await terminal.draft_is("second")
        assert terminal.front.stash == "first"


async def test_the_stash_keeps_pastes_tier_and_cursor() -> None:
    paste = "line\n" * 100
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(f"ab\x1b[200~{paste}\x1b[201~\t\x01\x13")
        await terminal.shows("stashed (Ctrl-S brings it back): ab[Pasted #1 101 lines]")
        assert terminal.front.stash == f"ab{paste}"
        terminal.send("\x13")
        await terminal.shows("NOW redirects at once › ab[Pasted #1 101 lines]")
        terminal.send("x\r")
        await terminal.submitted(f"xab{paste}")


async def test_a_stash_of_an_earlier_session_is_there_from_the_start() -> None:
    async with live_terminal(setup=TerminalSetup(stash="kept")) as terminal:
        await terminal.shows("stashed (Ctrl-S brings it back): kept")
        terminal.send("\x13")
        await terminal.draft_is("kept")


async def test_a_stash_with_nothing_at_all_changes_nothing() -> None:
    async with live_terminal() as terminal:
        await terminal.press("\x13")
        terminal.send("a")
        await terminal.draft_is("a")
        assert terminal.front.stash == ""


async def test_the_stash_leaves_room_for_the_input_in_a_low_window() -> None:
    setup = TerminalSetup(rows=6, stash="kept")
    async with live_terminal(setup=setup) as terminal:
        terminal.send("one\ntwo\nthree")
        await terminal.shows("three")
        shown = [row for row in terminal.screen().screen_text() if row]
        assert len(shown) <= 3
        assert shown[0].startswith("stashed (Ctrl-S brings it back): kept")


async def test_the_vi_mode_stands_before_the_input_line() -> None:
    async with live_terminal(setup=TerminalSetup(keys="vi")) as terminal:
        terminal.send("word")
        await terminal.shows("[I] › word")
        terminal.send("\x1b")
        await terminal.shows("[N] › word")
        terminal.send("v")
        await terminal.shows("[V] › word")
        terminal.send("\x1b")
        await terminal.shows("[N] › word")
        terminal.send("R")
        await terminal.shows("[R] › word")
        terminal.send("\x1b")
        await terminal.shows("[N] › word")
        terminal.send("\r")
        await terminal.submitted("word")
        terminal.send("next")
        await terminal.shows("[I] › next")


async def test_vi_keys_undo_and_redo_in_normal_mode() -> None:
    async with live_terminal(setup=TerminalSetup(keys="vi")) as terminal:
        terminal.send("one two")
        await terminal.draft_is("one two")
        terminal.send("\x1b")
        await terminal.shows("[N]")
        terminal.send("dd")
        await terminal.draft_is("")
        terminal.send("u")
        await terminal.draft_is("one two")
        terminal.send("\x12")
        await terminal.draft_is("")


async def test_the_cursor_stands_behind_wide_letters_by_their_cells() -> None:
    async with live_terminal(setup=TerminalSetup(columns=20)) as terminal:
        terminal.send("한글 日本")
        await terminal.shows("한글 日本")
        assert cursor_in_row(terminal.screen()) == (2 + 9, "› 한글 日本")
        await terminal.press("\x1b[D")
        await until(lambda: terminal.screen().cursor.x == 2 + 7)


async def test_a_wide_letter_that_does_not_fit_begins_the_next_row() -> None:
    async with live_terminal(setup=TerminalSetup(columns=11)) as terminal:
        terminal.send("가나다라마")
        await until(lambda: cursor_in_row(terminal.screen()) == (2, "마"))
        assert "› 가나다라" in terminal.screen_text()
        terminal.send("\x7f")
        await until(lambda: cursor_in_row(terminal.screen()) == (10, "› 가나다라"))


def cursor_in_row(screen: Screen) -> tuple[int, str]:
    return screen.cursor.x, screen.row_text(screen.cursor.y)


def test_every_action_has_a_binding_and_every_binding_an_action() -> None:
    table = actions(Mock(), Always())
    assert set(table) == {field.name for field in fields(KeysConfig)}
