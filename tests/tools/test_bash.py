"""Bash: what comes back, what persists, and what becomes of everything a command starts."""

from __future__ import annotations

import asyncio
import os
import re
import tracemalloc
from collections.abc import Generator
from pathlib import Path

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonObject, OutputDetail
from midturn_core.permission.access import CommandAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    Tool,
    ToolContext,
    ToolResult,
)
from midturn_tools._process_guard import kill_session, session_members
from midturn_tools.bash import BashTool
from tests.support.processes import until, until_session_is_empty
from tests.support.services import require
from tests.support.tool_context import make_tool_context


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


async def run(
    command: str, context: ToolContext, bash: BashTool | None = None, limit: int = 60
) -> ToolResult:
    tool = bash or BashTool()
    tool_input: JsonObject = {"command": command, "timeout": limit}
    tool.validate(tool_input)
    return await tool.run(tool_input, context)


def session_in(text: str) -> int:
    """The session of a command that echoed ``$$``."""
    found = re.search(r"\d+", text)
    assert found is not None
    return int(found[0])


def test_the_declarations_are_those_of_the_specification() -> None:
    tool: Tool = BashTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.SEQUENTIAL
    assert tool.get_interrupt_behavior() is InterruptBehavior.EXTERNALLY_TERMINATED
    assert (tool.time_limit({"command": "x"}) or 0) > 120
    assert (tool.time_limit({"command": "x", "timeout": 600}) or 0) > 600


@pytest.mark.parametrize(
    "tool_input",
    [
        {},
        {"command": ""},
        {"command": " \n"},
        {"command": "a\0b"},
        {"command": "x\udc80"},
        {"command": "x", "timeout": 0},
        {"command": "x", "timeout": 601},
        {"command": "x", "cwd": "/"},
        {"command": "x" * 100_001},
    ],
)
def test_a_bad_input_is_refused_with_the_reason(tool_input: JsonObject) -> None:
    with pytest.raises(InvalidInputError, match="command|timeout|cwd"):
        BashTool().validate(tool_input)


def test_a_command_is_described_on_one_line() -> None:
    assert "\n" not in BashTool().describe({"command": "cd x\nmake\n"})


async def test_both_outputs_come_back_in_order(context: ToolContext) -> None:
    result = await run("echo one; echo two >&2; echo three", context)
    assert (result.output, result.error) == ("one\ntwo\nthree", None)
    assert result.detail == OutputDetail(("one", "two", "three"), 3)


async def test_no_output_is_said(context: ToolContext) -> None:
    assert (await run("true", context)).output == "(no output)"


async def test_a_failure_carries_exit_code_and_output(context: ToolContext) -> None:
    result = await run("echo broken; exit 3", context)
    assert result.error == "Exit code 3.\nbroken"


async def test_errors_of_the_shell_name_the_line_of_the_command(context: ToolContext) -> None:
    result = await run("true\nno-such-program-here", context)
    assert "line 2: no-such-program-here" in (result.error or "")
    result = await run("echo (", context)
    assert "syntax error" in (result.error or "")
    assert "trap" not in (result.error or "")


async def test_a_killed_shell_is_an_error(context: ToolContext) -> None:
    assert (await run("kill -9 $$", context)).error == (
        "The shell was ended by signal 9.\n(no output)"
    )


async def test_the_folder_persists_and_variables_do_not(context: ToolContext) -> None:
    """MB-0710: as the description says."""
    (context.workspace / "sub").mkdir()
    bash = BashTool()
    first = await run("export MARK=1; alias x=y; cd sub; exit 0", context, bash)
    assert "current folder is now sub" in (first.output or "")
    second = await run("pwd; echo [$MARK]", context, bash)
    assert second.output == f"{context.workspace / 'sub'}\n[]"


async def test_a_failing_command_keeps_its_folder_too(context: ToolContext) -> None:
    (context.workspace / "sub").mkdir()
    bash = BashTool()
    await run("set -e; cd sub; false; cd /", context, bash)
    assert (await run("pwd", context, bash)).output == str(context.workspace / "sub")


async def test_each_context_has_a_folder_of_its_own(context: ToolContext) -> None:
    bash = BashTool()
    await run("cd /", context, bash)
    other = make_tool_context(context.workspace, context_id=AgentRuntimeId("session-test", "sub-1"))
    assert (await run("pwd", other, bash)).output == str(context.workspace)


async def test_a_deleted_folder_is_left_and_that_is_said(context: ToolContext) -> None:
    bash = BashTool()
    await run("mkdir w && cd w", context, bash)
    await run("rm -rf ../w", context, bash)
    result = await run("echo hi; pwd", context, bash)
    assert (result.output or "").startswith(f"hi\n{context.workspace}\n[The folder ")
    assert "is gone" in (result.output or "")
    assert (await run("pwd", context, bash)).output == str(context.workspace)


async def test_a_command_that_deletes_its_own_folder_leaves_a_way_out(
    context: ToolContext,
) -> None:
    """MB-0709."""
    bash = BashTool()
    await run("mkdir w && cd w && rm -rf ../w", context, bash)
    assert "hi" in ((await run("echo hi", context, bash)).output or "")
    assert ((await run("cd / && pwd", context, bash)).output or "").startswith("/\n")


async def test_the_command_runs_where_the_permission_was_asked(context: ToolContext) -> None:
    bash = BashTool()
    accesses = bash.access({"command": "pwd"}, context)
    assert accesses == (CommandAccess("pwd", context.workspace),)
    await run("cd /", context, bash)
    assert bash.access({"command": "pwd"}, context) == (CommandAccess("pwd", Path("/")),)


@pytest.fixture
def open_input() -> Generator[None]:
    """An input of this program that never ends, as a terminal's."""
    reader, writer = os.pipe()
    usual = os.dup(0)
    os.dup2(reader, 0)
    yield
    os.dup2(usual, 0)
    for descriptor in (usual, reader, writer):
        os.close(descriptor)


@pytest.mark.usefixtures("open_input")
@pytest.mark.parametrize(
    "command", ["cat", "read x; echo got:$x", "python3 -c 'input()'", "head -c1 </dev/tty"]
)
async def test_whatever_asks_finds_nobody(command: str, context: ToolContext) -> None:
    """MB-0705, MB-0706, MB-0707."""
    result = await run(command, context, limit=20)
    assert result.summary in ("exit 0", "exit 1")


async def test_bytes_that_are_no_text_are_replaced(context: ToolContext) -> None:
    """MB-0708."""
    require("iconv")
    assert (await run("printf 안녕 | iconv -t cp949", context)).error is None
    result = await run(r"printf '\xf0\xff ok\n\0'", context)
    assert "\ufffd ok" in (result.output or "")
    assert "\0" not in (result.output or "")
    assert (await run("head -c 2000 /bin/sh", context)).error is None


async def test_long_output_keeps_head_and_tail_and_says_what_is_missing(
    context: ToolContext,
) -> None:
    """MB-0713."""
    result = await run("seq 1 1000000", context)
    output = result.output or ""
    assert output.startswith("1\n2\n") and output.endswith("\n1000000")
    gap = re.search(r"\[\.\.\. ([\d,]+) bytes \(([\d,]+) lines\) left out \.\.\.\]", output)
    assert gap is not None
    lines = int(gap[2].replace(",", ""))
    assert lines + output.count("\n") == 1_000_000
    assert len(output) < 32_000
    assert isinstance(result.detail, OutputDetail) and result.detail.lines_total == 1_000_000


@pytest.mark.parametrize("command", ["yes", "cat /dev/zero"])
async def test_endless_output_is_bounded(command: str, context: ToolContext) -> None:
    """MB-0713."""
    tracemalloc.start()
    try:
        result = await run(command, context, limit=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(result.error or "") < 32_000
    assert peak < 20_000_000


async def test_the_time_limit_ends_the_tree_and_keeps_the_output(context: ToolContext) -> None:
    """MB-0703, MB-0704."""
    result = await run(
        "echo $$; bash -c 'bash -c \"sleep 300\" & wait' & timeout 300 sleep 300; touch late",
        context,
        limit=1,
    )
    assert (result.error or "").startswith("The command was ended after 1 s, its time limit")
    assert session_members(session_in((result.error or "").partition("then:")[2])) == ()
    assert not (context.workspace / "late").exists()


async def test_an_interrupt_stops_the_command_and_keeps_the_output(tmp_path: Path) -> None:
    source, notes = SignalSource(), list[str]()
    context = make_tool_context(tmp_path, signal=source, progress=notes.append)
    call = asyncio.create_task(run("echo $$; sleep 300 & sleep 300", context))
    await until(lambda: bool(notes), "the first line is on screen")
    source.trip(CancelReason.INTERRUPT)
    result = await call
    assert result.stopped and result.error is None
    assert (result.output or "").endswith("[The command and all it had started were ended.]")
    assert session_members(session_in(notes[0])) == ()


async def test_the_newest_line_is_told_while_the_command_runs(tmp_path: Path) -> None:
    source, notes = SignalSource(), list[str]()
    context = make_tool_context(tmp_path, signal=source, progress=notes.append)
    call = asyncio.create_task(run("echo working; sleep 300", context))
    await until(lambda: notes == ["working"], "the line is on screen")
    source.trip(CancelReason.INTERRUPT)
    await call


async def test_a_background_job_outlives_the_call_and_that_is_said(context: ToolContext) -> None:
    """MB-0701."""
    bash = BashTool()
    result = await run("echo $$; sleep 300 & echo started", context, bash)
    session = session_in(result.output or "")
    try:
        (job,) = session_members(session)
        assert f"Still running in the background: process {job}." in (result.output or "")
        await run("echo next", context, bash)
        assert session_members(session) == (job,)
        await run(f"kill {job}", context, bash)
        await until_session_is_empty(session)
    finally:
        kill_session(session)


async def test_a_chatty_background_job_does_not_hold_the_call(context: ToolContext) -> None:
    """MB-0702."""
    result = await run(
        "echo $$; (while :; do echo x; sleep .01; done) & sleep 0.3; echo fg-done", context
    )
    session = session_in(result.output or "")
    assert len(session_members(session)) >= 1
    kill_session(session)
    assert "fg-done" in (result.output or "")


async def test_secrets_and_start_files_stay_out(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MB-0714."""
    secrets = ("ANTHROPIC_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MY_SECRET")
    for name in (*secrets, "MIDTURN_MODEL_NAME"):
        monkeypatch.setenv(name, "hidden-value")
    start = context.workspace / "start.sh"
    start.write_text("echo from-start-file\n")
    monkeypatch.setenv("BASH_ENV", str(start))
    monkeypatch.setenv("BASH_FUNC_echo%%", "() { builtin echo fake; }")
    monkeypatch.setenv("PLAIN", "stays")
    output = (await run("env; echo done", context)).output or ""
    assert "hidden-value" not in output
    assert "PLAIN=stays" in output
    assert "from-start-file" not in output and "fake" not in output
    assert "BASH_ENV" not in output and "MIDTURN" not in output


@pytest.mark.parametrize("editor", ["vi", None])
async def test_git_never_waits_for_an_editor(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, editor: str | None
) -> None:
    """MB-0711."""
    require("git")
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.setenv(name, editor) if editor else monkeypatch.delenv(name, raising=False)
    bash = BashTool()
    identity = "git config user.name T && git config user.email t@example.org"
    await run(f"git init -q . && {identity}", context, bash)
    await run("for i in 1 2 3; do echo $i >f; git add f; git commit -qm $i; done", context, bash)
    before = await run("git log --oneline", context, bash)
    await run("echo 4 >f; git add f", context, bash)
    assert (await run("git commit", context, bash)).error is not None
    await run("git stash -q", context, bash)
    assert (await run("git rebase -i HEAD~2", context, bash)).error is not None
    assert (await run("git log --oneline", context, bash)).output == before.output


async def test_a_bash_of_the_workspace_is_never_used(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = context.workspace / "bash"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{context.workspace}:{os.environ['PATH']}")
    monkeypatch.chdir(context.workspace)
    assert (await run("builtin echo real", context)).output == "real"
