"""Every case of the Grep corpus, against ripgrep and against our own search.

The expected answers are ripgrep's own, from real runs over the small tree of the corpus.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from midturn_core.model.messages import JsonValue
from midturn_core.tool import ToolResult
from midturn_tools._ripgrep import find_ripgrep
from midturn_tools.grep import GrepTool
from tests.support.services import require
from tests.support.tool_context import make_tool_context

CORPUS = json.loads((Path(__file__).parents[1] / "corpora" / "grep_cases.json").read_text())
NAMES: dict[str, str] = {"no_ignore": "ignored", "case_insensitive": "ignore_case"}
NOT_OURS = {"crlf", "sort"}
"""CRLF is always looked through, results are always in path order."""
NEEDS_LINEAR_TIME = {"gr-049", "gr-050"}
"""A backtracking engine cannot answer these in time; what it does then is tested in test_grep."""

Case = dict[str, Any]


def lay_out(tree: Path, case: Case) -> None:
    tree.mkdir()
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree.parent / "outside.txt").write_text("main outside\n")
    texts = {**CORPUS["meta"]["files"], **case.get("extra_files", {})}
    contents = {name: text.encode() for name, text in texts.items()}
    for name, recipe in case.get("extra_files_gen", {}).items():
        rows = range(1, recipe["rows"] + 1)
        contents[name] = "".join(recipe["template"].format(i=i) for i in rows).encode()
    for name, encoded in CORPUS["meta"]["files_b64"].items():
        contents[name] = base64.b64decode(encoded)
    for name, content in contents.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    for name, target in case.get("links", {}).items():
        (tree / name).symlink_to(target)
    for name, mode in case.get("chmod", {}).items():
        (tree / name).chmod(mode)


def our_input(case: Case) -> dict[str, JsonValue]:
    given: dict[str, JsonValue] = case["args"]
    renamed = {NAMES.get(name, name): value for name, value in given.items()}
    return {name: value for name, value in renamed.items() if name not in NOT_OURS}


def parts(result: ToolResult) -> list[str]:
    """The lines of the result without its heading and its notes."""
    assert result.error is None
    lines = (result.output or "").split("\n")
    if lines[0].startswith("No matches"):
        return []
    return [line for line in lines[1:] if not (line.startswith("[") and line.endswith("]"))]


def content(result: ToolResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    file = ""
    starts = True
    for line in parts(result):
        parsed = re.fullmatch(r"(\d+)([:-])(.*)", line)
        if starts and line:
            file, starts = line, False
        elif not line:
            starts = True
        elif parsed:
            matched = parsed[2] == ":"
            found.append(
                {"file": file, "line": int(parsed[1]), "match": matched, "text": parsed[3]}
            )
    return found


def answer(case: Case, result: ToolResult) -> dict[str, Any]:
    """The result in the words of the corpus."""
    if result.error is not None:
        return {"error": True}
    match case["compare"]:
        case "files" | "files0":
            return {"files": sorted(part.replace("\\n", "\n") for part in parts(result) if part)}
        case "ordered":
            return {"files_in_order": [part for part in parts(result) if part]}
        case "count":
            pairs = (part.rpartition(":") for part in parts(result) if part)
            return {"counts": {file: int(count) for file, _, count in pairs}}
        case "context":
            return {"lines": content(result)}
        case _:
            keys = ("file", "line") if case["compare"] == "linenos" else ("file", "line", "text")
            found = [{key: line[key] for key in keys} for line in content(result)]
            return {"lines": sorted(found, key=lambda line: (line["file"], line["line"]))}


@pytest.mark.parametrize("engine", ["ripgrep", "own"])
@pytest.mark.parametrize("case", CORPUS["cases"], ids=lambda case: str(case["id"]))
async def test_the_answer_is_that_of_ripgrep(case: Case, engine: str, tmp_path: Path) -> None:
    if engine == "ripgrep":
        require("rg")
    elif case["id"] in NEEDS_LINEAR_TIME:
        pytest.skip("a backtracking engine cannot answer this")
    if "chmod" in case and os.geteuid() == 0:
        # The administrator reads everything; the expected list then lacks that file.
        case = {**case, "chmod": {}}
    tree = tmp_path / "tree"
    lay_out(tree, case)
    grep = GrepTool() if engine == "ripgrep" else GrepTool(find=lambda _: None)
    context = make_tool_context(tree)
    assert engine == "own" or find_ripgrep(context.workspace) is not None
    tool_input = our_input(case)
    try:
        grep.validate(tool_input)
        result = await grep.run(tool_input, context)
    except ValueError as refused:
        result = ToolResult(error=str(refused))
    accepted = [case["expected"], *case.get("also_ok", [])]
    given = answer(case, result)
    empty = {"empty": True} if not any(given.values()) else given
    assert given in accepted or empty in accepted, result
    if "truncated" in case:
        assert ("MORE lines match" in (result.output or "")) is case["truncated"]
