"""Questions on the real screen: typing at its usual pace, double keys, Ctrl-C, and what runs on."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.terminal_screen import Rendered

KEYS_PER_SECOND = 12
TYPED = "yes yes yes yes yes yes yes yes "
TYPED_BEFORE = 8
"""Letters of it that stand there when the questions come."""
ARMED = "y once"
FIRST = r"^\? Read +\(1 of 2, 1 more waits\)"
SECOND = r"^\? Read +\(2 of 2\)"
SKIPPED = "skipped: the user interrupted the turn"


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the workspace: reading there asks."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "a.txt").write_text("it says plum\n", encoding="utf-8")
    (folder / "b.txt").write_text("it says pear\n", encoding="utf-8")
    return folder


@contextmanager
def two_questions(
    workspace: Path, folder: Path
) -> Generator[tuple[MessagesServer, LiveMidturn, Latch]]:
    """They come at once, when the latch is opened."""
    latch = Latch()
    reads = [Calls("Read", {"file_path": str(folder / name)}) for name in ("a.txt", "b.txt")]
    with (
        MessagesServer(
            Reply(Says("May I? ", latch), *reads), Reply(Says("Enough read."))
        ) as server,
        live_midturn(server, workspace, Start(["--parallel"])) as live,
    ):
        live.enter("read both")
        live.see("May I?")
        yield server, live, latch


def test_questions_that_come_while_somebody_types_are_not_answered_by_it(
    tmp_path: Path, outside: Path
) -> None:
    """Check 15."""
    with two_questions(tmp_path, outside) as (server, live, latch):
        type_like_a_person(live, TYPED[:TYPED_BEFORE])
        latch.open()
        type_like_a_person(live, TYPED[TYPED_BEFORE:])
        live.see(FIRST)
        live.see_draft(TYPED)
        assert len(server.requests) == 1
        live.send("\x15")
        live.see(ARMED)
        live.send("y")
        live.see(SECOND)
        live.see(rf"{GLYPH} *$")


def type_like_a_person(live: LiveMidturn, text: str) -> None:
    for letter in text:
        live.send(letter)
        time.sleep(1 / KEYS_PER_SECOND)  # the pace is the subject


def test_a_double_key_answers_the_first_of_two_questions_and_is_no_text(
    tmp_path: Path, outside: Path
) -> None:
    """Check 16."""
    with two_questions(tmp_path, outside) as (server, live, latch):
        latch.open()
        shown = live.see(FIRST)
        assert panels(shown) == 1
        live.see(ARMED)
        live.send("y")
        live.send("y")
        shown = live.see(SECOND)
        assert panels(shown) == 1
        live.see(ARMED)
        live.see(rf"{GLYPH} *$")
        live.send("n")
        live.see(r"Enough read\.")
        _, second = server.wait_for_requests(2)
        allowed, denied = second.results
        assert "plum" in str(allowed["content"])
        assert denied["is_error"] is True and "pear" not in str(denied["content"])


def test_an_interrupt_takes_back_the_question_that_is_open_and_the_one_that_waits(
    tmp_path: Path, outside: Path
) -> None:
    """Check 17. The next turn asks anew."""
    with two_questions(tmp_path, outside) as (server, live, latch):
        latch.open()
        live.see(FIRST)
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.see_idle()
        assert panels(live.shown()) == 0
        server.add(Reply(Calls("Read", {"file_path": str(outside / "a.txt")})))
        server.add(Reply(Says("That was all.")))
        live.enter("again")
        live.see(r"Enough read\.")
        live.enter("read the first")
        live.see(r"^\? Read *$")
        live.see(ARMED)
        live.send("y")
        live.see(r"That was all\.")
        assert [result["content"] for result in server.requests[1].results] == [SKIPPED] * 2


def test_what_is_shown_beside_a_question_goes_above_it_and_moves_it_nowhere(
    tmp_path: Path, outside: Path
) -> None:
    """Check 18."""
    with two_questions(tmp_path, outside) as (_, live, latch):
        latch.open()
        live.see(FIRST)
        before = live.shown()
        live.enter("/help")
        live.see_anywhere("/export")
        shown = live.see(FIRST)
        assert panels(shown) == 1
        assert below_question(shown) == below_question(before)
        assert "? Read" not in "\n".join(shown.scrollback)
        live.see(ARMED)
        live.send("n")
        live.see(SECOND)


def panels(shown: Rendered) -> int:
    return sum(row.startswith("? Read") for row in shown.screen)


def below_question(shown: Rendered) -> int:
    """How many rows there are from the beginning of the question on."""
    rows = "\n".join(shown.screen).rstrip().split("\n")
    return len(rows) - next(n for n, row in enumerate(rows) if row.startswith("? Read"))
