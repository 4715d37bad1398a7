"""Writing a session log, also on a disk that refuses."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.errors import SessionError
from midturn_core.model.messages import (
    Outcome,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    Usage,
)
from midturn_core.read_files import ReadStamp
from midturn_core.session.log import SessionLog
from midturn_core.session.records import Record, encode, read_log
from midturn_core.session.store import SessionStore


def test_nothing_is_written_before_the_first_change(tmp_path: Path) -> None:
    session = SessionStore(tmp_path / "sessions").create(tmp_path)
    session.close()
    assert not (tmp_path / "sessions").exists()


def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    session = store.create(tmp_path)
    Conversation(session.record_change).add_user_text("hi")
    session.close()
    assert stat.S_IMODE(session.log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("안녕 \udcff lone")
    use = ToolUse("a", "Read", {"n": 1.5, "deep": {"x": [None, True]}}, input_error="bad")
    conversation.add_assistant([ThinkingBlock("hm", "sig", "m"), TextBlock("x"), use])
    result = ToolUseResult("a", "Read", Outcome.DENIED, "no", 12.5, "denied", retried=True)
    conversation.add_results([result], ["steer"])
    conversation.add_assistant([TextBlock("done")])
    session.record_stamp(tmp_path / "f", ReadStamp("hash", ((1, 2), (5, 9))))
    session.record_usage(Usage(1, 2, 3, 4))
    session.record_usage(Usage(1, 2, 3, 4))
    session.close()

    resumed = store.resume(store.latest(tmp_path), tmp_path)
    again = Conversation()
    again.replay(resumed.changes)
    assert again.messages == conversation.messages
    assert resumed.stamps == {tmp_path / "f": ReadStamp("hash", ((1, 2), (5, 9)))}
    assert resumed.usage == Usage(2, 4, 6, 8)
    assert resumed.warnings == ()


def test_the_log_knows_which_queued_inputs_it_holds_even_after_the_history_was_cleared(
    tmp_path: Path,
) -> None:
    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("one", "two", inputs=["uuid-1", "uuid-2"])
    conversation.add_assistant([ToolUse("a", "Read", {})])
    result = ToolUseResult("a", "Read", Outcome.SUCCEEDED, "x")
    conversation.add_results([result], ["steer"], inputs=["uuid-3"])
    conversation.clear()
    conversation.add_user_text("a note")
    session.close()

    resumed = store.resume(store.latest(tmp_path), tmp_path)
    assert resumed.delivered == {"uuid-1", "uuid-2", "uuid-3"}


def test_a_second_instance_is_told(tmp_path: Path) -> None:
    session = SessionStore(tmp_path).create(tmp_path)
    Conversation(session.record_change).add_user_text("hi")
    with pytest.raises(SessionError, match="another Midturn"):
        SessionLog.open(session.log.path)
    session.close()
    SessionLog.open(session.log.path).log.close()


def test_a_session_can_be_checked_without_being_opened(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    Conversation(session.record_change).add_user_text("hi")
    [summary] = store.list()
    with pytest.raises(SessionError, match="another Midturn"):
        store.check(summary)
    session.close()
    store.check(summary)
    store.resume(summary, tmp_path).session.close()


def test_a_fifo_among_the_sessions_holds_nobody_up(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    Conversation(session.record_change).add_user_text("hi")
    session.close()
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert sorted(summary.damaged for summary in store.list()) == [False, True]
    with pytest.raises(SessionError, match="it is no file"):
        store.resume(store.find("pipe"), tmp_path)


@pytest.fixture
def refusing_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A disk that takes half of a write and says so, as a full one does."""
    real = os.write
    full = [False]

    def write(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[: len(data) // 2] if full[0] else data)

    monkeypatch.setattr(os, "write", write)

    def switch(on: bool) -> None:
        full[0] = on

    return switch


def test_a_full_disk_is_said_once_and_nothing_is_missing_afterwards(
    tmp_path: Path, refusing_disk: Callable[[bool], None]
) -> None:
    told: list[str] = []
    log = SessionLog(tmp_path / "log.jsonl", told.append)
    log.append("a", {})
    refusing_disk(True)
    log.append("b", {})
    log.append("c", {})
    whole = read_log(log.path.read_bytes())
    assert ([r.type for r in whole.records], whole.torn_tail) == (["a"], b"")
    refusing_disk(False)
    log.append("d", {})
    log.close()
    found = read_log(log.path.read_bytes())
    assert [r.type for r in found.records] == ["a", "b", "c", "d"]
    assert found.problems == ()
    assert ["not being saved" in told[0], "saved again" in told[1]] == [True, True]
    assert len(told) == 2


def test_an_unwritable_folder_does_not_end_the_session(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "file").write_text("")
    log = SessionLog(tmp_path / "file" / "log.jsonl", told.append)
    log.append("a", {})
    log.append("b", {})
    log.close()
    assert len(told) == 1


def test_a_changed_byte_is_noticed() -> None:
    line = encode(Record(1, "user_text", {"texts": ["hello"]}))
    assert len(read_log(line).records) == 1
    assert read_log(line.replace(b"hello", b"jello")).bad_lines == 1


def test_sessions_are_listed_newest_first_and_found_by_the_beginning_of_their_id(
    tmp_path: Path,
) -> None:
    store = SessionStore(tmp_path / "sessions")
    for number, name in enumerate(("first", "second")):
        session = store.create(tmp_path / name)
        Conversation(session.record_change).add_user_text(f"prompt of {name}")
        session.close()
        os.utime(session.log.path, (number, number))
    assert [s.first_prompt for s in store.list()] == ["prompt of second", "prompt of first"]
    assert [s.first_prompt for s in store.list(tmp_path / "first")] == ["prompt of first"]
    wanted = store.list()[0]
    assert store.find(wanted.id) == wanted
    with pytest.raises(SessionError, match="no session"):
        store.find("zzz")
    with pytest.raises(SessionError, match="2 sessions"):
        store.find("2")


def test_a_broken_file_is_listed_as_such_and_does_not_hide_the_others(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    Conversation(session.record_change).add_user_text("good")
    session.close()
    (tmp_path / "broken.jsonl").write_bytes(b"\x00\x00garbage")
    assert {s.id: s.damaged for s in store.list()} == {session.id: False, "broken": True}
    assert store.latest(tmp_path).id == session.id
