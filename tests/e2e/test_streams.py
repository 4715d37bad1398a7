"""Keys, pastes, notices and calls while a turn runs, on the real screen."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import pytest

from tests.support.gated_site import gated_site
from tests.support.live_midturn import GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.pty_harness import PASTE_END, PASTE_START
from tests.support.terminal_screen import Rendered

SPINNERS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
EDITING = (
    "world",
    "\x1b[D" * 2,
    "\x1b[C",
    "\x01",
    "hello ",
    "\x05",
    " and all",
    "\x17",
    "\x1b\r",
    "2",
)
EDITED = "hello world and \n2"
KILLED = ("gone", "\x15")
MARKUP = "[/login] [/] [bold] x[/{y}]/z [INST] [link=x]"
BROKEN_ANSWER = ["The first half", " and the second", " and the end."]


def filled(shown: Rendered) -> list[str]:
    return [row.strip() for row in shown.lines if row.strip()]


def test_calls_that_run_have_moving_rows_and_each_final_row_appears_once(tmp_path: Path) -> None:
    with (
        gated_site(3) as site,
        MessagesServer(
            Reply(*[Calls("WebFetch", {"url": site.url(n)}) for n in range(3)]),
            Reply(Says("All three.")),
        ) as server,
        live_midturn(
            server,
            tmp_path,
            Start(
                ["--parallel", "--allow", "WebFetch(domain:127.0.0.1)"],
                config=f'[web]\nallow_hosts = ["{site.host}"]\n',
            ),
        ) as live,
    ):
        live.enter("fetch them")
        site.wait_for_arrivals(3)
        running = rf"^[{SPINNERS}] .*/0.*\n[{SPINNERS}] .*/1.*\n[{SPINNERS}] .*/2"
        live.see(running)
        seen: set[str] = set()
        for glyph in SPINNERS:
            # Each of the ten shapes in turn: the wait for the next one ends only when it moves.
            shown = live.see(rf"^{glyph} .*/0")
            seen.add(glyph)
            assert "✓" not in shown.text
        site.open_all()
        live.see(r"All three\.")
        shown = live.see_idle()
    assert seen == set(SPINNERS)
    for number in range(3):
        assert len(re.findall(rf"\[{number + 1}/3\] WebFetch: .*✓", shown.text)) == 1


def test_what_is_shown_meanwhile_never_splits_a_line_of_the_answer(tmp_path: Path) -> None:
    pauses = [Latch("first pause"), Latch("second pause")]
    first, second, third = BROKEN_ANSWER
    with (
        MessagesServer(Reply(Says(first, pauses[0], second, pauses[1], third))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(f"^{first}$")
        live.enter("/status")
        live.see_anywhere("❯ /status")
        pauses[0].open()
        live.see(f"^{first}{second}$")
        live.enter("/cost")
        live.see_anywhere("❯ /cost")
        pauses[1].open()
        live.see("and the end")
        rows = filled(live.see_idle())
    assert rows.count("".join(BROKEN_ANSWER)) == 1
    assert sum("half" in row or "second" in row for row in rows) == 1


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "mid-turn"])
def test_editing_keys_work_mid_turn_as_they_do_when_idle(tmp_path: Path, busy: bool) -> None:
    latch = Latch()
    replies = [Reply(Says("It streams", latch))] if busy else []
    with (
        MessagesServer(*replies, Reply(Says("Edited."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        if busy:
            live.enter("go")
            live.see("It streams")
        for key in (*KILLED, *EDITING):
            live.send(key)
        live.see(rf"{GLYPH} hello world and\s*\n\s*2")
        live.key("enter")
        latch.open()
        live.see(r"Edited\.")
        assert server.requests[-1].texts[-1] == EDITED


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{number:06} äöü €\n" for number in range(12_500)),
        "0123456789" * 20_000,
        "".join(f"{number:06} a line of one megabyte\n" for number in range(32_000)),
    ],
    ids=["200 kB of lines", "one line of 200 kB", "1 MB of lines"],
)
def test_a_large_paste_mid_turn_arrives_as_it_was(tmp_path: Path, text: str) -> None:
    """MB-0803."""
    latch = Latch()
    with (
        MessagesServer(Reply(Says("It streams", latch)), Reply(Says("Got it."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.send(f"{PASTE_START}{text.replace(chr(10), chr(13))}{PASTE_END}")
        live.see(r"\[Pasted #1 ")
        live.send("!")
        live.see(r"\[Pasted #1 .*\]!$")
        live.key("enter")
        live.see(r"NEXT +")
        latch.open()
        live.see(r"Got it\.")
        (arrived,) = server.requests[1].texts
    assert digest(arrived) == digest(f"{text}!")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_keys_that_end_other_programs_end_nothing_mid_turn(tmp_path: Path) -> None:
    """MB-0802."""
    with (
        MessagesServer(Reply(Says("It streams", latch := Latch())), Reply(Says("On."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.send("\x1c")
        live.send("\x04" * 300)
        live.type("still here")
        live.key("enter")
        latch.open()
        live.see(r"On\.")
        live.see_idle()
        assert live.process.poll() is None


def test_a_tiny_terminal_shows_input_and_question(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(Says("word " * 200), Calls("Bash", {"command": "touch made"})),
            Reply(Says("Then not.")),
        ) as server,
        live_midturn(server, tmp_path, Start(cols=40, rows=10)) as live,
    ):
        live.type("x" * 100)
        live.key("enter")
        live.see("touch made")
        live.type("draft")
        live.see(rf"touch made(.|\n)*{GLYPH}.* draft")
        live.key("ctrl-u")
        live.see("y once")
        live.key("esc")
        live.see_anywhere(r"Then not\.")
        live.see_idle()
    assert not (tmp_path / "made").exists()


def test_what_a_child_writes_to_its_error_stream_is_part_of_its_result(tmp_path: Path) -> None:
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "echo whoops >&2"})), Reply(Says("Heard it."))
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("y once")
        live.send("y")
        live.see(r"Heard it\.")
        rows = filled(live.see_idle())
    # Once in the command, once in what it wrote; the region is where it was.
    assert sum("whoops" in row for row in rows) == 2
    assert [row for row in rows if row.startswith(GLYPH)] == [GLYPH]


@pytest.mark.parametrize("pieces", ["one write", "byte by byte", "slowly", "cut in a letter"])
def test_hangul_is_never_cut_at_its_end(tmp_path: Path, pieces: str) -> None:
    """MB-0809, MB-0810."""
    text = "안녕하세요 한글 "
    data = f"{text}\r".encode()
    with MessagesServer(Reply(Says("네."))) as server, live_midturn(server, tmp_path) as live:
        match pieces:
            case "one write":
                live.send(data.decode())
            case "byte by byte" | "slowly":
                for byte in data:
                    live.send(bytes([byte]))
                    if pieces == "slowly":
                        time.sleep(0.005)  # the pace of the bytes is the subject
            case _:
                live.send(data[:-5])
                live.send(data[-5:])
        live.see("네")
        live.see(rf"^{GLYPH} *$")
        assert server.requests[0].texts == [text]


def test_escape_and_keys_that_begin_with_it_are_told_apart(tmp_path: Path) -> None:
    """MB-0813: the draft stays, and arrows and Alt keys are no Esc."""
    with (
        MessagesServer(Reply(Says("It streams", Latch())), Reply(Says("Again."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see("It streams")
        live.type("one two")
        live.send("\x1b[D\x1bb")
        live.send("X")
        live.see(rf"{GLYPH} one Xtwo")
        assert "Interrupted" not in live.shown().text
        live.key("esc")
        live.see("Interrupted")
        live.see(rf"{GLYPH} one Xtwo")
        live.send("\x1b[D\x1bb")
        live.send("Y")
        live.see(rf"{GLYPH} Yone Xtwo")


def test_square_brackets_are_only_text_wherever_they_come_from(tmp_path: Path) -> None:
    """MB-0808."""
    name = "[bold] [INST].txt"
    (tmp_path / name).write_text(f"{MARKUP}\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(
                Says(f"`{MARKUP}`"),
                Calls("Read", {"file_path": name}),
                Calls("Bash", {"command": f"echo '{MARKUP}'"}),
            ),
            Reply(Says("All literal.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter(MARKUP)
        live.see_anywhere(re.escape(f"❯ {MARKUP}"))
        live.see(re.escape(f"echo '{MARKUP}'"))
        live.see("y once")
        live.send("y")
        live.see(r"All literal\.")
        live.type("/export [/login].odd")
        live.key("enter")
        live.see(r"The format of '\[/login\]\.odd' is not clear")
        shown = live.shown()
    assert MARKUP in "".join(row for row in shown.lines if "❯" not in row)
    assert name in shown.text


def test_finished_lines_are_written_once_and_never_again(tmp_path: Path) -> None:
    """MB-0812: 300 lines of Markdown cost less than three times their size."""
    blocks = [f"## Part {n}\n\nSome *words* of part {n}.\n\n- a\n- b\n\n" for n in range(50)]
    text = "".join(blocks)
    with (
        MessagesServer(Reply(Says("It begins.\n\n", gate := Latch(), text))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        live.see(r"It begins\.")
        start = live.mark()
        gate.open()
        live.see_anywhere("Part 49")
        live.see_idle()
        written = bytes(live.log.data[start:])
    assert len(written) < 3 * len(text)
    assert all(written.decode().count(f"Part {number}\x1b") <= 2 for number in range(50))


def test_keys_typed_before_the_start_is_over_show_no_reply_of_the_terminal(
    tmp_path: Path,
) -> None:
    """MB-0807: nothing is asked of the terminal, so no answer can be taken for typed text."""
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.type("one")
        live.key("enter")
        live.see(r"Fine\.")
        shown = live.see_idle()
        assert_no_query(live)
    assert ";1R" not in shown.text


def assert_no_query(live: LiveMidturn) -> None:
    assert not re.findall(rb"\x1b\[(?:6n|c|>c|\?6n)", live.log.data)
