"""/why: each of the six causes by the real dispatcher, and what each call took (S1.51)."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_cli.batch_history import KEPT_BATCHES, BatchHistory
from midturn_cli.commands.why_command import BAR_CELLS, bar
from midturn_cli.engine import Engine, ModelMaker
from midturn_cli.ui_events import CommandTable
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.report import build_report
from midturn_core.dispatch.types import BatchReport, GateVerdict, SequentialCause
from midturn_core.events import BatchFinished, BatchStarted, SubagentEvent
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.client import ModelClient
from midturn_core.model.messages import JsonObject, ToolUse
from midturn_core.tool import InterruptBehavior, ToolRegistry
from tests.core.dispatch.kit import Latch, ProbeTool
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

ON = "[parallel]\nenabled = true\n"
READ: JsonObject = {"file_path": "a"}
THREADED = ProbeTool("Threaded", interrupt=InterruptBehavior.THREAD_INTERRUPT)

ALONE = GateVerdict(parallel=False, cause=SequentialCause.SINGLE_CALL)
TODO = use("2", "TodoWrite", {"todos": []})
CAUSES: list[tuple[SequentialCause, str, tuple[ToolUse, ...], str]] = [
    (SequentialCause.DISABLED, "", (use("1", "Read", READ), use("2", "Read", READ)), "on with /p"),
    (SequentialCause.SINGLE_CALL, ON, (use("1", "Read", READ),), "asked for one call only"),
    (
        SequentialCause.SEQUENTIAL_TOOL,
        ON,
        (use("1", "Read", READ), TODO),
        "TodoWrite (call 2) may change something",
    ),
    (
        SequentialCause.INTERRUPT_BEHAVIOR,
        ON,
        (use("1", "Threaded"), use("2", "Read", READ)),
        "Threaded (call 1) can only be stopped from outside",
    ),
    (
        SequentialCause.UNKNOWN_TOOL,
        ON,
        (use("1", "Read", READ), use("2", "Raed", READ)),
        "no tool named Raed (call 2); /tools lists",
    ),
    (
        SequentialCause.CLOSED,
        ON,
        (use("1", "Read", READ), use("2", "Read", READ)),
        "the dispatcher is closed; start Midturn again",
    ),
]


def with_tools(model: ScriptedModel, *tools: ProbeTool) -> ModelMaker:
    """The scripted model, for an engine that has these tools besides its own."""

    def make(engine: Engine) -> ModelClient:
        engine.registry = ToolRegistry([*engine.tools.all(), *tools])
        return model

    return make


def newest_table(kit: SessionKit) -> CommandTable:
    return kit.of(CommandTable)[-1]


@pytest.mark.parametrize(
    ("cause", "toml", "uses", "words"), CAUSES, ids=[case[0].value for case in CAUSES]
)
async def test_why_tells_each_cause_and_what_to_change(
    cause: SequentialCause, toml: str, uses: tuple[ToolUse, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("a\n")
    model = ScriptedModel(calls(*uses), text("done"))
    launch = make_launch(tmp_path, toml, demo=False)
    async with open_session(launch, with_tools(model, THREADED)) as kit:
        if cause is SequentialCause.CLOSED:
            await kit.engine.dispatcher.close()
        await kit.run("go")
        [finished] = kit.of(BatchFinished)
        assert (finished.report.verdict.parallel, finished.report.verdict.cause) == (False, cause)
        await kit.run("/why")
    assert words in kit.said
    assert kit.errors == []


async def test_why_tells_that_calls_ran_together_and_what_each_took(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    batch = calls(use("1", "Read", READ), use("2", "Read", {"file_path": "missing"}))
    model = ScriptedModel(batch, text("done"))
    async with open_session(make_launch(tmp_path, ON, demo=False), lambda _: model) as kit:
        await kit.run("go")
        await kit.run("/why")
        table = newest_table(kit)
    assert "These calls run together" in kit.said
    assert table.title == "Batch 1 of this session, step 1: 2 calls"
    assert [row[:3] for row in table.rows] == [
        ("1/2", "Read: a", "✓"),
        ("2/2", "Read: missing", "✗ failed"),
    ]
    assert all(row[3].startswith("+") and row[4].endswith("ms") for row in table.rows)
    assert {len(row[5]) for row in table.rows} == {BAR_CELLS}
    assert table.footer.startswith("took ") and "together" in table.footer


async def test_older_batches_are_counted_from_the_newest(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    one = calls(use("1", "Read", READ))
    two = calls(use("2", "Glob", {"pattern": "*"}), TODO)
    model = ScriptedModel(one, two, text("done"))
    async with open_session(make_launch(tmp_path, ON, demo=False), lambda _: model) as kit:
        await kit.run("/why")
        assert "no tool has run in this session" in kit.errors[0]
        await kit.run("go")
        await kit.run("/why")
        assert newest_table(kit).title.startswith("Batch 2 of this session, step 2")
        assert "/why 2 explains the batch before" in newest_table(kit).footer
        await kit.run("/why 2")
        assert newest_table(kit).title.startswith("Batch 1 of this session, step 1")
        await kit.run("/why 3")
        assert "no batch number 3: counted from the newest 2 are kept" in kit.errors[1]
        await kit.run("/why none")
        assert "(example: /why 2)" in kit.errors[2]


async def test_a_batch_is_explained_while_it_runs(tmp_path: Path) -> None:
    latch = Latch()
    model = ScriptedModel(calls(use("1", "Wait"), TODO), text("done"))
    make = with_tools(model, ProbeTool("Wait", latch))
    async with open_session(make_launch(tmp_path, ON, demo=False), make) as kit:
        kit.submit("go")
        await latch.until_inside(1)
        kit.submit("/why")
        table = newest_table(kit)
        assert "TodoWrite (call 2) may change something" in kit.said
        assert table.title.endswith("2 calls, still running")
        assert [row[2] for row in table.rows] == ["…", "…"]
        latch.open()
        await kit.wait_idle()


def test_a_task_is_explained_after_what_was_done_for_it() -> None:
    history = BatchHistory()
    sub = AgentRuntimeId("session", "sub-1")
    task, inner = BatchStarted("task", 1, 1, ALONE), BatchStarted("inner", 1, 1, ALONE)
    history.observe(task)
    history.observe(SubagentEvent(sub, "use", inner))
    assert [(b.number, b.agent) for b in history.newest_first] == [(2, "sub-1"), (1, "main")]
    history.observe(SubagentEvent(sub, "use", BatchFinished(report_of("inner"))))
    history.observe(BatchFinished(report_of("task")))
    assert [(b.number, b.agent) for b in history.newest_first] == [(1, "main"), (2, "sub-1")]


def report_of(batch_id: str) -> BatchReport:
    return build_report(batch_id, ALONE, [], ToolConcurrencyConfig())


def test_the_oldest_batches_give_way() -> None:
    history = BatchHistory()
    for number in range(KEPT_BATCHES + 5):
        history.observe(BatchStarted(f"batch-{number}", 1, 1, ALONE))
        history.observe(BatchFinished(report_of(f"batch-{number}")))
    kept = [batch.number for batch in history.newest_first]
    assert kept == list(range(KEPT_BATCHES + 5, 5, -1))


def test_a_bar_shows_when_in_its_batch_a_call_ran() -> None:
    assert bar(0.0, 1.0, 2.0) == "━" * 5 + "·" * 5
    assert bar(1.0, 1.0, 2.0) == "·" * 5 + "━" * 5
    assert bar(2.0, 0.0, 2.0) == "·" * 9 + "━"
    assert bar(0.0, 0.0, 0.0) == "━" * 10
