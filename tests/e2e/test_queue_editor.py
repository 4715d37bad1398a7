"""Changing what waits in the input line of the real command: what the screen promises is sent."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midway import midway_in_answer, midway_in_bash
from tests.support.request_texts import injected, never_said, said_in, times_said, typed

ALT_UP, ALT_DOWN = "\x1b[1;3A", "\x1b[1;3B"
LINE_START, CUT_LINE = "\x01", "\x15"


def test_three_tiers_edited_removed_moved_and_retiered_are_sent_as_the_screen_says(
    tmp_path: Path,
) -> None:
    with midway_in_bash(tmp_path, "step two", "the later turn") as (live, server, gate):
        live.enter("first steer")
        live.enter("second steer")
        live.enter("wrong steer")
        live.enter_as("LATER", "a late tpyo")
        live.enter_as("NOW", "the urgent one")
        live.see("queue 1 NOW 3 NEXT 1 LATER")

        live.key("up")  # the newest: the urgent one; it becomes NEXT
        live.see(rf"^NOW edit {GLYPH} the urgent one")
        live.see(r"^▸ NOW +the urgent one · being edited")
        live.key("tab")
        live.see(rf"^LATER edit {GLYPH} the urgent one")
        live.key("tab")
        live.see(rf"^NEXT edit {GLYPH} the urgent one")
        live.key("up")  # the late one is corrected
        live.see(rf"^LATER edit {GLYPH} a late tpyo")
        live.send(CUT_LINE)
        live.type("a late typo")
        live.key("up")  # leaving the row has saved it; this one is removed
        live.see(rf"^NEXT edit {GLYPH} wrong steer")
        live.see(r"LATER +a late typo")
        live.key("ctrl-d")
        live.see_anywhere("Removed, never sent: wrong steer")
        live.see(rf"^NEXT edit {GLYPH} second steer")
        live.send(ALT_UP)
        live.see(r"^▸ NEXT +second steer .*\n  NEXT +first steer ")
        live.key("enter")
        live.see(rf"^NEXT after this step {GLYPH}$")
        live.see(r"^NEXT +first steer .*\nNEXT +the urgent one .*\nLATER a late typo")
        assert len(server.requests) == 1

        gate.open()
        live.see("the later turn")
        _, second, third = server.wait_for_requests(3)
        assert said_in(second) == [
            injected("second steer"),
            injected("first steer"),
            injected("the urgent one"),
        ]
        assert said_in(third) == [typed("a late typo")]
        assert never_said("wrong steer", server.requests)
        assert never_said("tpyo", server.requests)
        live.see_nothing_waiting()


def test_a_row_that_is_edited_is_not_sent_whatever_the_turn_does(tmp_path: Path) -> None:
    """MB-0103: the turn ends meanwhile; what is before it goes, what is behind it keeps behind."""
    with midway_in_bash(tmp_path, "one is read", "the rest is read") as (live, server, gate):
        for line in ("one", "two", "three", "four"):
            live.enter(line)
        live.enter("/queue rm 2")
        live.see_anywhere("Removed, never sent: two")
        live.key("up")
        live.see(rf"edit {GLYPH} four")
        live.key("up")
        live.see(rf"edit {GLYPH} three")
        live.type(" half")
        live.see("four · after the line being edited")
        gate.open()
        live.see("one is read")
        live.see_not("Bash.*running")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [injected("one")]
        live.see(rf"^NEXT edit {GLYPH} three half")

        live.type(" and whole")
        live.key("enter")
        live.see("the rest is read")
        third = server.wait_for_requests(3)[2]
        assert said_in(third) == [typed("three half and whole"), typed("four")]
        assert never_said("two", server.requests)
        assert all(times_said("three", request) == 0 for request in (second,))


def test_esc_discards_the_change_and_neither_the_line_nor_the_turn(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path, "read it") as (live, server, latch):
        live.enter("as it was")
        live.key("up")
        live.see(rf"edit {GLYPH} as it was")
        live.type(" not")
        live.key("esc")
        live.see("The change was discarded")
        live.see(rf"^NEXT after this step {GLYPH}$")
        latch.open()
        live.see("read it")
        _, second = server.wait_for_requests(2)
        assert said_in(second) == [typed("as it was")]


def test_a_command_opens_the_editor_and_the_log_says_what_became_of_each(tmp_path: Path) -> None:
    with midway_in_bash(tmp_path, "read them") as (live, _, gate):
        live.enter("steer")
        live.enter("mistake")
        live.send("/queue edit 1\r")
        live.see(rf"^NEXT edit {GLYPH} steer")
        live.type(" better")
        live.key("enter")
        live.enter("/queue rm 2")
        gate.open()
        live.see("read them")
        live.see_idle()
        live.enter("/queue log")
        live.see_anywhere(r"NEXT +delivered after step 1 \(Bash\) +\S+ +steer better")
        live.see_anywhere(r"NEXT +cancelled +\S+ +mistake")


def test_up_goes_on_to_earlier_lines_behind_the_oldest_row(tmp_path: Path) -> None:
    with midway_in_answer(tmp_path, "read it", prompt="the first prompt") as (live, server, latch):
        live.enter("the only row")
        live.key("up")
        live.see(rf"edit {GLYPH} the only row")
        live.key("up")
        live.see(rf"^NEXT after this step {GLYPH} the only row")
        live.key("up")
        live.see(rf"^NEXT after this step {GLYPH} the first prompt")
        live.see("queue 1 NEXT")
        latch.open()
        live.see("read it")
        assert said_in(server.wait_for_requests(2)[1]) == [typed("the only row")]


def test_what_waits_at_the_end_is_printed_and_offered_when_the_session_goes_on(
    tmp_path: Path,
) -> None:
    """MB-0111: also a row that was being edited, with the text that was saved."""
    with MessagesServer(Reply(Says("busy ", Latch()))) as server:
        with live_midturn(server, tmp_path) as live:
            live.enter("go")
            live.see("busy")
            live.enter("remember me")
            live.enter("and me")
            live.key("up")
            live.see(rf"edit {GLYPH} and me")
            live.type(" half")
            live.process.send_signal(signal.SIGTERM)
            shown = live.see_anywhere("They are kept, and offered when you go on")
            assert "remember me" in shown.text.split("2 queued input(s) were not sent:")[1]
        with live_midturn(server, tmp_path, Start(["-c"])) as live:
            live.see("Left from last time, held")
            live.see(r"1 +NEXT +\S+ +remember me")
            live.see(r"2 +NEXT +\S+ +and me$")
            live.see("queue 2 held")
            assert len(server.requests) == 1
            server.add(Reply(Says("both are read")))
            live.key("enter")
            live.see("both are read")
            assert said_in(server.requests[-1])[-2:] == [typed("remember me"), typed("and me")]


def test_a_kill_while_a_row_is_edited_leaves_it_as_it_was_saved(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("busy ", Latch()))) as server:
        with live_midturn(server, tmp_path) as live:
            live.enter("go")
            live.see("busy")
            live.enter("one")
            live.enter("two")
            live.key("up")
            live.see(rf"edit {GLYPH} two")
            live.type(" half")
            live.see("one · after this step")
            live.see_not("storing")
            live.process.kill()
            live.process.wait()
        with live_midturn(server, tmp_path, Start(["-c"])) as live:
            live.see(r"1 +NEXT +\S+ +one")
            live.see(r"2 +NEXT +\S+ +two$")
            live.see("queue 2 held")
            live.key("up")
            live.see(rf"edit {GLYPH} two")


def test_an_interrupt_leaves_the_draft_and_the_row_that_is_edited_alone(tmp_path: Path) -> None:
    """MB-0109: the unsent text is untouched."""
    with (
        MessagesServer(Reply(Says("busy ", Latch())), Reply(Says("sent at last"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("busy")
        live.type("draft X")
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see_draft("draft X")
        live.send(CUT_LINE)
        server.add(Reply(Says("busy again ", Latch())))
        live.enter("again")
        live.see("sent at last")
        live.see_idle()
        live.enter("once more")
        live.see("busy again")
        live.enter("a row")
        live.key("up")
        live.type(" with more")
        live.key("ctrl-c")
        live.see_times("Interrupted after", 2)
        live.see(rf"edit {GLYPH} a row with more")
        live.key("enter")
        live.see("queue 1 held")
        live.see("a row with more · held")


def test_at_sixty_columns_row_and_keys_are_readable(tmp_path: Path) -> None:
    start = Start(cols=60, rows=20)
    with (
        MessagesServer(Reply(Says("busy ", Latch()))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see("busy")
        live.enter("a line that is far too long for the row of a narrow screen")
        live.enter("short")
        live.key("up")
        live.see(r"^▸ NEXT +short · being edited")
        live.see(r"^  NEXT +a line that is .*… · after this step")
        live.see(r"^Enter saves · Esc leaves · Ctrl-D removes · Tab tier$")
