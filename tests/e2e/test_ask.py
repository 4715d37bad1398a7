"""Questions: one at a time, in call order; the draft answers nothing and is not touched."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from midturn_cli.terminal.ask_panel import ARM_SECONDS
from tests.support.gated_site import gated_site
from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.request_texts import injected, never_said, said_in

PARALLEL = Start(["--parallel"])
ARMED = "y once"
"""Shown with a question whose keys answer it now."""


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the workspace: reading there asks."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "a.txt").write_text("it says plum\n", encoding="utf-8")
    (folder / "b.txt").write_text("it says pear\n", encoding="utf-8")
    return folder


def reads(folder: Path, *names: str) -> list[Calls]:
    return [Calls("Read", {"file_path": str(folder / name)}) for name in names]


@contextmanager
def asked_while_drafting(
    workspace: Path, folder: Path, draft: str
) -> Generator[tuple[MessagesServer, LiveMidturn]]:
    """Two questions arrive while a draft is being typed."""
    latch = Latch()
    with (
        MessagesServer(
            Reply(Says("May I? ", latch), *reads(folder, "a.txt", "b.txt")),
            Reply(Says("I have read")),
        ) as server,
        live_midturn(server, workspace, PARALLEL) as live,
    ):
        live.enter("read both")
        live.see("May I?")
        live.type(draft)
        latch.open()
        live.see(r"^\? Read +\(1 of 2, 1 more waits\)\n│ .*a\.txt")
        yield server, live


def test_two_questions_are_asked_one_by_one_in_call_order_and_the_draft_answers_none(
    tmp_path: Path, outside: Path
) -> None:
    with asked_while_drafting(tmp_path, outside, "yes") as (server, live):
        live.see("Tab to answer")
        time.sleep(2 * ARM_SECONDS)  # long enough for a question beside an empty draft
        for key in "yns":
            live.type(key)
        shown = live.see(r"\(1 of 2")
        assert "(2 of 2" not in shown.text
        assert len(server.requests) == 1

        _answer_with_tab(live, "y")
        live.see(r"^\? Read +\(2 of 2\)\n│ .*b\.txt")
        live.see(rf"{GLYPH} yesyns")
        _answer_with_tab(live, "n")
        live.see("I have read")
        live.see(rf"{GLYPH} yesyns")
        _, second = server.wait_for_requests(2)
        allowed, denied = second.results
        assert "plum" in str(allowed["content"])
        assert denied["is_error"] is True and "pear" not in str(denied["content"])
        assert said_in(second) == []


def _answer_with_tab(live: LiveMidturn, key: str) -> None:
    """A question that has just been painted does not take Tab yet."""
    live.see("Tab to answer")
    while True:
        live.key("tab")
        try:
            live.wait_screen(ARMED, timeout=1.0)
        except TimeoutError:
            continue
        live.send(key)
        return


def test_a_line_entered_beside_a_question_is_queued_and_answers_nothing(
    tmp_path: Path, outside: Path
) -> None:
    with asked_while_drafting(tmp_path, outside, "y") as (server, live):
        live.key("enter")
        live.see(r"^NEXT +y · ")
        live.see(r"\(1 of 2, 1 more waits\)\n│ .*a\.txt")
        live.see(ARMED)
        live.send("y")
        live.see(r"\(2 of 2\)\n│ .*b\.txt")
        live.see(ARMED)
        live.send("n")
        live.see("I have read")
        _, second = server.wait_for_requests(2)
        assert "plum" in str(second.results[0]["content"])
        assert second.results[1]["is_error"] is True
        assert said_in(second) == [injected("y")]


def test_enter_and_space_approve_nothing(tmp_path: Path, outside: Path) -> None:
    """MB-0303."""
    with (
        MessagesServer(Reply(*reads(outside, "a.txt")), Reply(Says("I see"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("read it")
        live.see(ARMED)
        live.key("enter")
        live.send(" ")
        live.key("tab")
        live.send("n")
        live.see("I see")
        _, second = server.wait_for_requests(2)
        assert second.results[0]["is_error"] is True
        live.see(rf"^{GLYPH} *$")


def test_a_no_with_a_reason_tells_the_model_why(tmp_path: Path, outside: Path) -> None:
    with (
        MessagesServer(Reply(*reads(outside, "a.txt")), Reply(Says("I see"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("read it")
        live.see(ARMED)
        live.send("r")
        live.see("Enter says no with this reason")
        live.see("^reason:")
        live.send("that one is private")
        live.see("reason: that one is private")
        live.key("enter")
        shown = live.see("I see")
        assert "denied: that one is private" in " ".join(shown.text.split())
        _, second = server.wait_for_requests(2)
        assert "that one is private" in str(second.results[0]["content"])


def test_one_answer_settles_the_questions_that_it_covers(tmp_path: Path) -> None:
    with (
        gated_site(3) as site,
        MessagesServer(
            Reply(*(Calls("WebFetch", {"url": site.url(number)}) for number in range(3))),
            Reply(Says("all three")),
        ) as server,
        live_midturn(
            server,
            tmp_path,
            Start(["--parallel"], config=f'[web]\nallow_hosts = ["{site.host}"]\n'),
        ) as live,
    ):
        site.open_all()
        live.enter("fetch them")
        live.see(r"\(1 of 3, 2 more wait\)")
        live.see(ARMED)
        assert site.asked_for == []
        live.send("s")
        shown = live.see("all three")
        assert "Total: 3/3 succeeded" in shown.text
        assert len(server.requests) == 2


def test_an_urgent_line_takes_the_question_back(tmp_path: Path, outside: Path) -> None:
    """D1: what has not started is skipped, and nobody is asked for it any more."""
    with asked_while_drafting(tmp_path, outside, "/now none of those") as (server, live):
        live.key("enter")
        live.see("I have read")
        live.see_not(ARMED)
        _, second = server.wait_for_requests(2)
        assert [result["content"] for result in second.results] == [
            "skipped: the user sent a message"
        ] * 2
        assert said_in(second) == [injected("none of those")]
        assert never_said("/now", server.requests)


def test_a_denied_call_is_not_asked_about(tmp_path: Path) -> None:
    start = Start(["--deny", "Bash(touch:*)"])
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "touch made"})), Reply(Says("then not"))
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("make it")
        live.see("then not")
        _, second = server.wait_for_requests(2)
        assert second.results[0]["is_error"] is True
        assert "Bash(touch:*)" in str(second.results[0]["content"])
        assert ARMED.encode() not in live.log.data
        assert not (tmp_path / "made").exists()


def test_an_edit_that_no_longer_fits_fails_without_a_question_and_the_next_shows_the_file_as_it_is(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("plum\nfig\n", encoding="utf-8")

    def edit(old: str, new: str) -> Calls:
        return Calls("Edit", {"file_path": "a.txt", "old_string": old, "new_string": new})

    edits = (edit("plum", "pear"), edit("plum", "pear"), edit("fig", "kiwi"))
    with (
        MessagesServer(
            Reply(Calls("Read", {"file_path": "a.txt"})), Reply(*edits), Reply(Says("Edited."))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("edit it")
        live.see(r"^\? Edit.*\(1 of 3")
        live.see(ARMED)
        live.send("y")
        shown = live.see(r"^\? Edit.*\(3 of 3\)")
        assert "pear" in shown.text.split("(3 of 3)")[1]
        live.see(ARMED)
        live.send("y")
        live.see(r"Edited\.")
        assert b"(2 of 3" not in live.log.data
        results = server.wait_for_requests(3)[2].results
    assert ["Error" in str(result["content"]) for result in results] == [False, True, False]
    assert "does not occur" in str(results[1]["content"])
    assert file.read_text(encoding="utf-8") == "pear\nkiwi\n"


def test_a_write_that_must_fail_asks_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    writes = [Calls("Write", {"file_path": name, "content": "x"}) for name in ("folder", "a.txt")]
    with (
        MessagesServer(Reply(*writes), Reply(Says("I see"))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("write it")
        live.see("I see")
        assert ARMED.encode() not in live.log.data
        results = server.wait_for_requests(2)[1].results
    assert "is a folder" in str(results[0]["content"])
    assert "read it before" in str(results[1]["content"])
