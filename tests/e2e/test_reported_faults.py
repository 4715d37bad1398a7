"""Faults of the screen that people have reported about programs of this kind."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from midturn_cli.terminal.ask_panel import ARM_SECONDS, REPEAT_SECONDS
from tests.support.fifo_latch import FifoLatch
from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.pty_harness import PASTE_END, PASTE_START

pytestmark = pytest.mark.slow

KEY_SECONDS = 0.1
KEYS = "yes 1 2 n y "
"""Each of them answers a question somewhere."""
ARMED = "y once"
COLOURED = '# Title\n\n**bold** `code`\n\n```python\nprint("x")\n```\n'


def test_nothing_is_sent_of_a_paste_before_enter(tmp_path: Path) -> None:
    """MB-0803: whichever line ends are in it."""
    with MessagesServer(Reply(Says("Fine."))) as server, live_midturn(server, tmp_path) as live:
        live.send(f"{PASTE_START}line1\rline2\nline3{PASTE_END}")
        live.see(rf"{GLYPH} line1\s*\n\s*line2\s*\n\s*line3")
        live.type("!")
        assert server.requests == []
        live.key("enter")
        live.see(r"Fine\.")
        assert [request.texts for request in server.requests] == [["line1\nline2\nline3!"]]


def test_colours_are_colours_beside_the_live_input_line(tmp_path: Path) -> None:
    """MB-0806: no escape byte is shown as a character."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    start = Start(environ={"NO_COLOR": "", "COLORTERM": "truecolor"})
    with (
        MessagesServer(
            Reply(Says("I look."), Calls("Read", {"file_path": "a.txt"})), Reply(Says(COLOURED))
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see(r'print\("x"\)')
        shown = live.see_idle()
        data = bytes(live.log.data)
    assert re.search(rb"\x1b\[[0-9;]*m[^\x1b]*Read", data)
    assert re.search(rb"\x1b\[[0-9;]+m *print", data)
    assert re.search(r"[?^␛]\[[0-9;]*m|\^\[", shown.text) is None
    assert re.search(rb"[^\x1b]\[[0-9;]+m", data) is None


@pytest.mark.slow
def test_keys_during_a_flood_are_exactly_the_draft_and_no_reply_of_the_terminal(
    tmp_path: Path,
) -> None:
    """MB-0807: 20,000 short lines at full speed while five keys a second are typed."""
    rows = [f"row {number}\n\n" for number in range(20_000)]
    typed = "typed while it streams"
    with (
        MessagesServer(Reply(Says("It begins.\n\n", gate := Latch(), *rows, "The end."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"It begins\.")
        gate.open()
        for key in typed:
            live.send(key)
            time.sleep(0.2)  # the pace of the keys is the subject
        live.see_draft(typed)
        live.see(r"The end\.")
        shown = live.see_idle()
        assert b"\x1b[6n" not in live.log.data
    assert ";1R" not in shown.text
    assert [row for row in shown.lines if row.startswith(GLYPH)] == [f"{GLYPH} {typed}"]


def test_ctrl_c_interrupts_then_clears_then_hints_and_leaves_only_when_confirmed(
    tmp_path: Path,
) -> None:
    """MB-0811."""
    gate = FifoLatch(tmp_path)
    start = Start(["--allow", "Bash"])
    with (
        MessagesServer(Reply(Calls("Bash", {"command": gate.command}))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        gate.reached()
        live.key("ctrl-c")
        live.see("Interrupted after")
        time.sleep(1.1)  # what comes within a second still means the turn
        live.type("a draft")
        live.key("ctrl-c")
        live.see(rf"^{GLYPH} *$")
        live.key("ctrl-c")
        live.see("Press Ctrl-C again")
        live.see_not("Press Ctrl-C again")  # the window has passed
        live.key("ctrl-c")
        live.see("Press Ctrl-C again")
        assert live.process.poll() is None
        live.key("ctrl-c")
        assert live.wait_exit(30) == 0


def test_no_key_in_flight_answers_and_none_is_lost(tmp_path: Path) -> None:
    """MB-0301, MB-0304: ten keys a second, an Enter among them, while a question appears."""
    with (
        MessagesServer(
            Reply(Says("May I? ", gate := Latch()), Calls("Bash", {"command": "touch x"})),
            Reply(Says("Then not.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"May I\?")
        type_slowly(live, f"{KEYS}first\r")
        gate.open()
        type_slowly(live, KEYS)
        live.see(r"^\? Bash")
        type_slowly(live, f"{KEYS}{KEYS}")
        live.see_draft(KEYS * 3)
        time.sleep(2 * ARM_SECONDS)  # long enough for a question beside an empty draft
        shown = live.see(r"^\? Bash")
        assert "Tab to answer" in shown.text
        assert not (tmp_path / "x").exists()
        assert len(server.requests) == 1
        live.see(rf"^NEXT +{KEYS}first · ")


def type_slowly(live: LiveMidturn, keys: str) -> None:
    for key in keys:
        live.send(key)
        time.sleep(KEY_SECONDS)  # the pace of the keys is the subject


@pytest.mark.slow
def test_a_key_just_after_a_question_was_drawn_goes_to_the_draft(tmp_path: Path) -> None:
    """MB-0302: twenty questions, the key 0 to 300 ms after each."""
    runs = 20
    look = Calls("Glob", {"pattern": "*"})  # a step in which nothing succeeds counts as stalled
    asks = [Reply(look, Calls("Bash", {"command": f"touch made-{run}"})) for run in range(runs)]
    with (
        MessagesServer(*asks, Reply(Says("All denied."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        for run in range(runs):
            live.see(rf"^\? Bash.*\n│ touch made-{run}$")
            time.sleep(0.3 * run / runs)  # the moment of the key is the subject
            live.send("y")
            live.see(rf"{GLYPH} y")
            live.key("backspace")
            live.see(ARMED)
            live.send("n")
        live.see(r"All denied\.")
        live.see_idle()
        assert [entry.name for entry in tmp_path.iterdir()] == []


def kinds_of_questions(folder: Path) -> list[Calls]:
    (folder / "old.txt").write_text("plum\n", encoding="utf-8")
    return [
        Calls("Bash", {"command": "touch made"}),
        Calls("Write", {"file_path": "new.txt", "content": "x\n"}),
        Calls("Edit", {"file_path": "old.txt", "old_string": "plum", "new_string": "pear"}),
        Calls("WebFetch", {"url": "http://127.0.0.1:9/page"}),
    ]


@pytest.mark.parametrize("key", ["y", "n", "esc"])
def test_a_key_means_the_same_in_every_question(tmp_path: Path, key: str) -> None:
    """MB-0305, MB-0306: yes is yes and no is no for Bash, Write, Edit and WebFetch."""
    calls = kinds_of_questions(tmp_path)
    start = Start(config='[web]\nallow_hosts = ["127.0.0.1:9"]\n')
    with (
        MessagesServer(
            Reply(Calls("Read", {"file_path": "old.txt"})), Reply(*calls), Reply(Says("All asked."))
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        for number, call in enumerate(calls, start=1):
            live.see(rf"^\? {call.name}.*\({number} of 4")
            live.see(rf"^{ARMED}.* · n no · r no, with a reason$")
            live.key(key) if key == "esc" else live.send(key)
        live.see(r"All asked\.")
        results = server.wait_for_requests(3)[2].results
    assert len(results) == len(calls)
    denied = ["declined this call" in str(result["content"]) for result in results]
    assert denied == [key != "y"] * 4
    assert (tmp_path / "made").exists() is (key == "y")
    assert (tmp_path / "new.txt").exists() is (key == "y")
    assert ((tmp_path / "old.txt").read_text() == "pear\n") is (key == "y")


def test_the_rule_that_is_shown_is_the_rule_that_is_kept(tmp_path: Path) -> None:
    """MB-0312."""
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "git status --short"})), Reply(Says("Fine."))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        found = re.search(r"^t, s, a allow (.*)$", live.see(ARMED).text, re.M)
        assert found is not None
        live.send("s")
        live.see("Fine")
        live.see_anywhere(re.escape(f"allowed this session: {found[1]}"))
        time.sleep(REPEAT_SECONDS)  # until then another "s" is a repeat of the answer
        live.enter("/permissions")
        live.see(rf"{re.escape(found[1])}")


def test_no_rule_is_offered_for_a_command_that_is_never_the_same(tmp_path: Path) -> None:
    """MB-0312: its second form is asked again."""
    commit = "git commit -m \"$(cat <<'EOF'\nmsg {}\nEOF\n)\""
    with (
        MessagesServer(
            *(Reply(Calls("Bash", {"command": commit.format(number)})) for number in (1, 2)),
            Reply(Says("Fine.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        for number in (1, 2):
            live.see(rf"msg {number}")
            shown = live.see(ARMED)
            assert "this session" not in "\n".join(shown.screen)
            live.send("s")
            live.see("wait…")
            live.see(ARMED)
            live.send("n")
        live.see("Fine")


def test_a_question_shows_where_a_link_leads(tmp_path: Path) -> None:
    """MB-0313: a path that leaves the workspace through a link is asked, with its real target."""
    outside = tmp_path / "outside"
    workspace = tmp_path / "ws"
    for folder in (outside, workspace):
        folder.mkdir()
    (outside / "g.txt").write_text("plum\n", encoding="utf-8")
    (workspace / "out").symlink_to("../outside")
    calls = [
        Calls("Write", {"file_path": "out/f.txt", "content": "x\n"}),
        Calls("Read", {"file_path": "out/g.txt"}),
    ]
    with (
        MessagesServer(Reply(*calls), Reply(Says("Fine."))) as server,
        live_midturn(server, workspace, Start(cols=140)) as live,
    ):
        live.enter("go")
        for name in ("f.txt", "g.txt"):
            live.see(re.escape(str(outside.resolve() / name)))
            live.see(ARMED)
            live.send("n")
        live.see("Fine")
    assert not (outside / "f.txt").exists()
