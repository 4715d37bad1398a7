"""/export: where it writes, what it refuses, and that the session is in it whole."""

from __future__ import annotations

import asyncio
import json
import math
import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.commands.command import CommandError
from midturn_cli.commands.export_command import ExportFormat, read_request
from midturn_cli.export.html_markdown import html_of
from midturn_cli.launch import SessionStart
from midturn_cli.terminal.short_turns import short_turns_for_threads
from midturn_core.conversation import AssistantAdded
from midturn_core.model.messages import AssistantMessage, ToolUseResult, UserMessage
from midturn_core.session.codec import change_from_json, result_to_json
from tests.support.agent_kit import until
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

SESSION_BYTES = 4_000_000
LONG_PART = (
    "## Part {}\n\n"
    + "It reads the **files** and `writes` what was asked for. " * 12
    + "\n\n"
    + "- an item of a list, with `code` in it\n" * 8
    + "\n```python\n"
    + "def name(value: int) -> str:\n    return str(value + 1)  # comment\n" * 12
    + "```\n"
)
PROBE_SECONDS = 0.005


def two_turns() -> ScriptedModel:
    return ScriptedModel(
        calls(use("one", "Read", {"file_path": "a.txt"}), use("two", "Read", {"file_path": "no"})),
        text("# All read\n\nIt says **안녕**."),
        text("second answer"),
    )


async def read_two_files(kit: SessionKit, workspace: Path) -> None:
    (workspace / "a.txt").write_text("안녕, file\n")
    await kit.run("read both")
    await kit.run("and now?")


@pytest.mark.parametrize(
    ("arguments", "file", "wanted", "force"),
    [
        ("", "", ExportFormat.MARKDOWN, False),
        ("a.md", "a.md", ExportFormat.MARKDOWN, False),
        ("A.HTM --force", "A.HTM", ExportFormat.HTML, True),
        ("--format json", "", ExportFormat.JSON, False),
        ("--format=html notes", "notes", ExportFormat.HTML, False),
        ("a.md --format json", "a.md", ExportFormat.JSON, False),
        ('--force "my notes.json"', "my notes.json", ExportFormat.JSON, True),
    ],
)
def test_the_format_is_the_one_named_or_that_of_the_ending(
    arguments: str, file: str, wanted: ExportFormat, force: bool
) -> None:
    request = read_request(arguments)
    assert (request.file, request.format, request.force) == (file, wanted, force)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("notes.txt", "The format of 'notes.txt' is not clear: end it with .md, .markdown, .json"),
        ("--format pdf", "--format takes markdown, json or html, not 'pdf'"),
        ("--format", "--format takes markdown, json or html, not ''"),
        ("--all", "/export does not know '--all': it takes --format and --force"),
        ("my notes.md", "/export takes one file; a name with blanks needs quotes"),
        ('"my notes.md', "/export: a quotation mark is missing"),
    ],
)
def test_a_mistake_is_explained(arguments: str, complaint: str) -> None:
    with pytest.raises(CommandError) as raised:
        read_request(arguments)
    assert str(raised.value).startswith(complaint)


async def test_the_usual_name_has_the_sessions_id_and_is_the_users_alone(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        await kit.run("/export")
        path = tmp_path / f"midturn-{kit.engine.session.id}.md"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert f"Exported to {path}: 6 messages, " in kit.said
        assert "readable by you alone; it holds what the tools have read." in kit.said
        assert sorted(os.listdir(tmp_path)) == ["a.txt", path.name]


async def test_a_file_is_replaced_by_force_alone(tmp_path: Path) -> None:
    target = tmp_path / "notes.md"
    target.write_text("mine")
    async with open_session(make_launch(tmp_path, demo=False), lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        await kit.run("/export notes.md")
        assert kit.errors == [f"Nothing was exported: {target} exists already; --force replaces it"]
        assert target.read_text() == "mine"
        await kit.run("/export notes.md --force")
        assert target.read_text().startswith("# Midturn session ")


async def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        await kit.run("/export out/notes.md")
        assert kit.errors == [f"Nothing was exported: there is no folder {tmp_path / 'out'}"]


async def test_an_empty_session_is_not_exported(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/export")
        assert kit.errors == ["There is nothing to export: the session is empty"]


async def test_json_gives_back_exactly_the_messages(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path, demo=False), lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        await kit.run("/export all.json")
        document = json.loads((tmp_path / "all.json").read_bytes())
        assert (document["format"], document["version"]) == ("midturn-session", 1)
        assert document["session"]["id"] == kit.engine.session.id
        assert document["usage"]["input"] == 300
        messages = kit.engine.conversation.messages
        assert len(document["messages"]) == len(messages)
        for exported, message in zip(document["messages"], messages, strict=True):
            match message:
                case AssistantMessage(blocks):
                    assert change_from_json(
                        "assistant", exported, kit.engine.session.files.find
                    ) == AssistantAdded(blocks)
                case UserMessage(blocks):
                    results = [b for b in blocks if isinstance(b, ToolUseResult)]
                    assert [b for b in exported["blocks"] if b["type"] == "tool_result"] == [
                        {"type": "tool_result", **result_to_json(result)} for result in results
                    ]
        assert document["messages"][0] == {
            "role": "user",
            "blocks": [{"type": "text", "kind": "prompt", "text": "read both"}],
        }


async def test_what_a_compaction_replaced_is_still_exported(tmp_path: Path) -> None:
    model = ScriptedModel(text("the first answer"), text("in short"), text("later"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("before")
        await kit.run("/compact")
        await kit.run("after")
        await kit.run("/export all.json")
        messages = json.loads((tmp_path / "all.json").read_bytes())["messages"]
        said = [(block.get("kind"), block["text"]) for m in messages for block in m["blocks"]]
        assert said[:2] == [("prompt", "before"), (None, "the first answer")]
        assert said[2][0] == "summary" and said[2][1].endswith("in short")
        assert said[3:] == [("prompt", "after"), (None, "later")]
        await kit.run("/export all.md")
        assert "## Summary: from here on" in (tmp_path / "all.md").read_text()


async def test_a_resumed_session_is_exported_from_its_beginning(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        session_id = kit.engine.session.id
    again = replace(launch, session=SessionStart.NAMED, session_id=session_id)
    async with open_session(again, lambda _: ScriptedModel(text("third"))) as kit:
        await kit.run("once more")
        await kit.run("/export all.md")
    shown = (tmp_path / "all.md").read_text()
    positions = [shown.index(part) for part in ("> read both", "안녕, file", "third")]
    assert positions == sorted(positions)


async def test_it_works_while_a_turn_runs(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("and that")) as busy:
        busy.kit.submit("/export now.json")
        await until(lambda: "Exported to" in busy.kit.said)
        assert busy.kit.session.busy
    messages = json.loads((tmp_path / "now.json").read_bytes())["messages"]
    assert [block["text"] for block in messages[0]["blocks"]] == ["start"]


async def test_what_the_disk_refused_to_keep_is_exported_from_memory(
    tmp_path: Path, home: Path
) -> None:
    sessions = home / ".local" / "state" / "midturn" / "sessions"
    sessions.parent.mkdir(parents=True)
    sessions.write_text("no folder can be made here")
    async with open_session(make_launch(tmp_path, demo=False), lambda _: two_turns()) as kit:
        await read_two_files(kit, tmp_path)
        await kit.run("/export all.md")
        assert "What /compact replaced is missing in it" in kit.said
        assert "second answer" in (tmp_path / "all.md").read_text()


@pytest.mark.slow
async def test_a_session_of_four_megabytes_becomes_html_beside_a_live_input_line(
    tmp_path: Path,
) -> None:
    """In this process the conversion of a single answer would hold up a key for longer."""
    answer = "\n".join(LONG_PART.format(number) for number in range(40))
    answers = math.ceil(SESSION_BYTES / len(answer))
    model = ScriptedModel(*(text(answer) for _ in range(answers)))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        for _ in range(answers):
            await kit.run("go on")
        started = time.perf_counter()
        html = html_of(answer)
        one_answer = time.perf_counter() - started
        kit.submit("/export all.html")
        with short_turns_for_threads():
            lags = await lags_until(lambda: "Exported to" in kit.said)
    # Once the machine itself may have been late.
    assert sorted(lags)[-2] < one_answer
    assert (tmp_path / "all.html").read_text().count(html) == answers


async def lags_until(over: Callable[[], bool]) -> list[float]:
    """By how many seconds the loop was late, each time."""
    lags: list[float] = []
    while not over():
        started = time.perf_counter()
        await asyncio.sleep(PROBE_SECONDS)
        lags.append(time.perf_counter() - started - PROBE_SECONDS)
    return lags
