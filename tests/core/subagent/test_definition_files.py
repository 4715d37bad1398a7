"""Subagent types from the user's folder: what is wrong costs one type, and says where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_core.subagent.definition_files import DefinedTypes, read_definitions
from midturn_core.subagent.types import SubagentType

TOOLS = ("Read", "Grep", "Glob", "WebFetch", "Edit", "Bash", "TodoWrite")

REVIEWER = """\
---
name: reviewer
description: Reads a change and says what is wrong.
tools: Read, Grep
model: small-model
max_steps: 12
read_only: true
---
You review changes.
"""


def read_one(folder: Path, text: str, name: str = "a.md") -> DefinedTypes:
    (folder / name).write_text(text, encoding="utf-8")
    return read_definitions(folder, TOOLS)


def test_a_file_defines_a_type(tmp_path: Path) -> None:
    defined = read_one(tmp_path, REVIEWER)
    assert defined.warnings == ()
    assert defined.types.names() == ("general", "explore", "reviewer")
    assert defined.types.get("reviewer") == SubagentType(
        "reviewer",
        "Reads a change and says what is wrong.",
        "You review changes.",
        ("Read", "Grep"),
        read_only=True,
        model="small-model",
        max_steps=12,
        source=str(tmp_path / "a.md"),
    )


def test_a_short_file_gets_every_tool_but_task(tmp_path: Path) -> None:
    defined = read_one(tmp_path, "---\nname: helper\ndescription: Helps.\nmodel: inherit\n---\nDo.")
    kind = defined.types.get("helper")
    assert kind is not None
    assert [kind.has(name) for name in (*TOOLS, "Task")] == [True] * len(TOOLS) + [False]
    assert (kind.model, kind.max_steps, kind.read_only) == ("", 50, False)


def test_a_file_may_take_the_place_of_a_built_in_type(tmp_path: Path) -> None:
    defined = read_one(tmp_path, REVIEWER.replace("name: reviewer", "name: explore"))
    kind = defined.types.get("explore")
    assert kind is not None and kind.instructions == "You review changes."
    assert defined.types.names() == ("general", "explore")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: reviewer", "name: Re viewer", "a.md:2: name is 'Re viewer', but must be like"),
        ("name: reviewer\n", "", "a.md:1: name is missing; write name: ..."),
        ("Reads a change and says what is wrong.", "", "a.md:3: description is missing"),
        ("Read, Grep", "Raed", "a.md:4: there is no tool 'Raed' (did you mean Read?); /tools"),
        ("Read, Grep", "Read, Task", "a.md:4: subagents start no subagents; take Task out"),
        ("Read, Grep", "Read, Bash", "a.md:4: Bash does not only read; read_only allows Read"),
        ("Read, Grep", "mcp__a__b", "a.md:4: mcp__a__b does not only read"),
        ("Read, Grep", "[]", "a.md:4: tools is empty; leave it out for all tools"),
        ("small-model", "[a, b]", "a.md:5: model is a list, but must be one text"),
        ("12", "500", "a.md:6: max_steps is '500', but must be a whole number from 1 to 100"),
        ("12", "0", "a.md:6: max_steps is '0'"),
        ("true", "maybe", "a.md:7: read_only is 'maybe', but must be true or false"),
        ("You review changes.", "", "a.md:1: write below the front matter"),
        ("---\nname", "name", "a.md:1: the first line must be ---"),
    ],
)
def test_a_broken_file_is_left_out_with_its_line_and_what_to_write(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in REVIEWER
    (tmp_path / "b.md").write_text(REVIEWER.replace("reviewer", "other"), encoding="utf-8")
    defined = read_one(tmp_path, REVIEWER.replace(old, new))
    [warning] = defined.warnings
    assert warning.startswith(str(tmp_path)) and said in warning
    assert warning.endswith("; the subagent type is left out")
    assert defined.types.names() == ("general", "explore", "other")


def test_an_unknown_key_is_a_warning_and_the_type_is_there(tmp_path: Path) -> None:
    defined = read_one(tmp_path, REVIEWER.replace("max_steps", "maxsteps"))
    [warning] = defined.warnings
    assert warning.endswith("a.md:6: unknown key maxsteps is ignored (did you mean max_steps?)")
    assert "reviewer" in defined.types.names()


def test_the_second_file_of_a_name_is_left_out(tmp_path: Path) -> None:
    read_one(tmp_path, REVIEWER)
    defined = read_one(tmp_path, REVIEWER, "b.md")
    [warning] = defined.warnings
    assert warning == (
        f"{tmp_path / 'b.md'}: {tmp_path / 'a.md'} defines reviewer too; this one is left out"
    )


def test_what_is_no_readable_text_file_never_hangs_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "bytes.md").write_bytes(b"---\nname: \xff\n---\n")
    (tmp_path / "large.md").write_text(REVIEWER + "x" * 70_000, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no definition", encoding="utf-8")
    defined = read_definitions(tmp_path, TOOLS)
    assert [warning.removeprefix(str(tmp_path))[:12] for warning in defined.warnings] == [
        "/bytes.md:2:",
        "/fifo.md: it",
        "/folder.md: ",
        "/large.md:1:",
    ]


def test_without_the_folder_there_are_the_built_in_types(tmp_path: Path) -> None:
    defined = read_definitions(tmp_path / "missing", TOOLS)
    assert (defined.types.names(), defined.warnings) == (("general", "explore"), ())
