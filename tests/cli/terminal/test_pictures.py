"""Pictures in the draft: shown as a placeholder, gone with it, sent with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal.test_pasting import bracketed
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import LiveTerminal, TerminalSetup, live_terminal, until
from tests.support.picture_files import bmp, gif, png

SHOT = "[Picture #1 shot.png 1280×720 83 kB]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shot.png").write_bytes(png(1280, 720, padding=82_900))
    (tmp_path / "my shot.gif").write_bytes(gif())
    (tmp_path / "old.bmp").write_bytes(bmp())
    (tmp_path / "notes.txt").write_text("notes")
    return tmp_path


def sent_names(terminal: LiveTerminal) -> list[list[str]]:
    return [[one.name for one in line.attachments] for line in terminal.session.submitted]


async def test_a_dropped_file_becomes_a_placeholder_and_goes_along(folder: Path) -> None:
    async with live_terminal() as terminal:
        terminal.send("what is ")
        terminal.send(bracketed(f"{folder}/shot.png"))
        await terminal.shows(SHOT)
        terminal.send("?\r")
        await terminal.submitted(f"what is {SHOT} ?")
        assert sent_names(terminal) == [["shot.png"]]
        [picture] = terminal.session.submitted[0].attachments
        assert picture.data == (folder / "shot.png").read_bytes()


async def test_the_picture_is_that_of_the_moment_in_which_it_was_dropped(folder: Path) -> None:
    """Screenshot tools drop files that they remove soon after."""
    async with live_terminal() as terminal:
        terminal.send(bracketed(f"{folder}/shot.png"))
        await terminal.shows(SHOT)
        (folder / "shot.png").unlink()
        terminal.send("\r")
        await until(lambda: terminal.session.submitted)
        assert sent_names(terminal) == [["shot.png"]]


async def test_several_dropped_files_are_all_attached(folder: Path) -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed(f"'{folder}/shot.png' '{folder}/my shot.gif' "))
        await terminal.shows("[Picture #2 my shot.gif 3×2")
        terminal.send("\r")
        await until(lambda: terminal.session.submitted)
        assert sent_names(terminal) == [["shot.png", "my shot.gif"]]


async def test_an_at_path_folds_when_a_blank_ends_it_and_at_enter(folder: Path) -> None:
    async with live_terminal(setup=TerminalSetup(workspace=folder)) as terminal:
        terminal.send("@shot.png ")
        await terminal.shows(SHOT)
        terminal.send('or @"my shot.gif"?')
        await terminal.shows('or @"my shot.gif"?')
        terminal.send("\r")
        await until(lambda: terminal.session.submitted)
        [text] = terminal.session.texts
        assert text.startswith(f"{SHOT} or [Picture #2 my shot.gif 3×2 ") and text.endswith("]?")
        assert sent_names(terminal) == [["shot.png", "my shot.gif"]]


async def test_a_picture_whose_placeholder_is_deleted_is_not_sent(folder: Path) -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed(f"{folder}/shot.png"))
        await terminal.shows(SHOT)
        terminal.send("\x15hello\r")
        await terminal.submitted("hello")
        assert sent_names(terminal) == [[]]


async def test_the_same_picture_twice_is_sent_once(folder: Path) -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed(f"{folder}/shot.png"))
        terminal.send(bracketed(f"{folder}/shot.png"))
        await until(lambda: terminal.front.draft.count("shot.png") == 2)
        terminal.send("\r")
        await terminal.submitted(f"{SHOT} {SHOT} ")
        assert sent_names(terminal) == [["shot.png"]]


@pytest.mark.parametrize("keys", ["{folder}/old.bmp", "{folder}/big.png"])
async def test_a_refused_file_stays_a_path_and_the_reason_is_shown(folder: Path, keys: str) -> None:
    (folder / "big.png").write_bytes(png(padding=4_000_000))
    async with live_terminal() as terminal:
        path = keys.format(folder=folder)
        terminal.send(bracketed(path))
        await terminal.draft_is(path)
        await until(lambda: "was not attached: it" in terminal.notices())
        terminal.send(" there\r")
        await terminal.submitted(f"{path} there")
        assert sent_names(terminal) == [[]]


async def test_the_reason_is_shown_once_for_each_draft(folder: Path) -> None:
    async with live_terminal(setup=TerminalSetup(workspace=folder)) as terminal:
        terminal.send("@old.bmp and @old.bmp \r")
        await terminal.submitted("@old.bmp and @old.bmp ")
        await until(lambda: "was not attached" in terminal.notices())
        assert terminal.notices().count("was not attached") == 1
        terminal.send("@old.bmp\r")
        await until(lambda: terminal.notices().count("was not attached") == 2)


@pytest.mark.parametrize("line", ["!file @shot.png", "/model @shot.png"])
async def test_paths_in_shell_lines_and_commands_stay_paths(folder: Path, line: str) -> None:
    async with live_terminal(setup=TerminalSetup(workspace=folder)) as terminal:
        terminal.send(f"{line} \r")
        await terminal.submitted(f"{line} ")
        assert sent_names(terminal) == [[]]


async def test_other_dropped_files_are_plain_paths(folder: Path) -> None:
    async with live_terminal() as terminal:
        terminal.send(bracketed(f"{folder}/notes.txt"))
        await terminal.draft_is(f"{folder}/notes.txt")
        assert "not attached" not in terminal.notices()


async def test_a_recalled_draft_attaches_its_picture_again(folder: Path) -> None:
    history = folder / "history"
    async with live_terminal(setup=TerminalSetup(history=history)) as terminal:
        terminal.send(bracketed(f"{folder}/shot.png") + "what?\r")
        await terminal.submitted(f"{SHOT} what?")
    assert f"+@{folder}/shot.png what?" in history.read_text()
    async with live_terminal(setup=TerminalSetup(history=history)) as terminal:
        terminal.send("\x1b[A")
        await terminal.draft_is(f"@{folder}/shot.png what?")
        terminal.send("\r")
        await terminal.submitted(f"{SHOT} what?")
        assert sent_names(terminal) == [["shot.png"]]


async def test_a_refused_line_keeps_its_picture(folder: Path) -> None:
    async with live_terminal(FakeSession(refusal="full")) as terminal:
        terminal.send(bracketed(f"{folder}/shot.png") + "\r")
        await until(lambda: "full" in terminal.notices())
        terminal.session.refusal = ""
        terminal.send("\r")
        await terminal.submitted(f"{SHOT} ")
        assert sent_names(terminal) == [["shot.png"]]
