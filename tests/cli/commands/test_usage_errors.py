"""What commands say of arguments that they cannot use: at once, short, and with what to do."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from midturn_cli.commands.all_commands import all_commands
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import SessionKit, make_launch, open_session

TAKE_ANY_TEXT = {"now", "next", "later", "compact", "init"}
HUGE = "x" * 10_000
LONGEST = 500
"""Letters of a complaint, the list of what is allowed included."""


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncGenerator[SessionKit]:
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: ScriptedModel(text("hello"))) as opened:
        yield opened


@pytest.mark.parametrize(
    "name", [one.name for one in all_commands() if one.name not in TAKE_ANY_TEXT]
)
async def test_a_huge_argument_is_refused_in_a_few_words(kit: SessionKit, name: str) -> None:
    complaint = await kit.run(f"/{name} {HUGE}") or kit.errors[-1]
    assert 0 < len(complaint) < LONGEST


@pytest.mark.parametrize(
    "line",
    [
        f"/{HUGE}",
        f"/remind at {HUGE} TEXT",
        f"/permissions rm {HUGE}",
        f"/parallel max {HUGE}",
        f"/parallel mixed {HUGE}",
        f"/queue rm {HUGE}",
        f"/export '{HUGE}",
        f"/export --format {HUGE}",
        f"/export --{HUGE}",
    ],
)
async def test_a_huge_word_is_not_repeated_whole(kit: SessionKit, line: str) -> None:
    await kit.run("hello")
    complaint = await kit.run(line) or kit.errors[-1]
    assert 0 < len(complaint) < LONGEST


@pytest.mark.parametrize("line", ["/exit the loop early", "/quit now please"])
async def test_a_sentence_that_begins_like_leaving_leaves_nothing(
    kit: SessionKit, line: str
) -> None:
    assert "/exit takes nothing after it" in await kit.run(line)
    assert kit.host.exits == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/retry it", "/retry takes nothing after it, but there is 'it'"),
        ("/clear all", "/clear takes nothing after it, but there is 'all'"),
        ("/model two words", "/model needs the name of one model"),
    ],
)
async def test_what_could_only_fail_after_the_turn_is_refused_while_it_runs(
    tmp_path: Path, line: str, said: str
) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        assert said in busy.kit.submit(line)
        assert busy.kit.waiting() == []
        await busy.finish()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/queue log all", "/queue log takes nothing after it"),
        ("/queue clear all", "/queue clear takes nothing after it"),
        ("/remind rm", "/remind rm needs one number of the list"),
        ("/remind rm 1 2", "/remind rm needs one number of the list"),
    ],
)
async def test_a_word_that_is_known_is_not_called_unknown(
    kit: SessionKit, line: str, said: str
) -> None:
    await kit.run(line)
    assert said in kit.errors[-1]


async def test_help_of_a_form_tells_its_command(kit: SessionKit) -> None:
    await kit.run("/help queue rm")
    assert kit.errors == []
    assert "/queue: see and change what waits" in kit.said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/queue rm 1", "There is no number 1: nothing waits"),
        ("/remind rm 1", "There is no reminder 1: none is set"),
        ("/resume 1", "There is no session number 1: there is no other session of this folder"),
        ("/why x", "The number after /why must be a whole number from 1 up"),
        ("/permissions allow Nope(x)", "The rule Nope(x) can never match"),
    ],
)
async def test_a_complaint_is_a_sentence_and_names_no_list_that_is_empty(
    kit: SessionKit, line: str, said: str
) -> None:
    await kit.run(line)
    assert kit.errors[-1].startswith(said)
    assert "shows" not in kit.errors[-1]
