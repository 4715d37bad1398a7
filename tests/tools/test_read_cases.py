"""Every case of tests/corpora/read_cases.json against Read."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from midturn_core.tool import InvalidInputError, ToolResult
from midturn_tools.read import ReadTool
from tests.support.file_cases import Case, bytes_of, case_id, load_cases, set_up
from tests.support.ordinary_user import case_folder
from tests.support.tool_context import make_tool_context

LINE = re.compile(r" *(\d+)\t(.*)", re.DOTALL)
CUT = re.compile(r" … \[[\d,]+ of ([\d,]+) characters shown\]$")
ERRORS = {
    "bad_argument": "must",
    "binary": "Read shows text only",
    "not_found": "File not found",
    "is_directory": "is a folder",
    "loop": "is a link that leads to itself",
    "permission": "permission denied",
    "not_directory": "must name a file",
}


@dataclass(frozen=True, slots=True)
class CutLine:
    prefix: str
    full_length: int


def _cut_line(text: str, cut: re.Match[str]) -> CutLine:
    return CutLine(text[: cut.start()], int(cut[1].replace(",", "")))


def shown_lines(output: str) -> list[list[object]]:
    """``[number, text]``; for a cut line the text is a ``CutLine``."""
    body, _, _ = output.partition("\n\n[")
    found: list[list[object]] = []
    for row in body.split("\n"):
        match = LINE.fullmatch(row)
        assert match, row[:100]
        cut = CUT.search(match[2])
        text = _cut_line(match[2], cut) if cut else match[2]
        found.append([int(match[1]), text])
    return found


def total_lines(result: ToolResult) -> int:
    return int(result.summary.split(" of ")[-1].split()[0].replace(",", ""))


def matches_text(shown: object, expected: object) -> bool:
    if not isinstance(expected, dict):
        return shown == expected
    wanted = cast(Case, expected)
    return (
        isinstance(shown, CutLine)
        and shown.full_length == wanted["full_length"]
        and shown.prefix == wanted.get("prefix", shown.prefix)
    )


def answers_with_lines(result: ToolResult, expected: Case) -> bool:
    assert result.output is not None
    if expected.get("note") == "empty":
        return result.output == "[The file is empty.]"
    if expected.get("note") == "past_end":
        return f"past the end: the file has {expected['total_lines']} line" in result.output
    lines = shown_lines(result.output)
    same = total_lines(result) == expected["total_lines"]
    same = same and ("More follow at offset" in result.output) == expected["more_follows"]
    same = same and ("not valid UTF-8" in result.output) == expected.get("lossy", False)
    if "encoding" in expected:
        same = same and f"encoded as {expected['encoding']}" in result.output
    if "lines" in expected:
        pairs = expected["lines"]
        return (
            same
            and len(lines) == len(pairs)
            and all(
                shown[0] == number and matches_text(shown[1], text)
                for shown, (number, text) in zip(lines, pairs, strict=True)
            )
        )
    ends = [lines[0], lines[-1], len(lines)]
    return same and ends == [expected["first"], expected["last"], expected["count"]]


def fits(outcome: ToolResult | InvalidInputError, expected: Case | str) -> bool:
    error = str(outcome) if isinstance(outcome, InvalidInputError) else outcome.error
    if expected == "any-error":
        return error is not None
    assert not isinstance(expected, str)
    if "error" in expected:
        return error is not None and ERRORS.get(expected["error"], "?") in error
    return (
        isinstance(outcome, ToolResult) and error is None and answers_with_lines(outcome, expected)
    )


async def outcome_of(case: Case, folder: Path) -> ToolResult | InvalidInputError:
    content = bytes_of(case, "content")
    if content is not None:
        (folder / "file.txt").write_bytes(content)
    del content
    set_up(case.get("setup", ()), folder)
    tool = ReadTool(tuple(filter(None, [case.get("fallback_encoding")])))
    arguments = {"file_path": "file.txt"} | case["args"]
    if "path" in arguments:
        arguments["file_path"] = arguments.pop("path")
    try:
        tool.validate(arguments)
    except InvalidInputError as error:
        return error
    tracemalloc.start()
    try:
        result = await tool.run(arguments, make_tool_context(folder))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < case.get("max_rss_mb", 100) * 1_000_000
    return result


@pytest.mark.parametrize("case", load_cases("read_cases.json"), ids=case_id)
async def test_read_answers_as_the_case_says(case: Case) -> None:
    with case_folder(ordinary_user=case["expected"] == {"error": "permission"}) as folder:
        outcome = await outcome_of(case, folder)
    accepted = [case["expected"], *case.get("also_ok", ())]
    assert any(fits(outcome, expected) for expected in accepted), (case["reason"], outcome)
