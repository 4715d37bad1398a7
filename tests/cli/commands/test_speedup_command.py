"""/speedup: what the session's batches took, both ways, with every estimate marked (S4.2, S4.3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from midturn_cli.ui_events import CommandTable
from midturn_core.model.messages import ToolUse
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

ON = "[parallel]\nenabled = true\n"


def reads(step: int, count: int) -> list[ToolUse]:
    return [use(f"{step}-{n}", "Read", {"file_path": "a"}) for n in range(count)]


def table(kit: SessionKit) -> CommandTable:
    return kit.of(CommandTable)[-1]


async def test_there_is_nothing_to_compare_before_the_first_batch(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/speedup")
        assert "nothing to compare" in kit.said
        assert kit.of(CommandTable) == []


async def test_calls_are_counted_by_tool_and_estimates_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    mixed = calls(*reads(2, 1), use("t", "TodoWrite", {"todos": []}))
    model = ScriptedModel(calls(*reads(1, 3)), mixed, text("done"))
    async with open_session(make_launch(tmp_path, ON, demo=False), lambda _: model) as kit:
        await kit.run("go")
        await kit.run("/speedup")
        rows = {row[0]: row[1:] for row in table(kit).rows}
        footer = table(kit).footer
    assert "5 calls in 2 batches; 1 of the 2 with several calls ran together." in kit.said
    assert "Running calls together saved" in kit.said
    assert {name: row[0] for name, row in rows.items()} == {
        "Read": "4",
        "TodoWrite": "1",
        "all tools": "5",
        "with the model ~": "5",
    }
    # Each call beyond the first of its batch: 2 + 1; the prefix of a request is 100 tokens.
    assert "~ an estimate: 3 requests to the model spared" in footer
    assert "300 tok not sent again" in footer


@pytest.mark.parametrize("switched_on", [False, True], ids=["still off", "on by now"])
async def test_while_off_it_tells_what_together_would_have_saved(
    tmp_path: Path, *, switched_on: bool
) -> None:
    (tmp_path / "a").write_text("a\n")
    model = ScriptedModel(calls(*reads(1, 3)), text("done"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("go")
        if switched_on:
            await kit.run("/parallel on")
        await kit.run("/speedup")
        said = kit.said
    found = re.search(
        r"1 batch that only the switch held back would have taken \S+ less together(.*)\.", said
    )
    assert found is not None
    assert found[1] == ("" if switched_on else ": /parallel on")
    assert "Running calls together saved" not in said


async def test_it_takes_no_arguments(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/speedup all")
        assert "/speedup takes nothing after it" in kit.errors[0]
