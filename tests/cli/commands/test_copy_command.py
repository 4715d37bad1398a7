"""/copy: what goes to the clipboard, by which way, and what is said about it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midturn_cli.engine import FrontEnd
from midturn_cli.session import InteractiveSession
from midturn_cli.terminal.osc52 import MAX_BYTES
from midturn_cli.ui_events import ClipboardText, UiEvent
from midturn_core.permission.ask import DenyingAskHandler
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import RecordingHost, SessionKit, make_launch
from tests.support.stand_in_program import StandIn, search_only, stand_in

TWO_BLOCKS = """\
Use this:

```python
print("하나")
```

- or this:

  ~~~ sh
  echo two
  ~~~
"""


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the search path."""
    folder = tmp_path_factory.mktemp("bin")
    search_only(monkeypatch, folder)
    return folder


@pytest.fixture
def xclip(programs: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setenv("DISPLAY", ":0")
    return stand_in(programs, "xclip")


@asynccontextmanager
async def answered(
    workspace: Path, *answers: str, terminal: bool = True
) -> AsyncGenerator[SessionKit]:
    """A session in which the model has given these answers; ``terminal`` says whether the front
    end can reach a terminal's clipboard.
    """
    events: list[UiEvent] = []
    host = RecordingHost()
    front = FrontEnd(events.append, DenyingAskHandler(), terminal_clipboard=terminal)
    model = ScriptedModel(*(text(answer) for answer in answers))
    launch = make_launch(workspace, demo=False)
    kit = SessionKit(InteractiveSession(launch, front, host, lambda _: model), host, events)
    kit.session.open()
    for _ in answers:
        await kit.run("question")
    try:
        yield kit
    finally:
        await kit.close()


async def test_the_last_answer_goes_to_the_clipboard_program(
    tmp_path: Path, xclip: StandIn
) -> None:
    async with answered(tmp_path, "first", "둘째\nline two\n") as kit:
        await kit.run("/copy")
        assert xclip.taken == "둘째\nline two".encode()
        assert kit.said.endswith(
            "Copied the last answer (2 lines, 11 characters) with xclip. It begins: 둘째"
        )
        assert kit.of(ClipboardText) == []


async def test_a_number_counts_answers_from_the_newest(tmp_path: Path, xclip: StandIn) -> None:
    async with answered(tmp_path, "first", "second", "third") as kit:
        await kit.run("/copy 3")
        assert xclip.taken == b"first"
        await kit.run("/copy 4")
        assert kit.errors == ["There is no answer number 4: counted from the newest there are 3"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("/copy code", b"echo two"), ("/copy code 1", b"echo two"), ("/copy code 3", b"old")],
)
async def test_code_blocks_are_counted_from_the_newest_wherever_they_stand(
    tmp_path: Path, xclip: StandIn, line: str, wanted: bytes
) -> None:
    async with answered(tmp_path, "```\nold\n```", TWO_BLOCKS, "no code here") as kit:
        await kit.run(line)
        assert xclip.taken == wanted


async def test_what_hides_in_an_answer_is_not_copied(tmp_path: Path, xclip: StandIn) -> None:
    hostile = "```\nls\x1b[201~; rm -rf ~\u202e\x1b]52;c;ZXZpbA==\x07\n\tnext\n```"
    async with answered(tmp_path, hostile) as kit:
        await kit.run("/copy code")
        assert xclip.taken == b"ls; rm -rf ~\n\tnext"


async def test_without_a_program_the_terminal_is_asked(tmp_path: Path, programs: Path) -> None:
    async with answered(tmp_path, "an answer") as kit:
        await kit.run("/copy")
        assert kit.of(ClipboardText) == [ClipboardText("an answer")]
        assert "by asking the terminal (OSC 52), which must allow it. It begins" in kit.said


async def test_a_program_that_fails_gives_way_to_the_next_way(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    stand_in(programs, "xclip", "sys.exit(1)")
    xsel = stand_in(programs, "xsel")
    async with answered(tmp_path, "an answer") as kit:
        await kit.run("/copy")
        assert xsel.taken == b"an answer"
        stand_in(programs, "xsel", "sys.exit(1)")
        await kit.run("/copy")
        assert kit.of(ClipboardText) == [ClipboardText("an answer")]


async def test_a_text_that_no_terminal_takes_is_refused_with_a_way_out(
    tmp_path: Path, programs: Path
) -> None:
    async with answered(tmp_path, "x" * (MAX_BYTES + 1)) as kit:
        await kit.run("/copy")
        assert kit.of(ClipboardText) == []
        assert "74,995 bytes are more than the 74,994 that a terminal takes" in kit.errors[0]
        assert kit.errors[0].endswith("; /export writes a file")


async def test_plain_mode_says_that_it_needs_a_program(tmp_path: Path, programs: Path) -> None:
    async with answered(tmp_path, "an answer", terminal=False) as kit:
        await kit.run("/copy")
        assert kit.of(ClipboardText) == []
        assert kit.errors[0].startswith(
            "Nothing was copied: plain mode needs a clipboard program, but there is no wl-copy"
        )


async def test_an_empty_history_has_nothing_to_copy(tmp_path: Path, xclip: StandIn) -> None:
    async with answered(tmp_path) as kit:
        await kit.run("/copy")
        await kit.run("/copy code")
        assert kit.errors == [
            "There is nothing to copy: the model has not answered yet",
            "There is no code block in the answers; /copy takes the last answer",
        ]
        assert xclip.taken is None


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("/copy all", "/copy does not know 'all': it takes a number, code (example: /copy code)"),
        ("/copy 0", "The number after /copy must be a whole number from 1 up, not '0'"),
        ("/copy code x", "The number after /copy code must be a whole number from 1 up, not 'x'"),
        ("/copy 1 2", "/copy takes one number (example: /copy 2)"),
        ("/copy code 1 2", "/copy code takes one number (example: /copy code 2)"),
    ],
)
async def test_a_mistake_is_explained_and_copies_nothing(
    tmp_path: Path, xclip: StandIn, line: str, complaint: str
) -> None:
    async with answered(tmp_path, "```\ncode\n```") as kit:
        await kit.run(line)
        assert kit.errors[0].startswith(complaint)
        assert xclip.taken is None
