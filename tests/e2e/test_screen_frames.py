"""What stands on the screen at the end of each frame, not only at the end of a turn."""

from __future__ import annotations

from pathlib import Path

from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import Latch, Part, Reply, Says
from tests.support.messages_server import MessagesServer

STATUS = "default ·"
SIZES = [(80, 26), (110, 26), (60, 24), (100, 30)]
ROWS_EACH = 60
"""More than the screen has."""


def test_no_frame_has_two_prompts_or_two_status_rows_also_while_the_size_changes(
    tmp_path: Path,
) -> None:
    """Check 22, in a terminal that cuts its rows."""
    latches = [Latch(f"size {number}") for number in range(len(SIZES) + 1)]
    pieces: list[Part] = []
    for number, latch in enumerate(latches):
        pieces += [f"L{number}{row:03} of the answer\n\n" for row in range(ROWS_EACH)]
        pieces.append(latch)
    start = Start(cols=100, rows=30, environ={"TERM": "xterm-256color"})
    with (
        MessagesServer(Reply(Says(*pieces, "All of it."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see(f"L0{ROWS_EACH - 2:03}")
        streaming = live.mark()
        for number, (columns, rows) in enumerate(SIZES):
            live.resize(columns, rows)
            latches[number].open()
            live.see(f"L{number + 1}{ROWS_EACH - 2:03}")
        latches[-1].open()
        live.see(r"All of it\.")
        live.see_idle()
        assert live.most_rows(GLYPH, streaming) == 1
        assert live.most_rows(STATUS, streaming) == 1


def test_a_terminal_that_answers_no_query_is_no_obstacle_and_no_reason_to_warn(
    tmp_path: Path,
) -> None:
    """Check 25."""
    with (
        MessagesServer(Reply(Says("All is well."))) as server,
        live_midturn(server, tmp_path, Start(cpr="none")) as live,
    ):
        live.enter("go")
        live.see(r"All is well\.")
        shown = live.see_idle()
        assert b"\x1b[6n" not in live.log.data
    assert "CPR" not in shown.text and "cursor position" not in shown.text
