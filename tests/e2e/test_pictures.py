"""Pictures through the real command: dropped, queued, refused, resumed."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from midturn_core.paths import sessions_folder
from tests.support.clipboard_owner import offer
from tests.support.live_midturn import COMMAND, LiveMidturn, Start, live_midturn
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Calls, Failure, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import DEADLINE, midturn_environment, run_midturn
from tests.support.picture_files import bmp, gif, png
from tests.support.pty_harness import PASTE_END, PASTE_START, PtySession
from tests.support.request_texts import injected, kinds_in, said_in, typed

SHOT = png(1280, 720)
CTRL_V = "\x16"
PLACE = "[Picture #1 shot.png 1280×720 65 B]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shot.png").write_bytes(SHOT)
    return tmp_path


def drop(live: LiveMidturn, path: Path) -> None:
    """What a terminal types when a file is dropped on it."""
    live.send(f"{PASTE_START}{path}{PASTE_END}")


def pictures(request: RecordedRequest) -> list[tuple[object, bytes]]:
    """The media types and contents of all pictures in a request, in order."""
    found: list[tuple[object, bytes]] = []
    for message in request.messages:
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and isinstance(source := block.get("source"), dict):
                found.append((source["media_type"], base64.b64decode(str(source["data"]))))
    return found


def test_a_dropped_picture_is_in_the_request(folder: Path) -> None:
    with MessagesServer(Reply(Says("A screen."))) as server, live_midturn(server, folder) as live:
        live.type("what is ")
        drop(live, folder / "shot.png")
        live.see(r"\[Picture #1 shot\.png 1280×720 65 B\]")
        live.key("enter")
        live.see("A screen")
        [request] = server.requests
    assert kinds_in(request) == ["text", "image"]
    assert said_in(request) == [typed(f"what is {PLACE} ")]
    assert pictures(request) == [("image/png", SHOT)]


def test_a_queued_picture_follows_the_tool_results(folder: Path) -> None:
    latch = Latch()
    script = (Reply(Calls("Read", {"file_path": "a.txt"}), latch), Reply(Says("Seen.")))
    (folder / "a.txt").write_text("one\n")
    with MessagesServer(*script) as server, live_midturn(server, folder) as live:
        live.enter("read a.txt")
        latch.reached.wait()
        live.send("@shot.png ")
        live.see(r"\[Picture #1")
        live.send("this\r")
        live.see(r"NEXT .*Picture #1.* · \+1 picture")
        latch.open()
        live.see("Seen")
        last = server.requests[-1]
    assert kinds_in(last) == ["tool_result", "text", "image"]
    assert said_in(last) == [injected(f"{PLACE} this")]


def test_a_refused_file_is_said_and_the_next_text_works(folder: Path) -> None:
    """MB-0907, MB-0908: one that is too large, one of a foreign kind, one that is no picture."""
    (folder / "photo.png").write_bytes(png(padding=4_500_000))
    (folder / "old.bmp").write_bytes(bmp())
    (folder / "text.png").write_text("text")
    with MessagesServer(Reply(Says("Hello."))) as server, live_midturn(server, folder) as live:
        for name, reason in (
            ("photo.png", r"it has 4\.5 MB, and the"),
            ("old.bmp", "it is a BMP picture"),
            ("text.png", "it is no picture"),
        ):
            drop(live, folder / name)
            live.see_anywhere(rf"{name} was not attached: {reason}")
            live.key("ctrl-u")
        live.enter("hi")
        live.see("Hello")
        [request] = server.requests
    assert said_in(request) == [typed("hi")]
    assert pictures(request) == []


def test_a_picture_that_the_service_refuses_blocks_no_later_turn(folder: Path) -> None:
    """MB-0907."""
    script = (
        Failure(400, "invalid_request_error", "Could not process image"),
        Reply(Says("I got no picture.")),
        Reply(Says("Hello again.")),
    )
    with MessagesServer(*script) as server, live_midturn(server, folder) as live:
        live.send("@shot.png what?\r")
        live.see("I got no picture")
        live.enter("hi")
        live.see("Hello again")
        requests = server.requests
    assert [len(pictures(request)) for request in requests] == [1, 0, 0]
    assert "was refused by the service" in requests[1].texts[-1]


@pytest.mark.parametrize("there", [True, False])
def test_a_resumed_session_has_its_picture_or_says_that_it_is_lost(
    folder: Path, there: bool
) -> None:
    with MessagesServer(Reply(Says("A screen."))) as server, live_midturn(server, folder) as live:
        live.send("@shot.png what?\r")
        live.see("A screen")
        live.see_idle()
        live.key("ctrl-d")
        live.wait_exit()
    [file] = sessions_folder(os.environ).glob("*.files/*.png")
    assert file.stat().st_mode & 0o777 == 0o600
    if not there:
        file.unlink()
    with (
        MessagesServer(Reply(Says("Blue."))) as server,
        live_midturn(server, folder, Start(arguments=("-c",))) as live,
    ):
        live.see(r"❯ \[Picture #1 shot\.png 1280×720 65 B\] what\?")
        live.enter("which colour?")
        live.see("Blue")
        [request] = server.requests
        if there:
            assert pictures(request) == [("image/png", SHOT)]
        else:
            assert pictures(request) == []
            live.see_anywhere(r"1 picture\(s\) are missing or damaged")


def test_plain_mode_attaches_what_a_typed_line_names(folder: Path) -> None:
    (folder / "b.gif").write_bytes(gif())
    with MessagesServer(Reply(Says("Both."))) as server:
        environ = midturn_environment(**server.environment())
        command = [*COMMAND, "--plain"]
        with PtySession(command, env=environ, cwd=str(folder)) as live:
            live.send("@shot.png or @b.gif?\n")
            live.wait("Both", timeout=DEADLINE)
        [request] = server.requests
    assert [kind for kind, _ in pictures(request)] == ["image/png", "image/gif"]


def test_a_line_through_a_pipe_attaches_nothing(folder: Path) -> None:
    """It may be anybody's text."""
    with MessagesServer(Reply(Says("Text."))) as server:
        environ = midturn_environment(**server.environment())
        run_midturn(stdin=b"@shot.png\n", environ=environ, cwd=folder)
        [request] = server.requests
    assert request.texts == ["@shot.png"]
    assert pictures(request) == []


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outside the workspace, whose programs are never run."""
    return tmp_path_factory.mktemp("programs")


def with_clipboard(programs: Path) -> Start:
    """Started with these programs on the search path, at a machine with a Wayland display."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return Start(environ={"PATH": path, "WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ""})


def test_a_picture_on_the_clipboard_is_in_the_request_and_in_a_private_file(
    tmp_path: Path, programs: Path
) -> None:
    offer(programs, "wl-paste", {"text/html": b"<img>", "image/png": SHOT})
    with (
        MessagesServer(Reply(Says("A screen."))) as server,
        live_midturn(server, tmp_path, with_clipboard(programs)) as live,
    ):
        live.type("what is ")
        live.send(CTRL_V)
        live.see(r"what is \[Picture #1 clipboard\.png 1280×720 65 B\]")
        [file] = sessions_folder(os.environ).glob("*.files/*.png")
        live.key("enter")
        live.see("A screen")
        [request] = server.requests
    assert pictures(request) == [("image/png", SHOT)]
    assert file.read_bytes() == SHOT
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_picture_from_the_clipboard_is_queued_while_a_turn_runs(
    tmp_path: Path, programs: Path
) -> None:
    offer(programs, "wl-paste", {"image/png": SHOT})
    latch = Latch()
    script = (Reply(Calls("Read", {"file_path": "a.txt"}), latch), Reply(Says("Seen.")))
    (tmp_path / "a.txt").write_text("one\n")
    with (
        MessagesServer(*script) as server,
        live_midturn(server, tmp_path, with_clipboard(programs)) as live,
    ):
        live.enter("read a.txt")
        latch.reached.wait()
        live.send(CTRL_V)
        live.see(r"\[Picture #1 clipboard\.png")
        live.send("this\r")
        live.see(r"NEXT .*Picture #1.* · \+1 picture")
        latch.open()
        live.see("Seen")
        last = server.requests[-1]
    assert kinds_in(last) == ["tool_result", "text", "image"]


def test_each_reason_why_the_clipboard_gives_no_picture_is_said_and_the_draft_stays(
    tmp_path: Path, programs: Path
) -> None:
    with (
        MessagesServer(Reply(Says("Hello."))) as server,
        live_midturn(server, tmp_path, with_clipboard(programs)) as live,
    ):
        live.type("hello")
        for offers, reason in (
            ({"text/plain": b"words"}, "the clipboard holds no picture"),
            ({"image/png": png(padding=4_500_000)}, r"what is on the clipboard has 4\.5 MB"),
            ({"image/png": b"words"}, "what the clipboard gave as a picture is none"),
        ):
            offer(programs, "wl-paste", offers)
            live.send(CTRL_V)
            live.see_anywhere(f"No picture was attached: {reason}")
            live.see_draft("hello")
        live.key("enter")
        live.see("Hello")
        [request] = server.requests
    assert said_in(request) == [typed("hello")]
