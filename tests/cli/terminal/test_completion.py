from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth

from midturn_cli.terminal import file_index
from midturn_cli.terminal.completion import (
    MAX_MATCHES,
    best_matches,
    command_token,
    file_token,
    quoted,
)
from midturn_cli.terminal.completion_menu import menu_fragments
from midturn_cli.terminal.file_index import FileIndex, gather_files, shallowest
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import TerminalSetup, live_terminal, until
from tests.support.messages_script import DEADLINE
from tests.support.services import require

FILES = ("src/main.py", "src/router/main_loop.py", "docs/guide.md", "a name.txt")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in (*FILES, "build/out.o", "src/skip.log", "src/keep.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "src" / ".gitignore").write_text("!keep.log\n")
    return tmp_path


async def test_a_slash_offers_commands_with_what_they_do() -> None:
    async with live_terminal() as terminal:
        terminal.send("/h")
        await terminal.shows("/help     show what there is")
        await terminal.shows("/history  show earlier prompts")
        assert "/model" not in terminal.screen_text()


async def test_enter_on_a_chosen_command_without_arguments_runs_it() -> None:
    async with live_terminal() as terminal:
        terminal.send("/h")
        await terminal.shows("/history")
        terminal.send("\t\r")
        await terminal.submitted("/help")


async def test_enter_on_a_chosen_command_with_arguments_lets_them_be_typed() -> None:
    async with live_terminal() as terminal:
        terminal.send("/mo")
        await terminal.shows("/model NAME")
        terminal.send("\t")
        await terminal.draft_is("/model")
        terminal.send("\r")
        terminal.send(" fast\r")
        await terminal.submitted("/model fast")


async def test_tab_completes_also_while_busy_when_the_menu_is_open() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send("/mo")
        await terminal.shows("/model NAME")
        terminal.send("\t")
        await terminal.draft_is("/model")


async def test_an_at_sign_offers_the_files_of_the_workspace(workspace: Path) -> None:
    async with live_terminal(setup=TerminalSetup(workspace=workspace)) as terminal:
        terminal.send("read @main")
        await terminal.shows("src/main.py")
        terminal.send("\t")
        await terminal.draft_is("read @src/main.py")
        terminal.send("\r")
        terminal.send(" please\r")
        await terminal.submitted("read @src/main.py please")


async def test_a_pasted_slash_opens_no_menu() -> None:
    async with live_terminal() as terminal:
        terminal.send("\x1b[200~/h\x1b[201~")
        await terminal.shows("› /h")
        terminal.send("e")
        await terminal.shows("› /he")
        assert "show what there is" not in terminal.screen_text()


@pytest.mark.parametrize("with_ripgrep", [True, False])
def test_ignored_files_are_not_gathered(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, with_ripgrep: bool
) -> None:
    if with_ripgrep:
        require("rg")
    else:
        monkeypatch.setenv("PATH", os.fspath(workspace))
    found = [path for path in gather_files(workspace) if not path.endswith(".gitignore")]
    assert sorted(found) == sorted([*FILES, "src/keep.log"])


def test_of_too_many_files_those_in_the_fewest_folders_are_kept(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A README that is found last among very many is offered all the same."""
    monkeypatch.setattr(file_index, "MAX_PATHS", 4)
    index = FileIndex(workspace)
    gathering = index.refresh()
    assert gathering is not None
    gathering.result(DEADLINE)
    assert sorted(index.paths) == [".gitignore", "a name.txt", "docs/", "src/"]


def test_paths_are_kept_by_depth_and_none_twice() -> None:
    paths = ["z/y/x.py", "z/y/", "z/a.py", "z/", "b.py"]
    assert shallowest(paths, 10) == ["z/", "b.py", "z/y/", "z/a.py", "z/y/x.py"]
    assert shallowest(paths, 2) == ["z/", "b.py"]
    assert shallowest(paths, 0) == []


@pytest.mark.parametrize("with_ripgrep", [True, False])
def test_hidden_files_are_offered_to_who_types_a_dot(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, with_ripgrep: bool
) -> None:
    if with_ripgrep:
        require("rg")
    else:
        monkeypatch.setenv("PATH", str(workspace))
    for name in (".git/config", ".github/flows/main.yml", "src/.env.main"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("x")
    paths = gather_files(workspace)
    assert ".git/config" not in paths
    assert best_matches(paths, "main") == ["src/main.py", "src/router/main_loop.py"]
    assert best_matches(paths, ".gith") == [".github/flows/main.yml"]
    assert best_matches(paths, "src/.e") == ["src/.env.main"]


def test_a_program_of_the_workspace_is_never_run(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = workspace / "rg"
    planted.write_text(f"#!/bin/sh\ntouch {workspace}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:/bin:/usr/bin")
    assert "src/main.py" in gather_files(workspace)
    assert not (workspace / "ran").exists()


def test_a_folder_that_is_gone_offers_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        gather_files(tmp_path / "gone")


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("main", ["src/main.py", "src/router/main_loop.py"]),
        ("GUIDE", ["docs/guide.md"]),
        ("sr/ma", ["src/main.py", "src/router/main_loop.py"]),
        ("sr/rou/lo", ["src/router/main_loop.py"]),
        ("nothing", []),
    ],
)
def test_paths_match_by_parts_and_the_best_comes_first(token: str, expected: list[str]) -> None:
    assert best_matches(FILES, token) == expected


@pytest.mark.parametrize(
    ("text", "token"),
    [("@", ""), ("see @src/ma", "src/ma"), ("mail me@example", None), ("@a b", None), ("", None)],
)
def test_the_file_under_the_cursor(text: str, token: str | None) -> None:
    assert file_token(text) == token


@pytest.mark.parametrize(
    ("text", "token"),
    [("/he", "/he"), ("/", "/"), ("/help now", None), ("/srv/app", None), ("x /he", None)],
)
def test_the_command_under_the_cursor(text: str, token: str | None) -> None:
    assert command_token(text) == token


def test_a_path_with_white_space_is_quoted() -> None:
    assert quoted("a name.txt") == '"a name.txt"'
    assert quoted("plain.txt") == "plain.txt"


async def test_typing_goes_on_while_files_are_gathered(workspace: Path) -> None:
    async with live_terminal(setup=TerminalSetup(workspace=workspace)) as terminal:
        terminal.send("@gui")
        await terminal.shows("docs/guide.md")
        terminal.send("de")
        await terminal.draft_is("@guide")
        terminal.send("\x1b")
        await until(lambda: "docs/guide.md" not in terminal.screen_text())


def menu(count: int, chosen: int | None, columns: int = 80, rows: int = 7) -> list[str]:
    completions = [
        Completion(f"/c{number}", display=f"/c{number} [one | two | three]", display_meta="does it")
        for number in range(count)
    ]
    state = CompletionState(Document("/"), completions, chosen)
    return fragment_list_to_text(menu_fragments(state, columns, rows)).split("\n")


def test_a_menu_with_more_than_it_shows_says_how_many() -> None:
    assert len(menu(7, None)) == 7
    assert menu(8, None)[-1] == "  +2 more"
    assert menu(25, None)[-1] == "  +19 more"
    assert menu(MAX_MATCHES, None)[-1] == f"  +{MAX_MATCHES - 6} or more"


def test_a_menu_says_which_of_all_is_chosen_and_shows_it() -> None:
    rows = menu(25, 12)
    assert rows[-1] == "  13 of 25"
    assert len(rows) == 7
    assert any("/c12 " in row for row in rows)
    assert "/c24 " in menu(25, 24)[-2]


def test_a_menu_of_one_row_shows_the_chosen_one() -> None:
    assert menu(25, 3, rows=1) == ["  /c3 [one | two | three]  does it"]


def test_long_usages_leave_room_for_what_they_mean_in_a_narrow_window() -> None:
    for row in menu(3, None, columns=40):
        assert get_cwidth(row) <= 40
        assert row.endswith("does it")
        assert "…" in row


async def test_while_the_files_are_gathered_for_the_first_time_a_sign_stands_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latch = threading.Event()

    def gather(folder: Path) -> list[str]:
        latch.wait(60)
        return gather_files(folder)

    monkeypatch.setattr(file_index, "gather_files", gather)
    async with live_terminal(setup=TerminalSetup(workspace=workspace)) as terminal:
        terminal.send("see @guid")
        await terminal.shows("Gathering the files of the folder…")
        terminal.send("e")
        await terminal.draft_is("see @guide")
        latch.set()
        await terminal.shows("docs/guide.md")
        await until(lambda: "Gathering" not in terminal.screen_text())
