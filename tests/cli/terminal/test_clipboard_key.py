"""The key that attaches the picture on the clipboard, at the terminal."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from midturn_cli.ports import KeptPicture
from midturn_core.config import KeysConfig
from midturn_core.pictures import read_picture
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import LiveTerminal, TerminalSetup, live_terminal, until
from tests.support.picture_files import png

CTRL_V = "\x16"
PLACE = "[Picture #1 clipboard.png 1280×720 83 kB]"
NONE = "No picture was attached: the clipboard holds no picture."


@dataclass(slots=True)
class Clipboard:
    """Answers when it is told to."""

    answer: KeptPicture | str
    asked: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> KeptPicture | str:
        self.asked += 1
        await self.answers.wait()
        return self.answer


@pytest.fixture
def kept(tmp_path: Path) -> KeptPicture:
    data = png(1280, 720, padding=82_900)
    file = tmp_path / "0123.png"
    file.write_bytes(data)
    return KeptPicture(read_picture(data, "clipboard.png"), file)


def at_once(answer: KeptPicture | str) -> Clipboard:
    clipboard = Clipboard(answer)
    clipboard.answers.set()
    return clipboard


def sent_names(terminal: LiveTerminal) -> list[list[str]]:
    return [[one.name for one in line.attachments] for line in terminal.session.submitted]


@pytest.mark.parametrize("busy", [False, True])
async def test_the_key_puts_the_picture_at_the_cursor_and_it_goes_along(
    kept: KeptPicture, busy: bool
) -> None:
    async with live_terminal(FakeSession(busy=busy, clipboard=at_once(kept))) as terminal:
        terminal.send("what is ?\x1b[D" + CTRL_V)
        await terminal.shows(f"what is {PLACE} ?")
        terminal.send("this\r")
        await terminal.submitted(f"what is {PLACE} this?")
        assert sent_names(terminal) == [["clipboard.png"]]


async def test_what_is_typed_meanwhile_stays_and_the_picture_comes_where_the_key_was_pressed(
    kept: KeptPicture,
) -> None:
    clipboard = Clipboard(kept)
    async with live_terminal(FakeSession(clipboard=clipboard)) as terminal:
        terminal.send("what is " + CTRL_V)
        await until(lambda: clipboard.asked)
        terminal.send("in red")
        await terminal.draft_is("what is in red")
        clipboard.answers.set()
        await terminal.shows(f"what is {PLACE} in red")
        terminal.send("?\r")
        await terminal.submitted(f"what is {PLACE} in red?")


async def test_a_draft_that_changed_meanwhile_gets_the_picture_at_the_cursor(
    kept: KeptPicture,
) -> None:
    clipboard = Clipboard(kept)
    async with live_terminal(FakeSession(clipboard=clipboard)) as terminal:
        terminal.send("old words" + CTRL_V)
        await until(lambda: clipboard.asked)
        terminal.send("\x15new")
        await terminal.draft_is("new")
        clipboard.answers.set()
        await terminal.shows(f"new{PLACE}")


async def test_the_draft_is_not_sent_without_its_picture(kept: KeptPicture) -> None:
    clipboard = Clipboard(kept)
    async with live_terminal(FakeSession(clipboard=clipboard)) as terminal:
        terminal.send("what is ")
        await terminal.draft_is("what is ")
        terminal.send(CTRL_V)
        await until(lambda: clipboard.asked)
        terminal.send("\r")
        await terminal.shows("The picture on the clipboard is still being read")
        assert terminal.session.texts == []
        clipboard.answers.set()
        await terminal.shows(PLACE)
        terminal.send("\r")
        await terminal.submitted(f"what is {PLACE} ")


async def test_a_key_that_is_pressed_twice_asks_once_and_the_same_picture_is_sent_once(
    kept: KeptPicture,
) -> None:
    clipboard = Clipboard(kept)
    async with live_terminal(FakeSession(clipboard=clipboard)) as terminal:
        terminal.send(CTRL_V + CTRL_V)
        await until(lambda: clipboard.asked)
        clipboard.answers.set()
        await terminal.shows(PLACE)
        assert clipboard.asked == 1
        terminal.send(CTRL_V)
        await until(lambda: clipboard.asked == 2 and terminal.front.draft.count("@") == 2)
        terminal.send("\r")
        await terminal.submitted(f"{PLACE} {PLACE} ")
        assert sent_names(terminal) == [["clipboard.png"]]


async def test_without_a_picture_the_reason_is_shown_and_the_draft_stays() -> None:
    async with live_terminal(FakeSession(clipboard=at_once(NONE))) as terminal:
        terminal.send("half a th" + CTRL_V + "ought")
        await until(lambda: NONE in terminal.notices())
        await terminal.draft_is("half a thought")


@pytest.mark.parametrize("draft", ["!ls ", "/model "])
async def test_a_command_takes_no_picture_and_the_clipboard_is_not_read(
    kept: KeptPicture, draft: str
) -> None:
    clipboard = at_once(kept)
    async with live_terminal(FakeSession(clipboard=clipboard)) as terminal:
        terminal.send(draft + CTRL_V)
        await until(lambda: "takes no picture" in terminal.notices())
        assert clipboard.asked == 0
        await terminal.draft_is(draft)


async def test_undo_takes_the_picture_back(kept: KeptPicture) -> None:
    async with live_terminal(FakeSession(clipboard=at_once(kept))) as terminal:
        terminal.send("look ")
        await terminal.draft_is("look ")
        terminal.send(CTRL_V)
        await terminal.shows(PLACE)
        terminal.send("\x1f")
        await terminal.draft_is("look ")


async def test_the_history_has_the_file_of_the_picture_and_attaches_it_again(
    kept: KeptPicture, tmp_path: Path
) -> None:
    setup = TerminalSetup(history=tmp_path / "history")
    async with live_terminal(FakeSession(clipboard=at_once(kept)), setup) as terminal:
        terminal.send(CTRL_V + "what?")
        await terminal.shows(f"{PLACE} what?")
        terminal.send("\r")
        await terminal.submitted(f"{PLACE} what?")
        terminal.send("\x1b[A")
        await terminal.draft_is(f"@{kept.path} what?")
        terminal.send("\r")
        # The same picture: it keeps its number and its name.
        await terminal.submitted(f"{PLACE} what?", f"{PLACE} what?")
    assert f"+@{kept.path} what?" in (tmp_path / "history").read_text()


async def test_the_stash_keeps_the_picture(kept: KeptPicture) -> None:
    async with live_terminal(FakeSession(clipboard=at_once(kept))) as terminal:
        terminal.send(CTRL_V)
        await terminal.shows(PLACE)
        terminal.send("\x13\x13?\r")
        await terminal.submitted(f"{PLACE} ?")
        assert sent_names(terminal) == [["clipboard.png"]]


async def test_with_vi_keys_it_attaches_in_insert_mode_and_selects_a_block_in_normal_mode(
    kept: KeptPicture,
) -> None:
    clipboard = at_once(kept)
    async with live_terminal(
        FakeSession(clipboard=clipboard), TerminalSetup(keys="vi")
    ) as terminal:
        terminal.send("ab")
        await terminal.shows("ab")
        terminal.send("\x1b")
        await terminal.shows("[N]")
        await terminal.press(CTRL_V)
        await terminal.shows("[V]")
        assert clipboard.asked == 0
        terminal.send("\x1b")
        await terminal.shows("[N]")
        await terminal.press("A")
        terminal.send(CTRL_V)
        await terminal.shows(f"ab{PLACE}")


async def test_it_has_the_key_of_the_configuration(kept: KeptPicture) -> None:
    setup = TerminalSetup(key_map=KeysConfig(picture=("f4",)))
    async with live_terminal(FakeSession(clipboard=at_once(kept)), setup) as terminal:
        terminal.send(CTRL_V + "\x1bOS")
        await terminal.shows(PLACE)
