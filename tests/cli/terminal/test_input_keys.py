from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from midturn_core.config import KeysConfig, QueueConfig
from midturn_core.queue.types import QueuedInputPriority
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import (
    LiveTerminal,
    TerminalSetup,
    live_terminal,
    until,
    within_deadline,
)

NOW, NEXT, LATER = QueuedInputPriority.NOW, QueuedInputPriority.NEXT, QueuedInputPriority.LATER
ESC = "\x1b"


async def test_enter_submits_the_draft_with_the_configured_meaning() -> None:
    async with live_terminal() as terminal:
        terminal.send("hello\r")
        await terminal.submitted("hello")
        assert terminal.session.submitted[0].priority is None
        assert terminal.front.draft == ""


async def test_white_space_is_not_submitted() -> None:
    async with live_terminal() as terminal:
        terminal.send("   \r")
        terminal.send("x\r")
        await terminal.submitted("x")


async def test_a_refused_line_stays_in_the_input_and_the_reason_is_shown() -> None:
    async with live_terminal(FakeSession(refusal="the queue is full")) as terminal:
        terminal.send("keep me\r")
        await terminal.shows("the queue is full")
        assert terminal.front.draft == "keep me"


@pytest.mark.parametrize("keys", ["one\x1b\rtwo", "one\ntwo", "one\\\rtwo"])
async def test_alt_enter_ctrl_j_and_a_trailing_backslash_begin_a_new_line(keys: str) -> None:
    async with live_terminal() as terminal:
        terminal.send(keys)
        await terminal.draft_is("one\ntwo")
        terminal.send("\r")
        await terminal.submitted("one\ntwo")


async def test_a_doubled_trailing_backslash_is_submitted_as_it_is() -> None:
    async with live_terminal() as terminal:
        terminal.send("C:\\\\\r")
        await terminal.submitted("C:\\\\")


async def test_tab_cycles_the_tier_of_a_draft_while_busy_and_shows_its_meaning() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("a")
        await terminal.shows("NEXT after this step › a")
        terminal.send("\t")
        await terminal.shows("NOW redirects at once › a")
        terminal.send("\t")
        await terminal.shows("LATER after this turn › a")
        terminal.send("\r")
        await terminal.submitted("a")
        assert terminal.session.submitted[0].priority is LATER
        terminal.send("b\r")
        await terminal.submitted("a", "b")
        assert terminal.session.submitted[1].priority is None


@pytest.mark.parametrize(
    ("queue", "tags"),
    [
        (
            QueueConfig(next_delivery="turn_end", now_hastens=False),
            ["NEXT when the turn ends", "NOW first after this step", "LATER after this turn"],
        ),
        (
            QueueConfig(later="manual"),
            ["NEXT after this step", "NOW redirects at once", "LATER on /later run"],
        ),
    ],
)
async def test_the_tag_says_what_the_configuration_makes_of_a_tier(
    queue: QueueConfig, tags: list[str]
) -> None:
    async with live_terminal(FakeSession(busy=True), TerminalSetup(queue=queue)) as terminal:
        terminal.send("a")
        for tag in tags:
            await terminal.shows(f"{tag} › a")
            terminal.send("\t")


async def test_the_cycle_starts_at_the_configured_tier() -> None:
    setup = TerminalSetup(queue=QueueConfig(enter="later"))
    async with live_terminal(FakeSession(busy=True), setup) as terminal:
        terminal.send("a\t\r")
        await terminal.submitted("a")
        assert terminal.session.submitted[0].priority is NEXT


async def test_tab_on_an_empty_draft_chooses_no_tier() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("\ta\r")
        await terminal.submitted("a")
        assert terminal.session.submitted[0].priority is None


async def test_tab_when_idle_chooses_no_tier() -> None:
    async with live_terminal() as terminal:
        terminal.send("a\t\r")
        await terminal.submitted("a")
        assert terminal.session.submitted[0].priority is None


async def test_enter_on_an_empty_input_releases_held_inputs() -> None:
    async with live_terminal(FakeSession(has_held=True)) as terminal:
        terminal.send("\r")
        await until(lambda: terminal.session.acts == ["release_held"])


def press_ctrl_c(terminal: LiveTerminal) -> None:
    terminal.send("\x03")


def send_sigint(_: LiveTerminal) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("interrupt", [press_ctrl_c, send_sigint])
async def test_ctrl_c_and_sigint_interrupt_the_turn_and_keep_the_draft(
    interrupt: Callable[[LiveTerminal], None],
) -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("half a th")
        await terminal.draft_is("half a th")
        for _ in range(5):
            interrupt(terminal)
        await until(lambda: terminal.session.acts == ["interrupt"] * 5)
        assert terminal.front.draft == "half a th"
        assert not terminal.task.done()


async def test_ctrl_c_when_idle_clears_the_draft_and_undo_brings_it_back() -> None:
    async with live_terminal() as terminal:
        terminal.send("precious")
        await terminal.draft_is("precious")
        terminal.send("\x03")
        await terminal.draft_is("")
        terminal.send("\x1f")
        await terminal.draft_is("precious")


async def test_ctrl_c_twice_within_a_second_on_an_empty_idle_prompt_leaves() -> None:
    async with live_terminal() as terminal:
        terminal.send("\x03")
        await terminal.shows("Press Ctrl-C again to quit.")
        terminal.clock.now += 0.9
        terminal.send("\x03")
        assert await within_deadline(terminal.task) == 0


async def test_ctrl_c_before_and_after_a_line_does_not_leave() -> None:
    async with live_terminal() as terminal:
        terminal.send("\x03")
        await terminal.shows("Press Ctrl-C again to quit.")
        terminal.send("/status\r")
        await terminal.submitted("/status")
        terminal.send("\x03x")
        await terminal.draft_is("x")


async def test_ctrl_c_twice_with_a_pause_only_hints_again() -> None:
    async with live_terminal() as terminal:
        terminal.send("\x03")
        await terminal.shows("Press Ctrl-C again to quit.")
        terminal.clock.now += 1.1
        terminal.send("\x03still here\r")
        await terminal.submitted("still here")


async def test_ctrl_d_leaves_when_idle_and_empty() -> None:
    async with live_terminal() as terminal:
        terminal.send("\x04")
        assert await within_deadline(terminal.task) == 0


async def test_ctrl_d_is_ignored_while_busy_and_deletes_in_a_draft() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("\x04" * 300)
        terminal.send("abc\x01\x04")
        await terminal.draft_is("bc")


async def test_esc_interrupts_the_turn() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(ESC)
        await until(lambda: terminal.session.acts == ["interrupt"])


async def test_esc_cancels_only_the_call_that_a_now_input_waits_for() -> None:
    async with live_terminal(FakeSession(busy=True, awaited_call=True)) as terminal:
        terminal.send(ESC)
        await until(lambda: terminal.session.acts == ["cancel_awaited_call"])


async def test_esc_closes_the_menu_and_the_turn_goes_on() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("/h")
        await terminal.shows("show what there is")
        terminal.send(ESC)
        await until(lambda: "show what there is" not in terminal.screen_text())
        assert terminal.session.acts == []
        assert terminal.front.draft == "/h"


async def test_line_editing_keys_work_while_busy() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("world\x01hello \x05!\x17again")
        await terminal.draft_is("hello again")
        terminal.send("\x15")
        await terminal.draft_is("")


async def test_history_is_walked_at_the_first_and_last_line() -> None:
    async with live_terminal() as terminal:
        terminal.send("one\r")
        await terminal.submitted("one")
        terminal.send("two\nlines\r")
        await terminal.submitted("one", "two\nlines")
        terminal.send("\x1b[A")
        await terminal.draft_is("two\nlines")
        terminal.send("\x1b[A\x1b[A")
        await terminal.draft_is("one")
        terminal.send("\x1b[B")
        await terminal.draft_is("two\nlines")


async def test_ctrl_r_finds_an_earlier_line() -> None:
    async with live_terminal() as terminal:
        terminal.send("find the needle\r")
        await terminal.submitted("find the needle")
        terminal.send("something else\r")
        await terminal.submitted("find the needle", "something else")
        terminal.send("\x12need")
        await terminal.shows("find the needle")
        terminal.send("\r")
        await terminal.draft_is("find the needle")
        terminal.send("\r")
        await until(lambda: terminal.session.texts.count("find the needle") == 2)


async def test_the_search_says_when_no_earlier_line_has_the_text() -> None:
    async with live_terminal() as terminal:
        for line in ("something else", "find the Needle"):
            terminal.send(f"{line}\r")
            await terminal.draft_is("")
        terminal.send("\x12NEED")
        await terminal.shows("search earlier lines: NEED")
        await terminal.shows("find the Needle")
        terminal.send("s")
        await terminal.shows("no earlier line has: NEEDs")
        terminal.send("\x7f")
        await terminal.shows("search earlier lines: NEED")


async def test_vi_keys_edit_and_esc_first_leaves_insert_mode() -> None:
    async with live_terminal(FakeSession(busy=True), TerminalSetup(keys="vi")) as terminal:
        terminal.send("hello wrld")
        await terminal.shows("hello wrld")
        after_typing = terminal.screen().cursor.x
        terminal.send(ESC)
        await until(lambda: terminal.screen().cursor.x < after_typing)
        terminal.send("bdw")
        await terminal.draft_is("hello ")
        assert terminal.session.acts == []
        terminal.send(ESC)
        await until(lambda: terminal.session.acts == ["interrupt"])
        terminal.send("\r")
        await terminal.submitted("hello ")


async def test_typed_colour_codes_lose_no_key() -> None:
    async with live_terminal() as terminal:
        terminal.send("a \x1b[31mred\x1b[0m b \x1b[1;2mc\x1b[<0;1;1M d")
        await terminal.draft_is("a red b c d")
        assert "Something went wrong" not in terminal.notices()


async def test_put_back_text_stands_before_what_was_typed_since() -> None:
    async with live_terminal() as terminal:
        terminal.send("new")
        await terminal.draft_is("new")
        terminal.front.set_draft("old")
        await terminal.draft_is("old\nnew")


async def test_a_failing_key_handler_becomes_a_notice() -> None:
    def fail(text: str) -> None:
        raise RuntimeError("planted")

    async with live_terminal(FakeSession(on_submit=fail)) as terminal:
        terminal.send("boom\r")
        await terminal.shows("RuntimeError: planted")
        terminal.send("more")
        await terminal.draft_is("boommore")


async def test_bytes_that_are_no_text_are_submitted_as_replacement_characters() -> None:
    async with live_terminal() as terminal:
        terminal.pipe.send_bytes(b"caf\xe9\r")
        await terminal.submitted("caf\ufffd")


@pytest.mark.parametrize("keys", ["\x1b#", "\x0f"], ids=["alt-hash", "ctrl-o"])
async def test_no_key_of_emacs_drops_the_draft(keys: str) -> None:
    setup = TerminalSetup(key_map=KeysConfig(expand=("f5",)))
    async with live_terminal(setup=setup) as terminal:
        terminal.send("a draft")
        await terminal.draft_is("a draft")
        terminal.send(f"{keys}!")
        await terminal.draft_is("a draft!")
        assert terminal.session.texts == []
