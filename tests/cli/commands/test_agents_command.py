"""/agents: the types of subagents, and what is wrong in the user's files."""

from __future__ import annotations

import os
from pathlib import Path

from midturn_cli.ui_events import CommandTable
from midturn_core import paths
from midturn_core.events import Notice, NoticeLevel
from tests.support.session_kit import SessionKit, make_launch, open_session

REVIEWER = """\
---
name: reviewer
description: Reads a change. Says what is wrong.
tools: Read, Grep
model: small-model
max_steps: 7
---
You review.
"""


def define(name: str, text: str) -> Path:
    file = paths.config_folder(os.environ) / "agents" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def rows(kit: SessionKit) -> dict[str, tuple[str, ...]]:
    [table] = kit.of(CommandTable)
    return {row[0]: row[1:] for row in table.rows}


async def test_it_lists_the_types_with_tools_model_limit_and_place(tmp_path: Path) -> None:
    file = define("reviewer.md", REVIEWER)
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit("/agents")
        listed = rows(kit)
    assert list(listed) == ["general", "explore", "reviewer"]
    assert listed["general"][:4] == ("all but Task", "as the session", "50", "built in")
    assert listed["explore"][0] == "Read, Grep, Glob, WebFetch"
    assert listed["reviewer"] == (
        "Read, Grep",
        "small-model",
        "7",
        str(file),
        "Reads a change.",
    )


async def test_a_broken_file_is_a_warning_at_the_start_and_its_type_is_missing(
    tmp_path: Path,
) -> None:
    file = define("reviewer.md", REVIEWER.replace("max_steps: 7", "max_steps: many"))
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit("/agents")
        warnings = [n.text for n in kit.of(Notice) if n.level is NoticeLevel.WARNING]
        listed = rows(kit)
    assert warnings == [
        f"{file}:6: max_steps is 'many', but must be a whole number from 1 to 100; "
        "the subagent type is left out"
    ]
    assert "reviewer" not in listed


async def test_a_file_in_the_folder_that_one_works_in_defines_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path / "agents", tmp_path / ".midturn" / "agents"):
        folder.mkdir(parents=True)
        (folder / "reviewer.md").write_text(REVIEWER, encoding="utf-8")
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit("/agents")
        assert list(rows(kit)) == ["general", "explore"]
