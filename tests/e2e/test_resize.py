"""Changing the size of the terminal while an answer streams: no row lost, none doubled."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import Latch, Part, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.terminal_screen import Rendered
from tests.support.tmux_session import TmuxSession

PERSON_SECONDS = 0.7
"""A person who changes the size and looks: the pace is the subject."""
DRAG_SECONDS = 0.02
MIDTURN = f"{sys.executable} -m midturn_cli.main go"
STATUS = "default ·"
SINGLES = [
    *((80, 26), (60, 26), (100, 26), (70, 26), (120, 26)),
    *((120, 40), (120, 20), (100, 30), (90, 18), (45, 30)),
    *((83, 24), (83, 33), (110, 22), (50, 22), (50, 36)),
    *((64, 21), (99, 25), (100, 30), (72, 19), (100, 30)),
]
DRAG = [(100 - 2 * step, 30 - step // 3) for step in range(20)]
EIGHTY = [f"L{number:05} of eighty lines" for number in range(80)]
SHORT = [f"L{number:05} of the answer" for number in range(400)]
LISTED = [f"- L{number:05} " + "and a longer row " * (number % 4) + "ends" for number in range(400)]
NUMBERED = [f"{number}. {row[2:]}" for number, row in enumerate(LISTED, 1)]
DRAFT = ["D1 of a draft", "D2 " + "wider " * 15, "D3 " + "wide " * 15, "D4 is its end"]
SHELL_ROWS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows that stream during so many seconds."""

    rows: list[str]
    row_end: str
    seconds: float

    def reply(self, end: Latch) -> Reply:
        pieces: list[Part] = []
        for row in self.rows:
            pieces += [row[: len(row) // 2], row[len(row) // 2 :] + self.row_end]
        says = Says("It begins.\n\n", *pieces, end, "\n\nAll of it.")
        return Reply(says, pace=self.seconds / len(pieces))


@contextmanager
def streaming_in_tmux(
    workspace: Path, answer: Answer, arguments: tuple[str, ...] = ()
) -> Generator[tuple[TmuxSession, Latch]]:
    """The answer in tmux, which breaks rows anew. The latch holds its last word."""
    end = Latch("end of the answer")
    with MessagesServer(answer.reply(end)) as server:
        session = TmuxSession(
            arguments or [sys.executable, "-m", "midturn_cli.main", "go"],
            env=midturn_environment(**server.environment()),
            cwd=str(workspace),
        )
        with session:
            session.wait_screen(r"L\d{5}", timeout=60)
            yield session, end


def labels(text: str) -> Counter[str]:
    return Counter(re.findall(r"L\d{5}", text))


def once_each(rows: list[str]) -> Counter[str]:
    return labels("\n".join(rows))


def finished(session: TmuxSession, end: Latch) -> Rendered:
    end.open()
    session.wait_screen(r"All of it\.", timeout=60)
    session.wait_screen(rf"^{GLYPH}", timeout=60)
    return session.render()


def assert_one_prompt(shown: Rendered) -> None:
    assert sum(GLYPH in row for row in shown.lines) == 1
    assert shown.text.count(STATUS) == 1


@pytest.mark.slow
def test_eighty_lines_and_eight_resizes_are_eighty_lines_and_one_prompt(tmp_path: Path) -> None:
    answer = Answer(EIGHTY, "\n\n", 8 * PERSON_SECONDS)
    with streaming_in_tmux(tmp_path, answer) as (session, end):
        resize_like_a_person(session, SINGLES[:8])
        shown = finished(session, end)
    assert labels(shown.text) == once_each(EIGHTY)
    assert_one_prompt(shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "row_end"),
    [(SHORT, "\n\n"), (LISTED, "\n"), (NUMBERED, "\n")],
    ids=["rows", "list", "numbers"],
)
def test_twenty_resizes_lose_and_double_nothing(
    tmp_path: Path, rows: list[str], row_end: str
) -> None:
    """Also a list, whose rows move up through the region and get longer and shorter in it."""
    answer = Answer(rows, row_end, len(SINGLES) * PERSON_SECONDS)
    with streaming_in_tmux(tmp_path, answer) as (session, end):
        session.send("a draft of some length")
        resize_like_a_person(session, SINGLES)
        shown = finished(session, end)
    assert labels(shown.text) == once_each(rows)
    assert_one_prompt(shown)


@pytest.mark.slow
@pytest.mark.parametrize("up", [1, 3], ids=["one-up", "first-row"])
def test_a_draft_of_several_rows_with_the_cursor_above_its_last_is_there_once(
    tmp_path: Path, up: int
) -> None:
    """The rows below the cursor break, too, while others go into the transcript."""
    answer = Answer(SHORT, "\n\n", len(SINGLES) / 2 * PERSON_SECONDS)
    with streaming_in_tmux(tmp_path, answer) as (session, end):
        session.paste("\n".join(DRAFT))
        for _ in range(up):
            session.key("up")
        session.wait_screen("D4 is its end")
        resize_like_a_person(session, SINGLES[::2])
        session.send("here ")
        shown = finished(session, end)
    assert labels(shown.text) == once_each(SHORT)
    assert_one_prompt(shown)
    assert re.findall(r"D\d", shown.text) == ["D1", "D2", "D3", "D4"]


def resize_like_a_person(session: TmuxSession, sizes: list[tuple[int, int]]) -> None:
    for columns, rows in sizes:
        session.resize(columns, rows)
        time.sleep(PERSON_SECONDS)


@pytest.mark.slow
def test_a_drag_loses_nothing_and_leaves_at_most_three_rows_behind(tmp_path: Path) -> None:
    with streaming_in_tmux(tmp_path, Answer(SHORT, "\n\n", 5.0)) as (session, end):
        for columns, rows in [*DRAG, *reversed(DRAG)]:
            session.resize(columns, rows)
            time.sleep(DRAG_SECONDS)
        time.sleep(PERSON_SECONDS)
        shown = finished(session, end)
    seen = labels(shown.text)
    assert not once_each(SHORT) - seen
    assert sum((seen - once_each(SHORT)).values()) <= 3
    assert sum(GLYPH in row for row in shown.lines) == 1


@pytest.mark.slow
@pytest.mark.parametrize("streaming", [False, True], ids=["idle", "streaming"])
def test_forty_widths_copy_nothing_into_the_scrollback(tmp_path: Path, streaming: bool) -> None:
    """MB-0804, MB-0805: what a shell has printed before stands there once, too."""
    shell = f"for i in $(seq {SHELL_ROWS}); do echo shell row $i.; done; {MIDTURN}"
    seconds = 40 * PERSON_SECONDS / 2 if streaming else 1.0
    with streaming_in_tmux(tmp_path, Answer(SHORT, "\n\n", seconds), ("sh", "-c", shell)) as (
        session,
        end,
    ):
        if not streaming:
            finished(session, end)
        for step in range(40):
            session.resize(60 + 7 * step % 55, 30)
            time.sleep(PERSON_SECONDS / 2)
        shown = finished(session, end)
    rows = Counter(re.findall(r"shell row \d+\.", shown.text))
    assert rows == Counter(f"shell row {number}." for number in range(1, SHELL_ROWS + 1))
    assert labels(shown.text) == once_each(SHORT)
    assert sum(GLYPH in row for row in shown.lines) == 1


@pytest.mark.slow
def test_a_terminal_that_cuts_its_rows_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Twenty sizes in a terminal that does not break rows anew; nothing is cleared or asked."""
    end = Latch("end of the answer")
    answer = Answer(SHORT, "\n\n", len(SINGLES) * PERSON_SECONDS)
    start = Start(cols=100, rows=30, environ={"TERM": "xterm-256color"})
    with (
        MessagesServer(answer.reply(end)) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see("L00005")
        for columns, rows in SINGLES:
            live.resize(columns, rows)
            time.sleep(PERSON_SECONDS)
        end.open()
        live.see(r"All of it\.")
        shown = live.see_idle()
        data = bytes(live.log.data)
    assert labels(shown.text) == once_each(SHORT)
    assert_one_prompt(shown)
    for sequence in (b"\x1b[6n", b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h"):
        assert sequence not in data
