"""The one sequence that fills the terminal's clipboard, and who may write it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from midturn_cli.terminal.osc52 import MAX_BYTES, osc52
from midturn_cli.ui_events import ClipboardText, CommandOutput
from tests.support.live_terminal import live_terminal

CLI = Path(__file__).parents[3] / "cli" / "midturn_cli"


def test_no_byte_of_the_text_reaches_the_terminal() -> None:
    text = "\x07\x1b\\\x9c;evil\n한글"
    sequence = osc52(text)
    assert sequence.startswith("\x1b]52;c;") and sequence.endswith("\x07")
    assert base64.b64decode(sequence[7:-1], validate=True).decode() == text


def test_a_text_that_is_too_long_is_refused_whole() -> None:
    assert len(osc52("x" * MAX_BYTES)) <= 100_000
    with pytest.raises(ValueError, match="74,995 bytes are more than the 74,994"):
        osc52("x" * (MAX_BYTES + 1))


async def test_the_writer_turns_the_event_into_one_sequence_and_shows_nothing() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(ClipboardText("한글 and more"))
        terminal.front.emit(CommandOutput("copied"))
        await terminal.shows("copied")
        written = "".join(terminal.stdout.writes)
        assert written.count("\x1b]52;") == 1
        assert osc52("한글 and more") in written
        assert "한글" not in terminal.screen_text()
        assert terminal.presenter.applied == [CommandOutput("copied")]


async def test_a_text_that_is_too_long_is_said_not_sent() -> None:
    async with live_terminal() as terminal:
        terminal.front.emit(ClipboardText("x" * (MAX_BYTES + 1)))
        await terminal.shows("Nothing was copied: 74,995 bytes")
        assert "\x1b]52;" not in "".join(terminal.stdout.writes)


def test_one_module_alone_knows_the_sequence() -> None:
    knowing = {path.name for path in CLI.rglob("*.py") if "]52" in path.read_text(encoding="utf-8")}
    assert knowing == {"osc52.py"}
