"""What happens between the shell's prompt and the first line that is taken."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.support.live_midturn import COMMAND, GLYPH, LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment

SCRIPT = "import sys\nfrom midturn_cli.main import main\nsys.exit(main())\n"
"""What an installer writes as the command."""
SLOW = ("anthropic", "pydantic", "httpx", "httpx2", "mcp", "typer", "tomlkit", "rich")
FIRST_FRAME = b"\x1b[?2026h"


def folder_of_a_namesake(folder: Path) -> Path:
    """A project whose packages are called like our folders, and which must not be imported."""
    for name in ("core", "cli", "tools", "tests", "midturn_core"):
        package = folder / name if name != "midturn_core" else folder / "src" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise ImportError('the project was imported')\n")
    (folder / "midturn.py").write_text("raise ImportError('the project was imported')\n")
    return folder


def test_a_project_with_packages_of_our_names_is_worked_on_and_never_imported(
    tmp_path: Path,
) -> None:
    project = folder_of_a_namesake(tmp_path / "project")
    script = tmp_path / "midturn"
    script.write_text(SCRIPT, encoding="utf-8")
    path = midturn_environment()["PYTHONPATH"]
    start = Start(
        command=(sys.executable, str(script)),
        arguments=("--allow", "Bash(ls core)"),
        environ={"PYTHONPATH": f".{os.pathsep}{path}"},
    )
    with (
        MessagesServer(
            Reply(
                Calls("Read", {"file_path": "midturn.py"}),
                Calls("Grep", {"pattern": "imported"}),
                Calls("Glob", {"pattern": "**/__init__.py"}),
            ),
            Reply(Calls("Bash", {"command": "ls core"})),
            Reply(Says("It has four packages.")),
        ) as server,
        live_midturn(server, project, start) as live,
    ):
        live.enter("look around")
        live.see("It has four packages")
        results = [*server.requests[1].results, *server.requests[2].results]
    read, grep, glob, bash = (str(result["content"]) for result in results)
    assert "the project was imported" in read
    assert "midturn.py" in grep
    assert "core/__init__.py" in glob
    assert "__init__.py" in bash
    assert not any(result.get("is_error") for result in results)


def test_nothing_slow_is_loaded_before_the_first_frame(tmp_path: Path) -> None:
    environ = midturn_environment(ANTHROPIC_API_KEY="key")
    start = Start(command=(sys.executable, "-X", "importtime", *COMMAND[1:]), cols=200)
    with LiveMidturn(tmp_path, start, environ) as live:
        live.see(rf"^{GLYPH}")
        live.wait(re.escape(FIRST_FRAME.decode()), timeout=30)
    before = bytes(live.log.data).partition(FIRST_FRAME)[0].decode()
    loaded = {name.partition(".")[0] for name in re.findall(r"\| +([\w.]+)\r?$", before, re.M)}
    assert {"prompt_toolkit", "midturn_cli"} <= loaded
    assert loaded.isdisjoint(SLOW)


def test_the_model_is_made_ready_while_the_first_prompt_is_written(tmp_path: Path) -> None:
    """Not for a command: it needs no model."""
    environ = midturn_environment(ANTHROPIC_API_KEY="key")
    start = Start(command=(sys.executable, "-X", "importtime", *COMMAND[1:]), cols=200)
    with LiveMidturn(tmp_path, start, environ) as live:
        live.wait("Type while it works", timeout=30)
        live.send("/mode\r")
        live.wait("Permission modes", timeout=30)
        assert not re.search(rb"\| +anthropic", bytes(live.log.data))
        live.send("h")
        live.wait(r"\| +anthropic", timeout=60)


def test_the_demo_never_loads_what_reaches_the_service(tmp_path: Path) -> None:
    environ = midturn_environment(ANTHROPIC_API_KEY="key")
    command = (sys.executable, "-X", "importtime", *COMMAND[1:])
    with LiveMidturn(tmp_path, Start(["demo"], command=command, cols=200), environ) as live:
        live.wait("A script, no model", timeout=30)
        live.send("count to 3\r")
        live.wait("line 00003", timeout=60)
        assert not re.search(rb"\| +anthropic", bytes(live.log.data))


def test_a_line_entered_as_soon_as_the_prompt_is_there_is_sent(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("The answer."))) as server:
        environ = midturn_environment(**server.environment())
        with LiveMidturn(tmp_path, Start(), environ) as live:
            live.wait(GLYPH, timeout=30)
            live.send("early\r")
            live.see(r"The answer\.")
    assert [request.texts for request in server.requests] == [["early"]]


def test_the_first_prompt_may_come_from_the_command_line(tmp_path: Path) -> None:
    with (
        MessagesServer(Reply(Says("The answer."))) as server,
        live_midturn(server, tmp_path, Start(arguments=("what is it?",))) as live,
    ):
        live.see("❯ what is it\\?")
        live.see(r"The answer\.")
        assert server.requests[0].texts == ["what is it?"]


def test_without_a_key_it_opens_and_names_both_ways_out(tmp_path: Path) -> None:
    environ = midturn_environment(ANTHROPIC_API_KEY="")
    with LiveMidturn(tmp_path, Start(), environ) as live:
        live.see("export ANTHROPIC_API_KEY=")
        live.see("midturn demo")
        live.enter("go")
        live.see("No API key is set")
        live.enter("still here")


def test_the_demo_needs_no_key_and_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the hidden word is plum\n", encoding="utf-8")
    environ = midturn_environment(ANTHROPIC_API_KEY="")
    with LiveMidturn(tmp_path, Start(arguments=("demo",)), environ) as live:
        live.see("DEMO")
        live.enter("read a.txt")
        live.see_anywhere(r"Read.*a\.txt")
        live.see_idle()
        assert "DEMO" in live.shown().screen[-1] or "DEMO" in live.shown().text
        live.see_anywhere("succeeded:")
        live.see_idle()
        live.key("ctrl-d")
        live.see("Go on with this session: midturn demo -r ")
