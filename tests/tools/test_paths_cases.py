"""The cases of tests/corpora/path_rules.json that end in an error or in a race, against the tools."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.model.messages import JsonObject
from midturn_core.tool import InvalidInputError, Tool
from midturn_tools.edit import EditTool
from midturn_tools.read import ReadTool
from midturn_tools.write import WriteTool
from tests.support.file_cases import Case, case_id, generated, load_cases
from tests.support.tool_context import make_tool_context

TOOLS: dict[str, Tool] = {"Read": ReadTool(), "Edit": EditTool(), "Write": WriteTool()}


def set_up(steps: Sequence[Case], base: Path) -> None:
    for step in steps:
        path = Path(step["path"].replace("{base}", str(base)))
        path.parent.mkdir(parents=True, exist_ok=True)
        match step["op"]:
            case "file":
                path.write_text(step["text"])
                path.chmod(step.get("mode", 0o644))
            case "dir":
                path.mkdir(exist_ok=True)
            case "symlink":
                path.symlink_to(step["to"].replace("{base}", str(base)))
            case "fifo":
                os.mkfifo(path)
            case "socket":
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(os.path.relpath(path))
            case "chmod":
                path.chmod(step["mode"])
            case "unlink":
                path.unlink()
            case "rmtree":
                shutil.rmtree(path)
            case other:
                raise AssertionError(f"unknown step {other}")


def tool_input(case: Case) -> JsonObject:
    path = generated(case["path_gen"]) if "path_gen" in case else case["path"]
    more = {
        "Read": dict[str, str](),
        "Edit": {"old_string": "x", "new_string": "changed"},
        "Write": {"content": "changed"},
    }
    return {"file_path": path, **more[case["tool"]]}


def cases(verdict: str) -> list[Case]:
    return [case for case in load_cases("path_rules.json") if case["expected"] == verdict]


@pytest.mark.parametrize("case", cases("error"), ids=case_id)
async def test_a_path_that_cannot_be_used_is_an_error_at_once(case: Case, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    set_up(case["setup"], tmp_path)
    tool, given = TOOLS[case["tool"]], tool_input(case)
    try:
        tool.validate(given)
        result = await tool.run(given, make_tool_context(repository))
    except InvalidInputError:
        return
    assert result.error or "allow" in case.get("also_ok", ()), result


@pytest.mark.parametrize("case", cases("never-outside"), ids=case_id)
async def test_a_link_swapped_in_after_the_permission_opens_nothing_outside(
    case: Case, tmp_path: Path
) -> None:
    set_up(case["setup"], tmp_path)
    tool, given = TOOLS[case["tool"]], tool_input(case)
    context = make_tool_context(tmp_path / "repo")
    await TOOLS["Read"].run({"file_path": case["path"]}, context)
    permitted = replace(context, accesses=tool.access(given, context))
    (tmp_path / "outside/secret.txt").write_text("x TOPSECRET\n")
    set_up(case["after_check"], tmp_path)
    result = await tool.run(given, permitted)
    assert "TOPSECRET" not in f"{result.output}{result.error}"
    assert (tmp_path / "outside/secret.txt").read_text() == "x TOPSECRET\n"
