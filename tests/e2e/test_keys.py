"""Keys, stash, whole results, title and notifications in the real command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer

SEQ = Calls("Bash", {"command": "seq 1 50"})
ALLOWED = ("--allow", "Bash(seq:*)")
TAG = "NEXT after this step › "
F5 = "\x1b[15~"
FOCUS_LOST = "\x1b[O"


def test_a_key_of_the_configuration_shows_the_newest_result_whole(tmp_path: Path) -> None:
    start = Start(arguments=ALLOWED, config='[keys]\nexpand = "f5"\n')
    with (
        MessagesServer(Reply(SEQ), Reply(Says("Done."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see(r"… 40 lines above · F5 or /expand shows all")
        live.see(r"Done\.")
        live.send(F5)
        live.see(r"^│ 50$")
        live.see_anywhere(r"^│ 1\n│ 2$")


def test_the_stash_goes_along_into_another_session(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("One.")), Reply(Says("Two."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("first")
        live.see(r"One\.")
        live.see_idle()
        live.enter("/clear")
        live.see("starts anew")
        live.type("a thought for later")
        live.key("ctrl-s")
        live.see(r"^stashed \(Ctrl-S brings it back\): a thought for later")
        live.enter("second")
        live.see(r"Two\.")
        live.see_idle()
        live.enter("/resume 1")
        live.see_times("One.", 2)
        live.see(r"^stashed \(Ctrl-S brings it back\): a thought for later")
        live.key("ctrl-s")
        live.see_draft("a thought for later")


@pytest.mark.parametrize(
    ("text", "cells"), [("한글 입력", 9), ("日本語を", 8), ("中文 abc", 8), ("ｱｲｳ", 3)]
)
def test_the_cursor_stands_behind_wide_letters_while_a_turn_runs(
    tmp_path: Path, text: str, cells: int
) -> None:
    with (
        MessagesServer(Reply(Says("An answer", Latch()))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("An answer")
        live.type(text)
        shown = live.see(f"^{TAG}{text}$")
        assert shown.cursor[0] == len(TAG) + cells
        assert shown.screen[shown.cursor[1]] == f"{TAG}{text}"


def test_letters_that_arrive_byte_by_byte_are_whole_letters(tmp_path: Path) -> None:
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        for byte in "한글":
            for piece in byte.encode():
                live.send(bytes([piece]))
        live.see_draft("한글")
        live.key("backspace")
        shown = live.see("^› 한$")
        assert shown.cursor[0] == 4


def test_a_question_is_told_to_a_window_without_focus(tmp_path: Path) -> None:
    start = Start(config='[ui]\nnotify = "osc9"\n')
    with (
        MessagesServer(Reply(Calls("Bash", {"command": "touch made"}))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.wait(r"\x1b\[\?1004h", 30)
        live.send(FOCUS_LOST)
        live.enter("go")
        live.see("y once")
        live.wait(rf"\x1b\]9;Midturn in {tmp_path.name}: asks Bash: touch made\x1b\\", 30)
