from __future__ import annotations

import stat
from pathlib import Path

import pytest

from midturn_cli.terminal.history import MAX_ENTRIES, InputHistory
from tests.support.live_terminal import TerminalSetup, live_terminal


def reopened(path: Path) -> list[str]:
    """The entries as a later session finds them, newest first."""
    return list(InputHistory(path, pytest.fail).load_history_strings())


async def test_lines_of_an_earlier_session_are_found_again(tmp_path: Path) -> None:
    setup = TerminalSetup(history=tmp_path / "state" / "history")
    async with live_terminal(setup=setup) as terminal:
        terminal.send("remember\nme\r")
        await terminal.submitted("remember\nme")
    async with live_terminal(setup=TerminalSetup(history=setup.history)) as terminal:
        terminal.send("\x1b[A")
        await terminal.draft_is("remember\nme")


def test_entries_survive_with_their_lines_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "history"
    entries = ["one", "two\n\n+lines # here", "drei äöü"]
    history = InputHistory(path, pytest.fail)
    for entry in entries:
        history.append_string(entry)
    assert reopened(path) == entries[::-1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_repeat_of_the_last_entry_is_not_added(tmp_path: Path) -> None:
    history = InputHistory(tmp_path / "history", pytest.fail)
    for entry in ("a", "a", "b", "a", "  "):
        history.append_string(entry)
    assert reopened(tmp_path / "history") == ["a", "b", "a"]


def test_only_the_newest_entries_of_a_long_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "history"
    lines = "".join(f"\n# stamp\n+entry {number} {'x' * 500}\n" for number in range(5000))
    path.write_text(lines)
    found = reopened(path)
    assert found[0].startswith("entry 4999 ")
    assert 1000 < len(found) <= MAX_ENTRIES
    assert all(entry.startswith("entry ") for entry in found)


def test_a_file_that_cannot_be_used_is_told_once_and_the_session_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    history = InputHistory(tmp_path, told.append)
    history.append_string("a")
    history.append_string("b")
    assert history.get_strings() == ["a", "b"]
    assert len(told) == 1
    assert str(tmp_path) in told[0]


@pytest.mark.parametrize("where", ["no file", "a file", "a file that cannot be used"])
async def test_what_is_entered_before_the_history_is_loaded_is_in_it_once(
    where: str, tmp_path: Path
) -> None:
    path = {"no file": None, "a file": tmp_path / "history"}.get(where, tmp_path)
    history = InputHistory(path, lambda _: None)
    for entry in ("one", "two"):
        history.append_string(entry)
    assert [entry async for entry in history.load()] == ["two", "one"]


async def test_an_early_entry_too_long_for_the_file_is_still_found(tmp_path: Path) -> None:
    path = tmp_path / "history"
    InputHistory(path, pytest.fail).append_string("from last time")
    history = InputHistory(path, pytest.fail)
    history.append_string("long" * 10_000)
    history.append_string("short")
    assert {entry async for entry in history.load()} == {
        "from last time",
        "long" * 10_000,
        "short",
    }
