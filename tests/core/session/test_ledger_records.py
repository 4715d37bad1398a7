"""The ledger in the session's log: written, read again as it was, and what a damaged log says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.batches import ToolBatches
from midturn_core.conversation import Conversation
from midturn_core.dispatch.runner import BatchSignals
from midturn_core.errors import SessionError
from midturn_core.interrupt import CancelReason
from midturn_core.ledger.check import verify
from midturn_core.ledger.entries import (
    THIS_RUN,
    LedgerBatch,
    LedgerCall,
    LedgerLimits,
    content_hash,
)
from midturn_core.model.messages import JsonObject, Outcome, TextBlock, ToolUse
from midturn_core.session.evidence import read_evidence
from midturn_core.session.ledger_codec import batch_from_json, batch_to_json
from midturn_core.session.log import SessionLog
from midturn_core.session.records import Record, encode, read_log
from midturn_core.session.store import Session, SessionStore
from tests.core.dispatch.kit import CONTEXT, Bench, safe, uses_of, writer


class Talk:
    """A session whose model asks for batches, run by the real dispatcher."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = SessionStore(folder)
        self.session = self.store.create(folder)
        self.bench = Bench(safe("Read"), writer("Edit"))
        self.conversation = Conversation(self.session.record_change)
        self._asked = 0

    @property
    def path(self) -> Path:
        return self.session.log.path

    async def batch(self, *names: str) -> None:
        bench, conversation = self.bench, self.conversation
        batches = ToolBatches(
            CONTEXT,
            bench.registry,
            bench.dispatcher,
            bench.runner,
            bench.emit,
            self.session.record_batch,
        )
        self._asked += 1
        uses = [replace(use, id=f"{use.id}-of-{self._asked}") for use in uses_of(*names)]
        conversation.add_user_text("go on")
        message = conversation.add_assistant([TextBlock("so"), *uses])
        assert message is not None
        signals = BatchSignals.under(bench.turn)
        outcome = await batches.run(message.tool_uses, self._asked, signals)
        conversation.add_results(outcome.results)

    def rewrite(self, change: Callable[[Record], Record | None]) -> None:
        """Falsify the log with right checksums."""
        records = read_log(self.path.read_bytes()).records
        changed = [new for record in records if (new := change(record)) is not None]
        self.path.write_bytes(b"".join(map(encode, changed)))

    def problems(self) -> list[str]:
        evidence = read_evidence(self.path)
        found = verify(evidence.changes, evidence.ledger)
        return [*evidence.damage, *(problem.text for problem in found.problems)]


async def test_what_the_dispatcher_did_is_read_again_and_verified(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read", "Read")
    await talk.batch("Read", "Edit")
    await talk.batch("Read", "Reed")
    first, second, third = read_evidence(talk.path).ledger
    assert [call.name for call in first.calls] == ["Read"] * 3
    assert first.parallel and all(call.pooled for call in first.calls)
    assert not second.parallel and second.deciding_call == 1
    assert (first.run, first.context_id, second.step) == (THIS_RUN, str(CONTEXT), 2)
    assert third.calls[1].started is None
    assert talk.problems() == []


def test_an_entry_comes_back_as_it_was() -> None:
    call = LedgerCall("t1", "Read", Outcome.TIMED_OUT, content_hash("x"), 1.5, 2.25, True)
    marked = replace(call, early=True, retried=True, abandoned=True, pooled=False)
    never = LedgerCall("t2", "Edit", Outcome.DENIED, content_hash("lone \udcff"))
    entry = LedgerBatch(
        "b", "s/main", 3, "run-1", LedgerLimits(4, 2, 3), (call, marked, never), (range(2),)
    )
    assert batch_from_json(batch_to_json(entry)) == entry


async def test_the_ledger_goes_on_after_a_resume(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read")
    talk.session.close()
    resumed = talk.store.resume(talk.store.latest(tmp_path), tmp_path)
    assert resumed.warnings == ()
    talk.session = resumed.session
    talk.conversation = Conversation(talk.session.record_change)
    talk.conversation.replay(resumed.changes)
    await talk.batch("Edit")
    assert len(read_evidence(talk.path).ledger) == 2
    assert talk.problems() == []


async def test_what_is_set_aside_keeps_its_ledger(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read")
    kept = talk.store.find(talk.store.set_aside(talk.session))
    talk.conversation = Conversation(talk.session.record_change)
    await talk.batch("Edit")
    assert [len(batch.calls) for batch in read_evidence(kept.path).ledger] == [2]
    assert [len(batch.calls) for batch in read_evidence(talk.path).ledger] == [1]
    assert talk.problems() == []


async def test_a_crash_between_batch_and_history_leaves_nothing_to_complain_of(
    tmp_path: Path,
) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read")
    talk.session.close()
    talk.rewrite(lambda record: None if record.type == "results" else record)
    evidence = read_evidence(talk.path)
    assert verify(evidence.changes, evidence.ledger).open == 2
    talk.store.resume(talk.store.latest(tmp_path), tmp_path).session.close()
    evidence = read_evidence(talk.path)
    found = verify(evidence.changes, evidence.ledger)
    assert (found.problems, found.closed, evidence.damage) == ((), 2, ())


async def test_an_interrupted_batch_verifies(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.bench.turn.trip(CancelReason.INTERRUPT)
    await asyncio.wait_for(talk.batch("Read", "Read"), 20)
    assert talk.problems() == []


def drop(seq: int) -> Callable[[Record], Record | None]:
    return lambda record: None if record.seq == seq else record


def with_data(kind: str, **data: object) -> Callable[[Record], Record]:
    def change(record: Record) -> Record:
        if record.type != kind:
            return record
        changed: JsonObject = {**record.data, **data}  # type: ignore[dict-item]  # JSON in each test
        return replace(record, data=changed)

    return change


async def test_a_record_that_was_cut_out_is_missed(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read")
    await talk.batch("Edit")
    kinds = [record.type for record in read_log(talk.path.read_bytes()).records]
    talk.rewrite(drop(kinds.index("batch") + 1))
    assert talk.problems() == ["Records are missing: 4."]


async def test_a_line_that_was_edited_is_told(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read", "Read")
    content = talk.path.read_bytes()
    talk.path.write_bytes(content.replace(b"output of call-1", b"output of call-9"))
    assert "The file is damaged: 1 unreadable line(s) skipped." in talk.problems()


async def test_a_result_with_a_right_checksum_is_still_not_the_calls(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read")

    def nicer(record: Record) -> Record:
        if record.type != "results":
            return record
        (result,) = _results(record)
        return replace(record, data={"results": [{**result, "content": "nicer"}], "texts": []})

    talk.rewrite(nicer)
    (problem,) = talk.problems()
    assert "call 1 (Read): the result in the history is not the one" in problem


def _results(record: Record) -> list[JsonObject]:
    found = record.data["results"]
    assert isinstance(found, list)
    return [result for result in found if isinstance(result, dict)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"calls": 7}, "calls is not a list"),
        ({"calls": [7]}, "a call is not an object"),
        ({"calls": [{"id": "a", "name": "b", "outcome": "odd"}]}, "is not a valid Outcome"),
        ({"segments": [7]}, "a segment is not two numbers"),
        ({"limits": {}}, "max_concurrency is not a whole number"),
        ({"run": None}, "run is not a text"),
        ({"cause": "odd"}, "is not a valid SequentialCause"),
        ({"context": "nowhere"}, "not a context id"),
    ],
)
async def test_an_entry_that_cannot_be_used_is_told(
    tmp_path: Path, data: dict[str, object], why: str
) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read")
    talk.rewrite(with_data("batch", **data))
    (problem,) = talk.problems()
    assert problem.startswith("Record 4 (batch) cannot be used: ")
    assert why in problem


def test_a_log_without_a_record_is_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for content in (b"", b"not a log\n"):
        path.write_bytes(content)
        with pytest.raises(SessionError, match="there is no record in it"):
            read_evidence(path)
    with pytest.raises(SessionError, match="cannot read the session"):
        read_evidence(tmp_path / "missing.jsonl")


async def test_an_open_session_can_be_verified(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.batch("Read")
    with pytest.raises(SessionError, match="another Midturn"):
        SessionLog.check(talk.path)
    assert talk.problems() == []


def test_calls_that_never_came_to_a_batch_need_no_ledger(tmp_path: Path) -> None:
    session: Session = SessionStore(tmp_path).create(tmp_path)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("hi")
    conversation.add_assistant([TextBlock("hello"), ToolUse("t1", "Read")])
    conversation.close_pending("stopped: the program is closing", Outcome.STOPPED)
    evidence = read_evidence(session.log.path)
    found = verify(evidence.changes, evidence.ledger)
    assert (found.problems, found.closed, evidence.damage) == ((), 1, ())
