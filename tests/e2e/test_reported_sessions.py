"""Faults of stored sessions that people have reported about programs of this kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.model.messages import TextBlock
from midturn_core.paths import sessions_folder
from midturn_core.session.log import damaged_copy
from midturn_core.session.store import SessionStore
from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.picture_files import SVG, TIFF, bmp, jpeg
from tests.support.request_texts import times_said

pytestmark = pytest.mark.slow


def saved_session(workspace: Path, turns: int) -> Path:
    """The file of a session with so many turns: ``prompt N``, ``answer N``. Its first line says
    whose it is."""
    session = SessionStore(sessions_folder(os.environ)).create(workspace)
    conversation = Conversation(session.record_change)
    for turn in range(turns):
        conversation.add_user_text(f"prompt {turn}.")
        conversation.add_assistant([TextBlock(f"answer {turn}.")])
    session.close()
    return session.log.path


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def resumed(
    file: Path, workspace: Path, answer: str = "Fine."
) -> tuple[RecordedRequest, subprocess.CompletedProcess[bytes]]:
    """One more turn of a session; its request."""
    with MessagesServer(Reply(Says(answer))) as server:
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", "go on", "-r", file.stem, environ=environ, cwd=workspace)
        assert (done.returncode, done.stdout.decode()) == (0, f"{answer}\n"), done.stderr
        [request] = server.requests
    return request, done


def warnings_in(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [line for line in done.stderr.decode().splitlines() if "warning" in line]


def test_half_a_record_glued_to_the_next_one_costs_only_itself(tmp_path: Path) -> None:
    """MB-0901: and what follows begins on a line of its own."""
    file = saved_session(tmp_path, 4)
    lines = lines_of(file)
    lines[4:6] = [lines[4][: len(lines[4]) // 2] + lines[5]]  # half of "answer 1", and "prompt 2"
    file.write_bytes(b"".join(lines))
    damaged = file.read_bytes()
    request, done = resumed(file, tmp_path)
    said = [f"prompt {n}." for n in range(4)] + [f"answer {n}." for n in (0, 2, 3)]
    assert [times_said(words, request) for words in said] == [1] * 7
    assert times_said("answer 1.", request) == 0
    [warning] = [line for line in warnings_in(done) if "damaged" in line]
    assert "1 unreadable line(s) skipped" in warning
    assert damaged_copy(file).name in warning
    assert damaged_copy(file).read_bytes() == damaged
    assert file.read_bytes().startswith(damaged)
    assert all(json.loads(line) for line in lines_of(file)[5:])
    again, done = resumed(file, tmp_path, "Again.")
    assert times_said("Fine.", again) == 1
    assert warnings_in(done) == []


def test_everything_after_a_bad_line_is_there_with_one_warning(tmp_path: Path) -> None:
    """MB-0902: 200 lines, line 50 is broken."""
    file = saved_session(tmp_path, 100)
    lines = lines_of(file)[:200]
    assert b"answer 24." in lines[50]
    lines[49] = lines[49][:30] + b"\xff" + lines[49][31:]  # prompt 24
    file.write_bytes(b"".join(lines))
    request, done = resumed(file, tmp_path)
    kept = [f"prompt {n}." for n in range(100) if n != 24] + [f"answer {n}." for n in range(99)]
    assert [words for words in kept if times_said(words, request) != 1] == []
    assert len([line for line in warnings_in(done) if "damaged" in line]) == 1


def test_a_cut_end_costs_the_last_record_alone(tmp_path: Path) -> None:
    """MB-0903: as after a power cut."""
    file = saved_session(tmp_path, 3)
    os.truncate(file, file.stat().st_size - 20)
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, Start(arguments=("-c",))) as live,
    ):
        live.see_anywhere("The session file was damaged: the torn end was cut off")
        shown = live.see(r"❯ prompt 2\.")
        for words in ("prompt 0.", "answer 0.", "prompt 1.", "answer 1."):
            assert shown.text.count(words) == 1
        assert "answer 2." not in shown.text
        live.enter("go on")
        live.see(r"Fine\.")
        [request] = server.requests
    assert times_said("answer 1.", request) == 1


@pytest.mark.parametrize("broken", ["its first record", "all of it"])
def test_one_broken_session_among_ten_is_listed_and_the_others_are_as_before(
    tmp_path: Path, broken: str
) -> None:
    """MB-0909: the record that says whose it is was written twice, the first time only half."""
    files = [saved_session(tmp_path, 1) for _ in range(10)]
    bad, good = files[3], files[7]
    first, *rest = lines_of(bad)
    bad.write_bytes(
        b"".join([first[:40], b"\n", *rest]) if broken == "its first record" else b"\0\1"
    )
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, Start(rows=50)) as live,
    ):
        live.enter("/resume")
        live.see_anywhere("/resume N opens one")
        shown = live.see_idle()
        assert [file.stem for file in files if file.stem not in shown.text] == []
        marked = [line for line in shown.lines if "(damaged: " in line]
        assert [bad.stem in line for line in marked] == [True]
        live.enter(f"/resume {good.stem}")
        live.see(r"❯ prompt 0\.")
        live.enter("go on")
        live.see(r"Fine\.")
    if broken == "its first record":
        request, _ = resumed(bad, tmp_path)
        assert times_said("prompt 0.", request) == 1
        summary = SessionStore(sessions_folder(os.environ)).find(bad.stem)
        assert summary.workspace == str(tmp_path)


def test_a_session_that_is_open_is_refused_and_one_whose_process_was_killed_is_not(
    tmp_path: Path,
) -> None:
    """MB-0910."""
    file = saved_session(tmp_path, 1)
    start = Start(arguments=("-r", file.stem))
    with (
        MessagesServer(Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.see(r"❯ prompt 0\.")
        environ = midturn_environment(**server.environment())
        second = run_midturn("-p", "and I?", *start.arguments, environ=environ, cwd=tmp_path)
        assert second.returncode == 2
        assert b"another Midturn writes to it" in second.stderr
        live.enter("the first")
        live.see(r"Fine\.")
        live.see_idle()
        live.signal(signal.SIGKILL)
        live.wait_exit(30)
    request, done = resumed(file, tmp_path, "Third.")
    assert [times_said(words, request) for words in ("the first", "Fine.", "and I?")] == [1, 1, 0]
    assert warnings_in(done) == []
    assert all(json.loads(line) for line in lines_of(file))


def test_pictures_that_tools_come_across_never_enter_the_history(tmp_path: Path) -> None:
    """MB-0907, MB-0908: too large, of a foreign kind, or none at all."""
    contents = {
        "photo.jpg": jpeg(metadata=100) + bytes(4_500_000),
        "a.bmp": bmp(),
        "a.tiff": TIFF,
        "misnamed.jpg": bmp(),
        "text.png": b"only words",
        "a.svg": SVG,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    reads = [Calls("Read", {"file_path": name}) for name in contents]
    with MessagesServer(Reply(*reads), Reply(Says("Seen."))) as server:
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", "look", environ=environ, cwd=tmp_path)
        assert done.stdout == b"Seen.\n", done.stderr
        results = {
            name: str(result["content"])
            for name, result in zip(contents, server.requests[1].results, strict=True)
        }
        server.add(Reply(Says("Hello.")))
        again = run_midturn("-p", "hi", "-c", environ=environ, cwd=tmp_path)
        assert again.stdout == b"Hello.\n", again.stderr
        assert server.violations == []
        sent = [json.dumps([*map(dict, request.messages)]) for request in server.requests]
    assert not any('"image"' in body for body in sent)
    assert all(len(body) < 20_000 for body in sent)
    assert "only words" in results["text.png"]
    assert "JPEG" in results["photo.jpg"] and "text only" in results["photo.jpg"]
    assert "<svg" in results["a.svg"]
