"""Glob: which files a pattern means, what is left out, and how much is listed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

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
from midturn_tools._globs import PathFilter, split_folder
from midturn_tools._ripgrep import RipgrepInfo, find_ripgrep
from midturn_tools._search import FindRipgrep
from midturn_tools.glob import GlobTool
from tests.support.services import require
from tests.support.tool_context import make_tool_context

TREE = [
    *("a.py", "b.ts", "src/c.py", "src/d.json", "src/lib/e.py", "src/lib/deep/f.py"),
    *(".env", ".github/g.yml", "node_modules/x/h.py", "build.log"),
]


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
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("node_modules/\n*.log\n")
    return make_tool_context(tmp_path)


async def glob(
    context: ToolContext, pattern: str, find: FindRipgrep = find_ripgrep, **more: JsonValue
) -> ToolResult:
    tool, tool_input = GlobTool(find), {"pattern": pattern, **more}
    tool.validate(tool_input)
    return await tool.run(tool_input, context)


def listed(result: ToolResult) -> list[str]:
    assert result.error is None
    return [line for line in (result.output or "").split("\n")[1:] if not line.startswith("[")]


def test_the_declarations_are_those_of_the_specification() -> None:
    tool: Tool = GlobTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.CONCURRENT_SAFE
    assert tool.get_interrupt_behavior() is InterruptBehavior.COOPERATIVE
    assert tool.time_limit({"pattern": "x"}) is None
    assert tool.describe({"pattern": "*.py\n", "path": "src"}) == "*.py\\n in src"


@pytest.mark.parametrize(
    "tool_input",
    [
        {},
        {"pattern": ""},
        {"pattern": "[a"},
        {"pattern": "!x"},
        {"pattern": "*/../x"},
        {"pattern": "a\0"},
        {"pattern": "x", "path": ""},
        {"pattern": "x", "head_limit": 0},
    ],
)
def test_a_bad_input_is_refused_with_the_reason(tool_input: JsonObject) -> None:
    with pytest.raises(InvalidInputError, match="pattern|path|head_limit"):
        GlobTool().validate(tool_input)


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("**/*.py", "a.py src/c.py src/lib/deep/f.py src/lib/e.py"),
        ("*.py", "a.py src/c.py src/lib/deep/f.py src/lib/e.py"),
        ("./*.py", "a.py"),
        ("src/*", "src/c.py src/d.json"),
        ("src/*.{py,json}", "src/c.py src/d.json"),
        ("src/**", "src/c.py src/d.json src/lib/deep/f.py src/lib/e.py"),
        ("src/", "src/c.py src/d.json src/lib/deep/f.py src/lib/e.py"),
        ("src/**/f.py", "src/lib/deep/f.py"),
        ("src/c.py", "src/c.py"),
        ("c.py", "src/c.py"),
        ("*/*.py", "src/c.py"),
        ("?.[tp][sy]", "a.py b.ts src/c.py src/lib/deep/f.py src/lib/e.py"),
        ("*.PY", ""),
        (".github/*", ".github/g.yml"),
        ("node_modules/**/*.py", "node_modules/x/h.py"),
        ("*.log", ""),
    ],
)
async def test_a_pattern_means_these_files(
    pattern: str, files: str, context: ToolContext, find: FindRipgrep
) -> None:
    assert listed(await glob(context, pattern, find)) == files.split()


async def test_path_is_where_the_pattern_starts(context: ToolContext, find: FindRipgrep) -> None:
    result = await glob(context, "lib/*.py", find, path="src")
    assert listed(result) == ["src/lib/e.py"]
    assert listed(await glob(context, f"{context.workspace}/src/*.py", find)) == ["src/c.py"]


async def test_what_was_left_out_is_said_and_can_be_had(
    context: ToolContext, find: FindRipgrep
) -> None:
    result = await glob(context, "*", find)
    assert "Hidden and ignored files were left out" in (result.output or "")
    (context.workspace / ".git").mkdir()
    (context.workspace / ".git" / "config").write_text("x")
    everything = listed(await glob(context, "*", find, hidden=True, ignored=True))
    assert sorted(everything) == sorted([*TREE, ".gitignore"])


async def test_a_linked_folder_that_is_named_is_followed(
    context: ToolContext, tmp_path_factory: pytest.TempPathFactory, find: FindRipgrep
) -> None:
    """MB-0507."""
    outside = tmp_path_factory.mktemp("lib")
    (outside / "z.py").write_text("x")
    (context.workspace / "linked").symlink_to(outside)
    assert listed(await glob(context, "linked/*.py", find)) == ["linked/z.py"]
    assert "linked/z.py" not in listed(await glob(context, "**/*.py", find))
    assert GlobTool(find).access({"pattern": "linked/*.py"}, context) == (
        PathAccess(context.workspace / "linked", outside.resolve(), writes=False),
    )


async def test_a_cycle_of_links_lists_each_file_once(
    context: ToolContext, find: FindRipgrep
) -> None:
    """MB-0508."""
    (context.workspace / "src" / "up").symlink_to("..")
    (context.workspace / "src" / "self").symlink_to(".")
    files = listed(await glob(context, "**/*", find))
    assert len(files) == len(set(files)) == 6


async def test_a_long_list_is_cut_in_path_order_and_says_so(
    context: ToolContext, find: FindRipgrep
) -> None:
    (context.workspace / "many").mkdir()
    for number in range(300):
        (context.workspace / "many" / f"{number:03}").write_text("")
    result = await glob(context, "many/*", find, head_limit=3)
    assert (result.output or "").startswith("300 files:\nmany/000\nmany/001\nmany/002\n[Only the")
    assert result.summary == "300 files"


async def test_odd_names_are_one_line_each(context: ToolContext, find: FindRipgrep) -> None:
    (context.workspace / "odd").mkdir()
    (context.workspace / "odd" / "a\nb\x1b[31m").write_text("")
    assert listed(await glob(context, "odd/*", find)) == ["odd/a\\nb\\x1b[31m"]


async def test_nothing_found_is_a_normal_result(context: ToolContext, find: FindRipgrep) -> None:
    result = await glob(context, "*.nothing", find)
    assert result.error is None and (result.output or "").startswith("No files match *.nothing")


async def test_a_missing_folder_is_an_error(context: ToolContext, find: FindRipgrep) -> None:
    result = await glob(context, "srcc/*.py", find)
    assert result.error == "File not found: srcc. Did you mean src?"


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.py", "a/b.py", True),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "x/a/b.py", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("*a*ab*c", "aabaabxc", True),
        ("**/*a/b*/**/c*/d", "x/a/b/y/ca/b/z/c/d", True),
        ("**/a/**/a/b", "a/b/a/b", True),
        ("**/{a/b,a}/**/b/c", "a/b/c", True),
        ("**/a/**/b", "b/a", False),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("**", "a/b", True),
        ("{a,b/**}", "b/c", True),
        ("{a,{b,c}}d", "cd", True),
        ("[!a].py", "b.py", True),
        ("[!a].py", "a.py", False),
        ("[]a]", "]", True),
        ("a[/]b", "a/b", False),
        (r"\*.py", "*.py", True),
        (r"\*.py", "a.py", False),
        ("a.py", "a_py", False),
        ("a,b", "a,b", True),
    ],
)
def test_glob_semantics(glob: str, path: str, matches: bool) -> None:
    assert (PathFilter(glob).compiled().fullmatch(path) is not None) is matches


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a*a*a*a*a*b", "a" * 250),
        ("x/**/*a*a*a*a*a*b/**", f"x/{'a' * 250}/y"),
        ("**/a*/**/a*/**/a*/**/a*/**/a*/**/b", "a/" * 120 + "c"),
    ],
)
def test_a_pattern_tries_no_name_in_countless_ways(glob: str, path: str) -> None:
    """As MB-0509: the loop could not be interrupted meanwhile, nor the walk of our own search."""

    def seconds(pattern: str) -> float:
        compiled = PathFilter(pattern).compiled()
        begun = time.process_time()
        assert compiled.fullmatch(path) is None
        return time.process_time() - begun

    assert seconds(glob) < 10_000 * max(seconds("*x*"), 1e-5)


@pytest.mark.parametrize(
    ("glob", "parts"),
    [
        ("src/lib/**/*.py", ("src/lib", "/**/*.py")),
        ("*.py", ("", "*.py")),
        ("main.py", ("", "main.py")),
        ("/etc/*.conf", ("/etc", "/*.conf")),
        ("/*.conf", ("/", "/*.conf")),
        ("src/", ("src/", "")),
        ("{a,b}/c", ("", "{a,b}/c")),
    ],
)
def test_the_plain_folders_of_a_pattern(glob: str, parts: tuple[str, str]) -> None:
    assert split_folder(glob) == parts


@pytest.mark.parametrize(
    ("glob", "depth"),
    [("*.py", None), ("/*.py", 1), ("a/*.py", 2), ("a/**", None), ("{a/b,c}/d", 3), ("!a/b", None)],
)
def test_how_deep_a_pattern_can_reach(glob: str, depth: int | None) -> None:
    assert PathFilter(glob).depth == depth


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("*.py", "*.py"),
        ("src/**/*.py", "*.py"),
        ("src/**", ""),
        ("*", ""),
        ("{src/a,b}", ""),
        ("!*.py", ""),
        ("src/a.{py,js}", "a.{py,js}"),
    ],
)
def test_the_narrowing_name_takes_no_fewer_files(glob: str, name: str) -> None:
    assert PathFilter(glob).name_glob == name
