"""The wired session: one READ_FILES for all its steps, and nothing left of it at its end."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from midturn_cli.launch import SessionStart
from midturn_core.model.messages import ToolUse, ToolUseResult, UserMessage
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import make_launch, open_session

RULES = '[permissions]\nallow = ["Edit"]\n[parallel]\nenabled = true\n'


def results_of(model: ScriptedModel, request: int) -> list[ToolUseResult]:
    last = model.requests[request].messages[-1]
    assert isinstance(last, UserMessage)
    return [block for block in last.blocks if isinstance(block, ToolUseResult)]


def edit(identifier: str, name: str) -> ToolUse:
    change = {"file_path": name, "old_string": "old", "new_string": "new"}
    return ToolUse(identifier, "Edit", {**change})


async def test_what_was_read_in_one_step_or_turn_can_be_edited_in_a_later_one(
    tmp_path: Path,
) -> None:
    for name in ("a", "b", "unread"):
        (tmp_path / name).write_text("old\n")
    reads = [use(name, "Read", {"file_path": name}) for name in ("a", "b")]
    model = ScriptedModel(
        calls(*reads),
        calls(edit("e1", "a"), edit("e2", "unread")),
        text("one"),
        calls(edit("e3", "b")),
        text("two"),
    )
    async with open_session(make_launch(tmp_path, RULES, demo=False), lambda _: model) as kit:
        await kit.run("go")
        await kit.run("go on")
    done, refused = results_of(model, 2)
    assert not done.is_error
    assert refused.is_error and "read" in refused.content.lower()
    assert not results_of(model, 4)[0].is_error
    written = [(tmp_path / name).read_text() for name in ("a", "b", "unread")]
    assert written == ["new\n", "new\n", "old\n"]


async def test_what_was_read_before_the_end_can_be_edited_after_a_resume(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old\n")
    launch = make_launch(tmp_path, RULES, demo=False)
    reading = ScriptedModel(calls(use("r", "Read", {"file_path": "a"})), text("read"))
    async with open_session(launch, lambda _: reading) as kit:
        await kit.run("read it")
    editing = ScriptedModel(calls(edit("e", "a")), text("done"))
    resumed = replace(launch, session=SessionStart.LATEST)
    async with open_session(resumed, lambda _: editing) as kit:
        await kit.run("edit it")
    assert not results_of(editing, 1)[0].is_error
    assert (tmp_path / "a").read_text() == "new\n"


async def test_sessions_that_come_and_go_leave_no_worker(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    before = set(threading.enumerate())
    reads = [use(str(n), "Read", {"file_path": "a"}) for n in range(3)]
    launch = make_launch(tmp_path, RULES, demo=False)
    for _ in range(5):
        async with open_session(
            launch, lambda _: ScriptedModel(calls(*reads), text("done"))
        ) as kit:
            await kit.run("go")
            assert kit.engine.dispatcher.workers > 0
            dispatcher = kit.engine.dispatcher
        assert dispatcher.closed
        left = [thread.name for thread in set(threading.enumerate()) - before]
        assert [name for name in left if name.startswith("tool-")] == []
