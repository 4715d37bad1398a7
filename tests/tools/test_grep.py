"""Grep beyond the corpus: bounds, errors, what is left out, cancellation, which ripgrep runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.permission.access import PathAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    Tool,
    ToolContext,
    ToolResult,
)
from midturn_tools._ripgrep import RipgrepInfo, find_ripgrep
from midturn_tools._search import SEARCH_SECONDS, FindRipgrep
from midturn_tools.grep import GrepTool
from tests.support.services import require
from tests.support.tool_context import make_tool_context


def no_ripgrep(_: Path) -> RipgrepInfo | None:
    return None


@pytest.fixture(params=["ripgrep", "own"])
def find(request: pytest.FixtureRequest) -> FindRipgrep:
    if request.param == "own":
        return no_ripgrep
    require("rg")
    return find_ripgrep


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


async def grep(
    where: ToolContext, pattern: str, find: FindRipgrep = find_ripgrep, **more: JsonValue
) -> ToolResult:
    tool, tool_input = GrepTool(find), {"pattern": pattern, **more}
    tool.validate(tool_input)
    return await tool.run(tool_input, where)


def test_the_declarations_are_those_of_the_specification() -> None:
    tool: Tool = GrepTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.CONCURRENT_SAFE
    assert tool.get_interrupt_behavior() is InterruptBehavior.COOPERATIVE
    assert tool.time_limit({"pattern": "x"}) is None


@pytest.mark.parametrize(
    "tool_input",
    [
        {},
        {"pattern": ""},
        {"pattern": "a\0b"},
        {"pattern": "\ud800"},
        {"pattern": "x", "path": ""},
        {"pattern": "x", "path": "a\0"},
        {"pattern": "x", "glob": "[a"},
        {"pattern": "x", "glob": "{a"},
        {"pattern": "x", "mode": "lines"},
        {"pattern": "x", "context": -1},
        {"pattern": "x", "head_limit": 0},
        {"pattern": "x", "-i": True},
    ],
)
def test_a_bad_input_is_refused_with_the_reason(tool_input: JsonObject) -> None:
    """MB-0510: an empty pattern."""
    with pytest.raises(InvalidInputError, match="pattern|path|glob|mode|context|head_limit|-i"):
        GrepTool().validate(tool_input)


def test_a_call_is_described_on_one_line() -> None:
    shown = GrepTool().describe({"pattern": "a\nb", "path": "src", "glob": "*.py"})
    assert shown == "a\\nb in src (*.py)"


def test_access_is_reading_the_folder_that_the_path_leads_to(context: ToolContext) -> None:
    (context.workspace / "real").mkdir()
    (context.workspace / "link").symlink_to("real")
    assert GrepTool().access({"pattern": "x", "path": "link"}, context) == (
        PathAccess(context.workspace / "link", context.workspace / "real", writes=False),
    )
    assert GrepTool().access({"pattern": "x"}, context) == (
        PathAccess(context.workspace, context.workspace, writes=False),
    )


async def test_what_was_left_out_is_said_and_can_be_had(
    context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0502: and MB-0501 for the whole folder."""
    (context.workspace / ".gitignore").write_text("*.log\n")
    for name in (".env", "app.log", "a.txt"):
        (context.workspace / name).write_text("MARK\n")
    result = await grep(context, "MARK", find, mode="files")
    assert (result.output or "").split("\n") == [
        "1 file:",
        "a.txt",
        "[Hidden and ignored files were left out (hidden: true, ignored: true include them).]",
    ]
    result = await grep(context, "MARK", find, mode="files", hidden=True, ignored=True)
    assert result.output == "3 files:\n.env\na.txt\napp.log"


async def test_a_glob_never_opens_what_is_hidden_or_ignored(
    context: ToolContext, find: FindRipgrep
) -> None:
    (context.workspace / ".gitignore").write_text("*.log\n")
    (context.workspace / "logs").mkdir()
    for name in (".env", "app.log", "a.txt", "logs/b.txt"):
        (context.workspace / name).write_text("MARK\n")
    for glob, files in (
        ("*", "a.txt logs/b.txt"),
        ("*.log", ""),
        ("**/*.txt", "a.txt logs/b.txt"),
        ("/*.txt", "a.txt"),
        ("logs/**", "logs/b.txt"),
        ("*.{txt,log}", "a.txt logs/b.txt"),
        ("!a.*", "logs/b.txt"),
    ):
        result = await grep(context, "MARK", find, mode="files", glob=glob)
        lines = (result.output or "").split("\n")[1:]
        assert [line for line in lines if not line.startswith("[")] == files.split(), glob


async def test_a_folder_that_is_named_is_searched_though_hidden(
    context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0501, MB-0512: a file that is named too."""
    folder = context.workspace / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text("runs-on: x\n")
    (context.workspace / ".config").write_text("some text\n")
    result = await grep(context, "runs-on", find, path=".github")
    assert ".github/workflows/ci.yml\n1:runs-on: x" in (result.output or "")
    assert "1:some text" in ((await grep(context, "some", find, path=".config")).output or "")


async def test_a_linked_folder_that_is_named_is_searched_under_its_name(
    context: ToolContext, tmp_path_factory: pytest.TempPathFactory, find: FindRipgrep
) -> None:
    outside = tmp_path_factory.mktemp("lib")
    (outside / "a.py").write_text("needle\n")
    (context.workspace / "lib").symlink_to(outside)
    result = await grep(context, "needle", find, path="lib")
    assert "lib/a.py\n1:needle" in (result.output or "")


async def test_a_cycle_of_links_ends(context: ToolContext, find: FindRipgrep) -> None:
    """MB-0508."""
    folder = context.workspace / "d"
    folder.mkdir()
    (folder / "up").symlink_to("..")
    (folder / "self").symlink_to(".")
    (folder / "f").write_text("x\n")
    result = await grep(context, "x", find, mode="files")
    assert (result.output or "").startswith("1 file:\nd/f\n")


async def test_a_pattern_that_begins_with_a_dash_is_a_pattern(
    context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0505."""
    (context.workspace / "f").write_text("--flag\n-x\n")
    assert "1:--flag" in ((await grep(context, "--flag", find)).output or "")
    assert "2:-x" in ((await grep(context, "-x", find)).output or "")


@pytest.mark.parametrize("pattern", ["foo(", "[", "*", "(?P<n"])
async def test_a_bad_pattern_is_an_error_that_says_where(
    pattern: str, context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0510."""
    (context.workspace / "f").write_text("x\n")
    result = await grep(context, pattern, find)
    assert (result.error or "").startswith("regex parse error:")
    assert "^" in (result.error or "")


async def test_long_lines_are_cut_around_the_match(context: ToolContext, find: FindRipgrep) -> None:
    """MB-0504."""
    (context.workspace / "f").write_text(f"before\n{'a' * 3000}needle{'b' * 2000}\nafter\n")
    result = await grep(context, "needle", find, context=1)
    line = next(line for line in (result.output or "").split("\n") if line.startswith("2:"))
    assert "needle" in line and len(line) < 600
    assert "[2,900 characters before]" in line and "[1,706 characters after]" in line


async def test_of_a_line_beyond_all_bounds_the_place_is_still_told(
    context: ToolContext, find: FindRipgrep
) -> None:
    (context.workspace / "f").write_text("\n" + "a" * 20_000_000 + "needle\n")
    output = (await grep(context, "needle", find)).output or ""
    assert "f\n2:aaa" in output and "a line of about 20,000," in output


@pytest.mark.parametrize("position", [0.0, 0.5, 1.0])
async def test_a_line_of_megabytes_costs_little(
    position: float, context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0503."""
    left = int(5_000_000 * position)
    line = '"' * left + "needle" + '"' * (5_000_000 - left)
    (context.workspace / "app.min.js").write_text(f"\n{line}")
    result = await grep(context, "needle", find)
    output = result.output or ""
    assert "app.min.js\n2:" in output and len(output) < 1_500
    assert "needle" in output and "a line of about" in output


async def test_a_search_in_a_notebook_shows_no_picture(
    context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0418: all of it on one line."""
    cells = [{"source": "import os", "outputs": [{"data": {"image/png": "iVBO" * 175_000}}]}]
    (context.workspace / "nb.ipynb").write_text(json.dumps({"cells": cells}))
    output = (await grep(context, "import", find, path="nb.ipynb")).output or ""
    assert "import os" in output and len(output) < 1_500


async def test_many_matches_in_a_line_of_megabytes_cost_little(context: ToolContext) -> None:
    require("rg")
    (context.workspace / "app.min.js").write_text("var a;" * 500_000)
    output = (await grep(context, "var")).output or ""
    assert "var a;var a;" in output and len(output) < 1_500


async def test_the_whole_result_is_bounded(context: ToolContext, find: FindRipgrep) -> None:
    for number in range(20):
        (context.workspace / f"f{number:02}").write_text(f"{'row ' * 90}\n" * 500)
    output = (await grep(context, "row", find, head_limit=2000)).output or ""
    assert "CUT at 40,000 characters" in output and "MORE lines match" in output
    assert len(output) < 41_000


async def test_the_limit_takes_the_first_in_path_order(
    context: ToolContext, find: FindRipgrep
) -> None:
    for name in ("b", "a.x", "c", "a/z"):
        (context.workspace / name).parent.mkdir(exist_ok=True)
        (context.workspace / name).write_text("row\n" * 3000)
    result = await grep(context, "row", find, head_limit=2)
    assert "a/z\n1:row\n2:row\n[MORE lines match" in (result.output or "")
    assert (result.output or "").startswith("The first 2 matching lines in 1 file; there are more:")
    result = await grep(context, "row", find, mode="count", head_limit=2)
    assert "12,000 matching lines in 4 files:\na/z:3000\na.x:3000\n[Only the first 2" in (
        result.output or ""
    )


async def test_the_same_request_gives_the_same_answer(context: ToolContext) -> None:
    require("rg")
    for number in range(60):
        (context.workspace / f"{number:02}").write_text("row\n" * 10)
    answers = {(await grep(context, "row", head_limit=50)).output for _ in range(5)}
    assert len(answers) == 1


async def test_a_missing_path_names_what_is_near(context: ToolContext, find: FindRipgrep) -> None:
    (context.workspace / "source").mkdir()
    result = await grep(context, "x", find, path="sourec")
    assert result.error == "File not found: sourec. Did you mean source?"


async def test_a_pipe_is_refused(context: ToolContext, find: FindRipgrep) -> None:
    os.mkfifo(context.workspace / "pipe")
    result = await grep(context, "x", find, path="pipe")
    assert "a pipe, socket or device" in (result.error or "")
    assert (await grep(context, "x", find)).summary == "no matches"


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator reads everything")
async def test_an_unreadable_file_is_said(context: ToolContext, find: FindRipgrep) -> None:
    (context.workspace / "a").write_text("x\n")
    (context.workspace / "b").write_text("x\n")
    (context.workspace / "b").chmod(0)
    assert "Could not be read: " in ((await grep(context, "x", find)).output or "")


async def test_a_backtracking_pattern_neither_hangs_nor_stops_the_loop(
    context: ToolContext,
) -> None:
    """MB-0509."""
    (context.workspace / "f").write_text("a" * 40 + "!\n")
    tool = GrepTool(no_ripgrep, seconds=1.0)
    call = asyncio.create_task(tool.run({"pattern": "(a+)+$"}, context))
    ticks = 0
    while not call.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert "ended after 1 s" in ((await call).error or "")
    assert ticks > 20


async def test_an_interrupt_ends_a_search(tmp_path: Path) -> None:
    source = SignalSource()
    context = make_tool_context(tmp_path, signal=source)
    (tmp_path / "f").write_text("a" * 40 + "!\n")
    started = time.monotonic()
    call = asyncio.create_task(grep(context, "(a+)+$", no_ripgrep))
    asyncio.get_running_loop().call_later(0.1, source.trip, CancelReason.INTERRUPT)
    result = await call
    assert result.stopped
    assert time.monotonic() - started < SEARCH_SECONDS


async def test_parallel_searches_do_not_mix(context: ToolContext, find: FindRipgrep) -> None:
    for word in ("one", "two", "three", "four"):
        (context.workspace / word).write_text(f"{word} word\n" * 50)
    tool = GrepTool(find)
    words = ["one", "two", "three", "four"] * 2
    results = await asyncio.gather(*(tool.run({"pattern": word}, context) for word in words))
    for word, result in zip(words, results, strict=True):
        assert (result.output or "").startswith(f"50 matching lines in 1 file:\n\n{word}\n")


def test_a_ripgrep_of_the_workspace_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "rg"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin:.:{fake.parent}:{os.environ['PATH']}")
    found = find_ripgrep(tmp_path.resolve())
    assert found is None or not found.path.is_relative_to(tmp_path)
    assert find_ripgrep(Path("/nowhere")) == RipgrepInfo(fake, "search path")


def test_the_version_of_ripgrep_can_be_asked() -> None:
    found = find_ripgrep(Path("/nowhere"))
    require("rg")
    assert found is not None and found.version().startswith("ripgrep ")


async def test_a_ripgrep_that_cannot_start_is_replaced_by_our_own(context: ToolContext) -> None:
    broken = context.workspace / "rg"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    (context.workspace / "f").write_text("needle\n")
    result = await grep(context, "needle", lambda _: RipgrepInfo(broken, "test"))
    assert "f\n1:needle" in (result.output or "")


def test_the_tools_load_without_what_only_our_own_search_needs() -> None:
    script = (
        "import sys, midturn_tools.grep, midturn_tools.glob; sys.exit('pathspec' in sys.modules)"
    )
    path = os.pathsep.join(str(Path(__file__).parents[2] / part) for part in ("core", "tools"))
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


@pytest.mark.parametrize("mode", ["content", "files", "count"])
async def test_a_file_that_a_rule_closes_is_not_searched(tmp_path: Path, mode: str) -> None:
    (tmp_path / "open.txt").write_text("needle\n")
    (tmp_path / "closed.txt").write_text("needle\n")

    def closed(path: Path, _: object) -> bool:
        return path.name == "closed.txt"

    context = replace(make_tool_context(tmp_path), withholds=closed)
    result = await GrepTool().run({"pattern": "needle", "mode": mode}, context)
    assert result.output is not None
    assert "open.txt" in result.output
    assert "closed" not in result.output
