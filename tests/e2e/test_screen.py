"""What a person sees of a session while text streams and keys are typed."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from itertools import chain
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Part, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment
from tests.support.terminal_screen import Rendered
from tests.support.tmux_session import TmuxSession

TYPED = [f"typed line {number:02} of eighty" for number in range(80)]
ROWS_PER_TYPED_LINE = 63
FLOOD_ROWS = [f"L{number:05} numbered row" for number in range(ROWS_PER_TYPED_LINE * len(TYPED))]
KEY_SECONDS = 0.003
QUIET_SECONDS = 2.0


def tokens(row: str) -> list[str]:
    """A row of a code block as a model streams it: four pieces."""
    return [row[:6], row[6:10], row[10:], "\n"]


def filled(rows: list[str]) -> list[str]:
    return [row.strip() for row in rows if row.strip()]


def transcript(shown: Rendered, first: str) -> list[str]:
    """The rows that are not blank, from ``first`` to the input line."""
    rows = filled(shown.lines)
    end = max(index for index, row in enumerate(rows) if row.startswith(GLYPH))
    return rows[rows.index(first) : end]


def count(shown: Rendered, text: str) -> int:
    return sum(text in row for row in shown.lines)


@pytest.mark.slow
def test_eighty_lines_typed_into_a_flood_arrive_intact_and_in_order(tmp_path: Path) -> None:
    """20,000 tokens stream meanwhile; neither side loses, doubles or mixes a row."""
    gates = [Latch(f"gate {number}") for number in range(len(TYPED))]
    end = Latch("end of the flood")
    parts: list[Part] = ["```\n"]
    for number, gate in enumerate(gates):
        first = number * ROWS_PER_TYPED_LINE
        rows = FLOOD_ROWS[first : first + ROWS_PER_TYPED_LINE]
        parts += [gate, *chain.from_iterable(map(tokens, rows))]
    with (
        MessagesServer(
            Reply(Says("It begins.\n\n", *parts, end, "```\n")), Reply(Says("All of it."))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"It begins\.")
        for gate, line in zip(gates, TYPED, strict=True):
            gate.open()
            for key in f"{line}\r":
                live.send(key)
                time.sleep(KEY_SECONDS)  # the pace of the keys is the subject
        live.see("queue 80 NEXT")
        live.see(rf"\+77 more\n{shown_in_queue(TYPED[-3:])}")
        end.open()
        live.see(r"All of it\.")
        shown = live.see_idle()
        assert server.wait_for_requests(2)[1].texts == TYPED
    echoes = chain.from_iterable((f"❯ {line}", "NEXT · the turn goes on") for line in TYPED)
    assert transcript(shown, "It begins.") == ["It begins.", *FLOOD_ROWS, *echoes, "All of it."]


def shown_in_queue(lines: list[str]) -> str:
    return "\n".join(f"NEXT +{re.escape(line)} .*" for line in lines)


@pytest.mark.slow
def test_a_real_terminal_shows_every_row_once_with_wide_letters_and_emoji(
    tmp_path: Path,
) -> None:
    rows = [f"L{number:05} 漢字 한글 ✓ 🙂 wide" for number in range(5000)]
    with MessagesServer(
        Reply(Says("```\n", *chain.from_iterable(map(tokens, rows)), "```\n\n", "All of it."))
    ) as server:
        session = TmuxSession(
            [sys.executable, "-m", "midturn_cli.main", "go"],
            env=midturn_environment(**server.environment()),
            cwd=str(tmp_path),
        )
        with session:
            shown = session.wait_screen(r"All of it\.", timeout=60)
    assert [row for row in filled(shown.lines) if row.startswith("L0")] == rows


def test_a_line_typed_while_busy_is_in_the_queue_at_once_and_in_the_transcript_once(
    tmp_path: Path,
) -> None:
    streaming = Latch()
    with (
        MessagesServer(
            Reply(Says("The first half", streaming, " and the second.")), Reply(Says("Noted."))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("The first half")
        live.enter("and the tests")
        shown = live.see(r"NEXT +and the tests .*after this step")
        assert count(shown, "and the tests") == 1
        streaming.open()
        live.see("Noted")
        shown = live.see_idle()
    assert count(shown, "and the tests") == 1
    assert transcript(shown, "❯ go") == [
        "❯ go",
        "The first half and the second.",
        "❯ and the tests",
        "NEXT · the turn goes on",
        "Noted.",
    ]


def test_a_whole_session_never_asks_or_clears_the_terminal(tmp_path: Path) -> None:
    """No cursor query, no erased screen or scrollback, no alternate screen."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Says("I look."), Calls("Read", {"file_path": "a.txt"})),
            Reply(Calls("Bash", {"command": "touch made"})),
            Reply(Says("# Done\n\n- one\n- two\n")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("look and make")
        live.see("touch made")
        live.type("a draft")
        live.key("ctrl-u")
        live.see_not("a draft")
        live.see("y once")
        live.resize(80, 30)
        live.see("y once")
        live.key("esc")
        live.see("Done")
        live.key("ctrl-l")
        live.enter("/exit")
        assert live.wait_exit(30) == 0
    for sequence in (b"\x1b[6n", b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1b[?47h"):
        assert sequence not in live.log.data


def test_an_idle_session_writes_nothing(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("Done."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"Done\.")
        live.see_idle()
        live.wait_idle()
        written = live.mark()
        with live.log.changed:
            wrote = live.log.changed.wait_for(lambda: live.mark() > written, QUIET_SECONDS)
        assert not wrote, bytes(live.log.data[written:])


def test_text_of_the_model_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x1b[2J\x1b]52;c;ZXZpbA==\x07\xc2\x9b2Jfile\n")
    evil = "\x1b[2J", "\x1b]52;c;ZXZpbA==\x07", "\x9b31m", "\x07", "\x1b]0;title\x1b\\", "\x1bc"
    with (
        MessagesServer(
            Reply(
                Says("before ", *evil, "after"),
                Calls("Bash", {"command": "true \x1b[2J\x07\x9b3J"}),
                Calls("Read", {"file_path": "a.txt"}),
            ),
            Reply(Says("split \x1b", "[3J", " \x1b]52;c;", "ZXZp", "bA==\x07 whole")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("y once")
        live.see("before .*after")
        live.key("esc")
        live.see("whole")
        live.see_idle()
    data = bytes(live.log.data)
    for sequence in (
        b"\x1b[2J",
        b"\x1b[3J",
        b"\x1b]52",
        b"\x1b]0;",
        b"\x1bc",
        b"\xc2\x9b",
        b"\x07",
    ):
        assert sequence not in data
    assert "\x9b" not in data.decode()


@pytest.mark.parametrize("way", ["Ctrl-C", "kill -INT"])
def test_an_interrupt_cancels_the_stream_and_keeps_the_draft(tmp_path: Path, way: str) -> None:
    with (
        MessagesServer(Reply(Says("The first half", Latch())), Reply(Says("Again."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("The first half")
        live.type("my draft")
        interrupt(live, way)
        live.see("Interrupted")
        live.see(rf"{GLYPH} my draft")
        live.send("s")
        live.see(rf"{GLYPH} my drafts")
        live.key("enter")
        live.see(r"Again\.")
        assert server.wait_for_requests(2)[1].texts[-1] == "my drafts"


def interrupt(live: LiveMidturn, way: str) -> None:
    if way == "Ctrl-C":
        live.key("ctrl-c")
    else:
        live.signal(signal.SIGINT)


@pytest.mark.parametrize("way", ["Ctrl-C", "kill -INT"])
def test_five_interrupts_in_a_second_leave_the_session_alive(tmp_path: Path, way: str) -> None:
    with (
        MessagesServer(Reply(Says("The first half", Latch())), Reply(Says("Again."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("The first half")
        live.type("my draft")
        for _ in range(5):
            interrupt(live, way)
            time.sleep(0.2)  # the pace of the keys is the subject
        live.see("Interrupted")
        live.type(" goes on")
        live.key("enter")
        live.see(r"Again\.")
        assert server.wait_for_requests(2)[1].texts[-1] == "my draft goes on"
        shown = live.see_idle()
    assert count(shown, "Interrupted") == 1


def test_an_unknown_key_of_the_configuration_is_told_and_nothing_freezes(tmp_path: Path) -> None:
    """MB-1102, MB-1104."""
    start = Start(config="future_key = 1\n[ui]\nplian = true\n")
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.see(r"the\s+nearest is plain")
        live.type("/ex")
        live.key("ctrl-c")
        live.see_not(rf"{GLYPH} /ex")
        live.enter("go")
        shown = live.see(r"Fine\.")
    assert count(shown, "plian") == 1


@pytest.mark.parametrize(
    "line",
    [
        "/srv/app/notes.md:12 improve this part",
        "/etc/fstab is odd, why?",
        "/* todo */ what does it mean?",
        "//foo",
    ],
)
def test_a_line_that_only_looks_like_a_command_is_sent(tmp_path: Path, line: str) -> None:
    """MB-1201, MB-1203."""
    with MessagesServer(Reply(Says("Fine."))) as server, live_midturn(server, tmp_path) as live:
        live.enter(line)
        live.see(r"Fine\.")
        assert server.requests[0].texts == [line]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/hlep", "There is no command /hlep; did you mean /help"),
        ("/qiut", "There is no command /qiut; did you mean /quit"),
        ("/HELP", "There is no command /HELP; did you mean /help"),
        ("/", "A / alone is no command"),
    ],
)
def test_a_mistyped_command_is_told_with_the_nearest_and_not_sent(
    tmp_path: Path, line: str, words: str
) -> None:
    """MB-1202."""
    with MessagesServer(Reply(Says("Fine."))) as server, live_midturn(server, tmp_path) as live:
        live.type(line)
        live.key("enter")
        live.see(f"! {words}")
        live.key("ctrl-u")
        live.enter("go")
        live.see(r"Fine\.")
        assert [request.texts for request in server.requests] == [["go"]]


def test_commands_typed_while_busy_run_and_are_never_sent(tmp_path: Path) -> None:
    """MB-1210: what is harmless runs at once, what needs its own turn runs when idle."""
    (tmp_path / "wait.sh").write_text("echo begun; read line < gate\n", encoding="utf-8")
    os.mkfifo(tmp_path / "gate")
    start = Start(arguments=("--allow", "Bash(sh wait.sh)"))
    with (
        MessagesServer(
            Reply(Says("I wait."), Calls("Bash", {"command": "sh wait.sh"})),
            Reply(Says("It is over.")),
            Reply(Says("The summary of all.")),
            Reply(Says("Fine.")),
        ) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        live.see("begun")
        live.enter("/compact")
        live.see(r"NEXT +/compact")
        live.enter("/status")
        live.see_anywhere("❯ /status")
        (tmp_path / "gate").write_text("now\n", encoding="utf-8")
        live.see_anywhere("It is over")
        live.see_not(r"NEXT +/compact")
        server.wait_for_requests(3)
        live.see_idle()
        live.enter("and now?")
        live.see(r"Fine\.")
        requests = server.requests
    assert len(requests) == 4
    assert not any("/status" in text for request in requests for text in request.texts)
    assert not any("/compact" in text for request in requests for text in request.texts)
    assert "The summary of all." in str(requests[3].messages)


@pytest.mark.parametrize("text", ["/exit\rrm x", "text\r/exit"])
def test_a_pasted_block_with_a_slash_is_content(tmp_path: Path, text: str) -> None:
    """MB-1209."""
    with MessagesServer(Reply(Says("Fine."))) as server, live_midturn(server, tmp_path) as live:
        live.paste(text)
        live.see("exit")
        live.key("enter")
        live.see(r"Fine\.")
        assert server.requests[0].texts == [text.replace("\r", "\n")]
