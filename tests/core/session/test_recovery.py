"""A damaged session log opens again, keeps what is whole, and says what was lost."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from midturn_core.conversation import Conversation
from midturn_core.errors import SessionError
from midturn_core.model.messages import (
    Message,
    Outcome,
    TextBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
)
from midturn_core.session import log as log_module
from midturn_core.session.log import REPAIRED, SessionLog, damaged_copy
from midturn_core.session.records import Record, encode, read_log
from midturn_core.session.store import Resumed, SessionStore

CORPUS = Path(__file__).parents[2] / "corpora" / "session_recovery.json"
TURNS = 20
# Queued inputs are not in the log: the durable queue has a store of its own.
NOT_IN_THE_LOG = {"sr-33", "sr-35"}
CASES: list[dict[str, Any]] = [
    case for case in json.loads(CORPUS.read_text())["cases"] if case["id"] not in NOT_IN_THE_LOG
]


class GoodLog:
    """A log that the product itself wrote: Korean text, escapes, three parallel calls a turn."""

    def __init__(self, folder: Path, turns: int = TURNS) -> None:
        self.store = SessionStore(folder)
        self.workspace = folder / "project"
        session = self.store.create(self.workspace)
        self.conversation = Conversation(session.record_change)
        for turn in range(turns):
            self.add_turn(self.conversation, turn)
        session.close()
        self.path = session.log.path

    @staticmethod
    def add_turn(conversation: Conversation, turn: int) -> None:
        conversation.add_user_text(f'질문 {turn}: 파일을 읽어 주세요 "\\n"')
        uses = [ToolUse(f"call-{turn}-{n}", "Read", {"file": f"파일{n}"}) for n in range(3)]
        conversation.add_assistant([TextBlock("읽겠습니다"), *uses])
        conversation.add_results(
            [ToolUseResult(u.id, u.name, Outcome.SUCCEEDED, "내용\t끝") for u in uses]
        )
        conversation.add_assistant([TextBlock(f'답 {turn}: 끝났습니다 "\\t"')])

    @property
    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    def records(self) -> list[Record]:
        return list(read_log(self.path.read_bytes()).records)

    def open(self) -> Resumed:
        [summary] = self.store.list()
        return self.store.resume(summary, self.workspace)


def seqs(content: bytes) -> list[int]:
    """Of the records of the history; what was said of a repair is none of it."""
    return [record.seq for record in read_log(content).records if record.type != REPAIRED]


def cut_last_bytes(log: GoodLog, op: dict[str, Any]) -> None:
    log.path.write_bytes(log.path.read_bytes()[: -op["n"]])


def cut_in_last_record(log: GoodLog, op: dict[str, Any]) -> None:
    lines = log.lines
    last = lines[-1]
    at = {
        "first_byte": 1,
        "inside_utf8_character": last.index("끝".encode()) + 1,
        "inside_escape": last.index(b"\\") + 1,
    }[op["at"]]
    log.path.write_bytes(b"".join(lines[:-1]) + last[:at])


def append_record_without_repair(log: GoodLog, _: dict[str, Any]) -> None:
    record = Record(1000, "user_text", {"texts": ["glued"]})
    with log.path.open("ab") as file:
        file.write(encode(record))


def line_index(log: GoodLog, name: str) -> int:
    lines = log.lines
    return {"first": 0, "middle": len(lines) // 2, "last": len(lines) - 1}[name]


def replace_line(log: GoodLog, op: dict[str, Any]) -> None:
    lines = log.lines
    lines[line_index(log, op["line"])] = base64.b64decode(op["with_b64"]) + b"\n"
    log.path.write_bytes(b"".join(lines))


def insert_line(log: GoodLog, op: dict[str, Any]) -> None:
    lines = log.lines
    lines.insert(line_index(log, op["line"]), base64.b64decode(op["with_b64"]) + b"\n")
    log.path.write_bytes(b"".join(lines))


def repeat_line(log: GoodLog, op: dict[str, Any]) -> None:
    lines = log.lines
    index = line_index(log, op["line"])
    log.path.write_bytes(b"".join([*lines[: index + 1], lines[index], *lines[index + 1 :]]))


def append_b64(log: GoodLog, op: dict[str, Any]) -> None:
    with log.path.open("ab") as file:
        file.write(base64.b64decode(op["b64"]))


def truncate_to(log: GoodLog, op: dict[str, Any]) -> None:
    os.truncate(log.path, op["n"])


def drop_line(log: GoodLog, _: dict[str, Any]) -> None:
    lines = log.lines
    index = max(i for i, line in enumerate(lines) if b'"type":"results"' in line)
    del lines[index]
    log.path.write_bytes(b"".join(lines))


def cut_after(log: GoodLog, op: dict[str, Any]) -> None:
    lines = log.lines
    index = max(i for i, line in enumerate(lines) if b"tool_use" in line and b"blocks" in line)
    kept = lines[: index + 1]
    if op["line"] == "one_of_three_tool_results":
        whole = read_log(lines[index + 1]).records[0]
        results = whole.data["results"]
        assert isinstance(results, list)
        kept.append(encode(Record(whole.seq, "results", {"results": results[:1], "texts": []})))
    log.path.write_bytes(b"".join(kept))


def swap_lines(log: GoodLog, _: dict[str, Any]) -> None:
    *head, first, second = log.lines
    log.path.write_bytes(b"".join([*head, second, first]))


def set_field(log: GoodLog, op: dict[str, Any]) -> None:
    first, *rest = log.lines
    log.path.write_bytes(first.replace(b'"v":1', b'"v":%d' % op["value"]) + b"".join(rest))


def add_field_everywhere(log: GoodLog, op: dict[str, Any]) -> None:
    extra = f',"{op["field"]}":{op["value"]}}}\n'.encode()
    log.path.write_bytes(b"".join(line[:-2] + extra for line in log.lines))


def grow_to_mb(log: GoodLog, op: dict[str, Any]) -> None:
    seq, size = len(log.lines) + 1, log.path.stat().st_size
    with log.path.open("ab") as file:
        while size < op["mb"] * 1_000_000:
            for change in ("user_text", "assistant"):
                text = "긴 글 " * 3000
                block = {"type": "text", "text": text}
                data = {"texts": [text]} if change == "user_text" else {"blocks": [block]}
                size += file.write(encode(Record(seq, change, data)))  # type: ignore[arg-type]
                seq += 1


def insert_line_of_mb(log: GoodLog, op: dict[str, Any]) -> None:
    text = "x" * (op["mb"] * 1_000_000)
    with log.path.open("ab") as file:
        file.write(encode(Record(len(log.lines) + 1, "user_text", {"texts": [text]})))


def chmod(log: GoodLog, op: dict[str, Any]) -> None:
    log.path.chmod(op["mode"])


def convert_line_ends_to_crlf(log: GoodLog, _: dict[str, Any]) -> None:
    log.path.write_bytes(log.path.read_bytes().replace(b"\n", b"\r\n"))


OPERATIONS: dict[str, Callable[[GoodLog, dict[str, Any]], None]] = {
    function.__name__: function
    for function in (
        cut_last_bytes,
        cut_in_last_record,
        append_record_without_repair,
        replace_line,
        insert_line,
        repeat_line,
        append_b64,
        truncate_to,
        drop_line,
        cut_after,
        swap_lines,
        set_field,
        add_field_everywhere,
        grow_to_mb,
        insert_line_of_mb,
        chmod,
        convert_line_ends_to_crlf,
    )
}
SWEEP = "cut_in_record"


def expected_seqs(kept: str, log: GoodLog, before: list[int]) -> list[int] | None:
    """The sequence numbers that must be left; None where the case is not about records."""
    middle = before[len(before) // 2]
    return {
        "all": before,
        "all_but_last": before[:-1],
        "all_but_last_plus_appended": [*before[:-1], 1000],
        "none": [],
    }.get(kept, None if kept != "all_but_that" else [s for s in before if s not in (middle,)])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_kind_of_damage(case: dict[str, Any], tmp_path: Path) -> None:
    if case["ops"] and case["ops"][0]["op"] == SWEEP:
        sweep(GoodLog(tmp_path, turns=2))
        return
    log = GoodLog(tmp_path)
    before, expected = seqs(log.path.read_bytes()), case["expected"]
    for op in case["ops"]:
        OPERATIONS[op["op"]](log, op)
    grown = any(op["op"] in ("grow_to_mb", "insert_line_of_mb") for op in case["ops"])
    before = seqs(log.path.read_bytes()) if grown else before
    if case["ops"] and case["ops"][0].get("line") == "first":
        before = [before[0], *before[1:]]
    if expected["kept"] == "refused_unchanged":
        refused(log)
        return
    read_only = case["ops"] and case["ops"][0]["op"] == "chmod"
    damaged, began = log.path.read_bytes(), time.monotonic()
    with as_ordinary_user(tmp_path) if read_only else nullcontext():
        resumed = log.open()
    assert time.monotonic() - began < 60
    assert bool(resumed.warnings) == expected["warn"]
    kept = seqs(log.path.read_bytes())
    if case["id"] == "sr-21":
        assert kept[:-1] == before[1:]  # the last one is a new head
    elif (wanted := expected_seqs(expected["kept"], log, before)) is not None:
        assert kept == wanted
    rewritten = not log.path.read_bytes().startswith(damaged)
    assert not rewritten or damaged_copy(log.path).exists() or damaged in (b"",)
    assert_valid(rebuilt(resumed).messages)
    if not read_only:
        one_more_turn(log, resumed)


@contextmanager
def as_ordinary_user(folder: Path) -> Generator[None, None, None]:
    """Permission bits do not bind root: look at the folder as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    # The group stays root's, so its bits are the ones that count.
    opened = {p: p.stat().st_mode for p in (folder, *folder.parents)}
    for path, mode in opened.items():
        path.chmod(mode | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for path, mode in opened.items():
            path.chmod(mode)


def sweep(log: GoodLog) -> None:
    """Cut at every byte: every whole record before the cut is kept."""
    content = log.path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    for cut in range(len(content)):
        found = read_log(content[:cut])
        whole = sum(end <= cut for end in ends)
        assert len(found.records) in (whole, whole + 1)  # + 1: cut right before a line end
        assert len(found.records) == whole or cut + 1 in ends
    for cut in (*range(len(content) - 300, len(content), 37), 1, 200):
        log.path.write_bytes(content[:cut])
        damaged_copy(log.path).unlink(missing_ok=True)
        resumed = log.open()
        assert_valid(rebuilt(resumed).messages)
        one_more_turn(log, resumed)


def refused(log: GoodLog) -> None:
    content = log.path.read_bytes()
    with pytest.raises(SessionError, match="newer"):
        SessionLog.open(log.path)
    assert log.path.read_bytes() == content


def rebuilt(resumed: Resumed) -> Conversation:
    conversation = Conversation()
    conversation.replay(resumed.changes)
    return conversation


def one_more_turn(log: GoodLog, resumed: Resumed) -> None:
    conversation = Conversation(resumed.session.record_change)
    conversation.replay(resumed.changes)
    if conversation.awaits_model:
        conversation.add_assistant([TextBlock("go on")])
    GoodLog.add_turn(conversation, 999)
    resumed.session.close()
    again = SessionLog.open(log.path)
    again.log.close()
    assert not [warning for warning in again.warnings if "end was cut" in warning]
    assert again.records[-1].type == "assistant"


def assert_valid(messages: tuple[Message, ...]) -> None:
    for index, message in enumerate(messages):
        assert isinstance(message, UserMessage) == (index % 2 == 0)


def test_a_call_that_was_open_when_the_program_died_gets_a_stand_in(tmp_path: Path) -> None:
    log = GoodLog(tmp_path)
    cut_after(log, {"line": "tool_use"})
    conversation = rebuilt(log.open())
    assert conversation.awaits_model
    last = conversation.messages[-1]
    assert isinstance(last, UserMessage)
    assert [b.outcome for b in last.blocks if isinstance(b, ToolUseResult)] == [Outcome.STOPPED] * 3


def test_what_was_mended_at_the_end_is_said_once(tmp_path: Path) -> None:
    log = GoodLog(tmp_path)
    cut_after(log, {"line": "tool_use"})
    first = log.open()
    assert "filled in" in first.warnings[-1]
    first.session.close()
    second = log.open()
    assert second.warnings == ()
    assert rebuilt(second).messages == rebuilt(first).messages


def test_the_real_one_of_three_results_is_kept(tmp_path: Path) -> None:
    log = GoodLog(tmp_path)
    cut_after(log, {"line": "one_of_three_tool_results"})
    last = rebuilt(log.open()).messages[-1]
    assert isinstance(last, UserMessage)
    outcomes = [b.outcome for b in last.blocks if isinstance(b, ToolUseResult)]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.STOPPED, Outcome.STOPPED]


def test_damage_of_lines_is_said_once_and_new_damage_again(tmp_path: Path) -> None:
    """MB-0902."""
    log = GoodLog(tmp_path)
    replace_line(log, {"line": "middle", "with_b64": "AAEC"})
    first = log.open()
    first.session.close()
    assert "1 unreadable line(s) skipped" in first.warnings[0]
    second = log.open()
    second.session.close()
    assert second.warnings == ()
    assert rebuilt(second).messages == rebuilt(first).messages
    append_b64(log, {"b64": "AAEC"})
    third = log.open()
    third.session.close()
    assert third.warnings[0].startswith("The session file was damaged: the torn end was cut off.")


def test_every_damaged_original_is_kept(tmp_path: Path) -> None:
    """MB-0901."""
    log = GoodLog(tmp_path)
    originals: list[bytes] = []
    for number in (1, 2):
        cut_last_bytes(log, {"n": 5})
        originals.append(log.path.read_bytes())
        resumed = log.open()
        resumed.session.close()
        assert damaged_copy(log.path, number).name in resumed.warnings[0]
    assert [damaged_copy(log.path, number).read_bytes() for number in (1, 2)] == originals


def test_without_a_copy_of_it_a_torn_end_stays_and_the_next_record_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GoodLog(tmp_path)
    cut_last_bytes(log, {"n": 5})
    damaged, real = log.path.read_bytes(), os.open

    def without_room(path: Any, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".damaged"):
            raise OSError(28, "No space left on device")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", without_room)
    resumed = log.open()
    assert "No copy of it could be made" in resumed.warnings[0]
    assert log.path.read_bytes().startswith(damaged)
    one_more_turn(log, resumed)


def test_what_is_written_until_the_lock_is_free_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MB-0910: another process ends in the moment in which this one opens its session."""
    log = GoodLog(tmp_path, turns=1)
    other = log.open().session
    conversation = Conversation(other.record_change)
    lock = log_module._lock  # pyright: ignore[reportPrivateUsage] the moment is the subject

    def lock_when_it_is_free(descriptor: int) -> bool:
        conversation.add_user_text("the last word")
        other.close()
        return lock(descriptor)

    monkeypatch.setattr(log_module, "_lock", lock_when_it_is_free)
    resumed = log.open()
    assert resumed.warnings == ()
    assert "the last word" in str(rebuilt(resumed).messages[-1])


def test_a_lost_head_is_written_anew(tmp_path: Path) -> None:
    """MB-0909."""
    log = GoodLog(tmp_path)
    replace_line(log, {"line": "first", "with_b64": "AAEC"})
    [summary] = log.store.list(log.workspace)
    assert (summary.workspace, summary.damaged) == ("", False)
    log.open().session.close()
    [summary] = log.store.list(log.workspace)
    assert summary.workspace == str(log.workspace)
    assert log.store.latest(log.workspace).id == summary.id
