"""Which lines are commands, and when they run (D3, S2.16)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midturn_cli.commands.all_commands import all_commands
from midturn_cli.commands.command import Command, Use, When
from midturn_cli.commands.lines import CommandLines
from midturn_cli.commands.registry import CommandRegistry
from midturn_cli.ui_events import UserEcho
from midturn_core.events import CompactionFinished, TurnStarted
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import SessionKit, make_launch, open_session, texts

PROMPTS = [
    "/etc/hosts is odd",
    "/srv/app/notes.md:12 improve this part",
    "/* todo */ what does it mean?",
    "//foo",
    "what does /help do?",
]


@pytest.mark.parametrize("line", PROMPTS)
async def test_a_line_that_only_begins_like_a_command_is_a_prompt(
    line: str, tmp_path: Path
) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        assert await kit.run(line) == ""
        (started,) = kit.of(TurnStarted)
    assert texts(started.inputs) == [line]


@pytest.mark.parametrize(
    ("line", "nearest"),
    [("/hlep", "/help"), ("/qiut", "/quit"), ("/HELP", "/help"), ("/para on", "/parallel")],
)
async def test_an_unknown_command_is_refused_with_the_nearest_name(
    line: str, nearest: str, tmp_path: Path
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        problem = await kit.run(line)
        assert f"There is no command {line.split()[0]}; did you mean {nearest}" in problem
        assert not kit.of(TurnStarted)
        assert not kit.of(UserEcho)


async def test_a_slash_or_an_exclamation_mark_alone_is_refused_with_a_hint(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        assert "/help" in await kit.run("/")
        assert "!git status" in await kit.run(" ! ")
        assert "/help lists them" in await kit.run("/zzzzzz")
        assert not kit.of(TurnStarted)


async def test_a_pasted_command_is_content(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        kit.submit("/clear\nrm x", pasted=True)
        await kit.wait_idle()
        (started,) = kit.of(TurnStarted)
    assert texts(started.inputs) == ["/clear\nrm x"]


async def test_a_command_in_the_second_line_is_content(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("text\n/quit")
        assert kit.host.exits == 0
        assert len(kit.of(TurnStarted)) == 1


AT_ONCE = [command for command in all_commands() if command.when("") is When.AT_ONCE]
OWN_TURN = [command for command in all_commands() if command.when("") is When.AFTER_TURN]
SENDING = ("now", "next", "later")


@pytest.mark.parametrize(
    "command", [c for c in AT_ONCE if c.name not in SENDING], ids=lambda c: c.name
)
async def test_what_only_shows_or_sets_runs_while_a_turn_runs(
    command: Command, tmp_path: Path
) -> None:
    async with busy_session(tmp_path) as busy:
        before = len(busy.kit.events)
        assert busy.kit.submit(f"/{command.name}") == ""
        assert busy.kit.waiting() == []
        assert busy.kit.session.busy
        assert isinstance(busy.kit.events[before], UserEcho)
        await busy.finish()
        assert busy.kit.host.exits == (command.name == "exit")
        assert not any(command.name in sent for sent in busy.sent_texts())


async def test_what_changes_the_conversation_waits_and_no_command_text_is_sent(
    tmp_path: Path,
) -> None:
    answers = [text(f"answer {place}") for place in range(10)]
    async with busy_session(tmp_path, *answers) as busy:
        for command in OWN_TURN:
            assert busy.kit.submit(f"/{command.name}") == ""
        busy.kit.submit("/model other")
        waiting = [f"/{command.name}" for command in OWN_TURN]
        assert texts(busy.kit.waiting()) == [*waiting, "/model other"]
        await busy.finish()
        assert busy.kit.waiting() == []
        assert busy.kit.engine.model_settings.name == "other"
        assert not [sent for sent in busy.sent_texts() if sent.startswith("/")]


async def test_a_queued_command_does_not_hold_up_what_was_typed_after_it(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("hello yourself")) as busy:
        busy.kit.submit("/model other")
        busy.kit.submit("hello")
        await busy.finish()
        assert "From now on other answers" in busy.kit.said
        assert [texts(turn.inputs) for turn in busy.kit.of(TurnStarted)] == [["start"], ["hello"]]
        assert busy.model.requests[-1].model == "other"
        assert busy.kit.waiting() == []


async def test_compact_waits_for_the_turn_and_cost_does_not(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("the summary")) as busy:
        busy.kit.submit("/compact")
        busy.kit.submit("/cost")
        assert "Tokens of this session" in busy.kit.said
        assert not busy.kit.of(CompactionFinished)
        await busy.finish()
        assert [event.error for event in busy.kit.of(CompactionFinished)] == [""]


async def test_a_command_of_any_tier_is_a_barrier_of_its_own(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("one"), text("two")) as busy:
        busy.kit.submit("first", QueuedInputPriority.LATER)
        busy.kit.submit("/model other", QueuedInputPriority.LATER)
        busy.kit.submit("second", QueuedInputPriority.LATER)
        await busy.finish()
        models = [request.model for request in busy.model.requests]
        assert models[-1] == "other"
        assert models[-2] != "other"


def lines_with(kit: SessionKit, *commands: Command) -> CommandLines:
    lines = CommandLines(kit.engine, kit.host, CommandRegistry(commands))
    lines.controller = kit.session.controller
    return lines


async def test_a_command_that_breaks_ends_neither_turn_nor_session(tmp_path: Path) -> None:
    def break_down(use: Use) -> None:
        raise RuntimeError("broken inside")

    async def break_later(use: Use) -> None:
        break_down(use)

    async with open_session(make_launch(tmp_path)) as kit:
        lines = lines_with(
            kit,
            Command("one", "breaks", now=break_down),
            Command("two", "breaks", beside=break_later),
            Command("three", "breaks", own_turn=break_later),
        )
        lines.run_immediate("/one")
        lines.run_immediate("/two")
        await lines.wait_beside()
        item = QueuedInput("/three", kit.engine.context_id)
        await lines.run_own_turn(item, InterruptCoordinator("turn"))
    assert [error.split(" ")[0] for error in kit.errors] == ["/one", "/two", "/three"]
    assert all("broken inside" in error for error in kit.errors)


async def test_leaving_ends_a_command_that_runs_beside_the_turns(tmp_path: Path) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait_for_ever(use: Use) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with open_session(make_launch(tmp_path)) as kit:
        lines = lines_with(kit, Command("wait", "waits", beside=wait_for_ever))
        lines.run_immediate("/wait")
        await started.wait()
        await lines.close()
        assert ended.is_set()


def test_two_commands_cannot_share_a_name() -> None:
    commands = all_commands()
    with pytest.raises(ValueError, match="two commands are named /quit"):
        CommandRegistry([*commands, Command("quit", "again", now=lambda use: None)])


def test_a_command_needs_exactly_one_way_to_run() -> None:
    with pytest.raises(ValueError, match="/x needs one way to run"):
        Command("x", "does nothing")
