"""/retry, /compact, /init and /model: commands that run the model or change it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.commands.turn_commands import INIT_PROMPT
from midturn_cli.launch import SessionStart
from midturn_core.errors import OverloadedError
from midturn_core.events import CompactionFinished, TurnEnded, TurnEndReason, TurnStarted
from midturn_core.model.messages import TextBlock, UserMessage
from tests.support.busy_session import busy_session
from tests.support.scripted_model import USAGE, ScriptedModel, Step, text
from tests.support.session_kit import SessionKit, make_launch, open_session, texts

PRICED = '[model]\nname = "m"\nprices = { "m" = { input = 2.0, output = 10.0 } }\n'


def failing() -> list[Step]:
    """A request that fails before anything came."""
    return [OverloadedError("It is overloaded.")]


def last_texts(model: ScriptedModel) -> list[str]:
    message = model.requests[-1].messages[-1]
    assert isinstance(message, UserMessage)
    return [block.text for block in message.blocks if isinstance(block, TextBlock)]


def ends(kit: SessionKit) -> list[TurnEndReason]:
    return [ended.reason for ended in kit.of(TurnEnded)]


async def test_retry_sends_the_failed_step_again(tmp_path: Path) -> None:
    model = ScriptedModel(failing(), text("here you are"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("hello")
        assert ends(kit) == [TurnEndReason.FAILED]
        await kit.run("/retry")
        assert ends(kit) == [TurnEndReason.FAILED, TurnEndReason.DONE]
        assert last_texts(model) == ["hello"]
        assert kit.of(TurnStarted)[-1].inputs == ()


async def test_retry_goes_on_after_an_interrupt(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("here you are")) as busy:
        busy.kit.session.interrupt()
        await busy.finish()
        await busy.kit.run("/retry")
        assert ends(busy.kit) == [TurnEndReason.INTERRUPTED, TurnEndReason.DONE]


async def test_retry_says_when_there_is_nothing_to_retry(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/retry")
        await kit.run("hello")
        await kit.run("/retry")
        assert [error[:26] for error in kit.errors] == ["There is nothing to retry:"] * 2
        assert len(model.requests) == 1


async def test_compact_replaces_the_history_and_takes_wishes(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"), text("the summary"), text("fine"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("hello")
        await kit.run("/compact keep the file names")
        assert last_texts(model)[-1].endswith("The user adds: keep the file names")
        assert len(kit.engine.conversation) == 1
        assert kit.engine.status().context_percent is None
        await kit.run("go on")
        assert "the summary" in last_texts(model)[0]


async def test_the_tokens_of_a_summary_count_and_are_remembered(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"), text("the summary"))
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: model) as kit:
        await kit.run("hello")
        await kit.run("/compact")
        assert kit.engine.agent.session_usage == USAGE + USAGE
        session_id = kit.engine.session.id
    again = replace(launch, session=SessionStart.NAMED, session_id=session_id)
    async with open_session(again, lambda _: ScriptedModel()) as kit:
        assert kit.engine.agent.session_usage == USAGE + USAGE


async def test_compact_with_an_empty_history_asks_no_model(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/compact")
        assert "There is nothing to compact" in kit.errors[0]
        assert model.requests == []


async def test_a_compaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"), failing())
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("hello")
        await kit.run("/compact")
        assert kit.of(CompactionFinished)[-1].error
        assert len(kit.engine.conversation) == 2
        assert kit.engine.status().context_percent is not None


async def test_init_sends_our_prompt_and_not_the_command(tmp_path: Path) -> None:
    model = ScriptedModel(text("written"), text("again"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("/init")
        assert last_texts(model) == [INIT_PROMPT]
        assert "AGENTS.md" in INIT_PROMPT
        await kit.run("/init mind the tests")
        assert last_texts(model) == [f"{INIT_PROMPT}\n\nThe user adds: mind the tests"]


async def test_a_cancelled_init_is_an_interrupted_turn(tmp_path: Path) -> None:
    async with busy_session(tmp_path) as busy:
        busy.kit.submit("/init")
        busy.kit.session.interrupt()
        await busy.finish()
        assert texts(busy.kit.waiting()) == ["/init"]
        assert len(busy.model.requests) == 1


async def test_the_demo_answers_init_honestly(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/init")
        answer = kit.engine.conversation.messages[-1]
        assert not isinstance(answer, UserMessage)
        assert "that is beyond me" in answer.text


async def test_model_shows_at_once_and_changes_for_the_next_turn(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("ok"), toml=PRICED) as busy:
        busy.kit.submit("/model")
        assert "with a price | m" in busy.kit.said
        busy.kit.submit("/model n")
        assert busy.kit.engine.model_settings.name == "m"
        await busy.finish()
        await busy.kit.run("hello")
        assert [request.model for request in busy.model.requests] == ["m", "n"]


async def test_the_same_model_again_changes_nothing(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, PRICED, demo=False)
    async with open_session(launch, lambda _: ScriptedModel()) as kit:
        await kit.run("/model m")
        assert "m is the model already" in kit.said


@pytest.mark.parametrize("name", ["two words", "x" * 201, "a\x1bb"])
async def test_a_name_that_can_be_none_is_refused(name: str, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, PRICED, demo=False)
    async with open_session(launch, lambda _: ScriptedModel()) as kit:
        assert "the name of one model" in await kit.run(f"/model {name}")
        assert kit.engine.model_settings.name == "m"


async def test_the_demo_has_no_other_model(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/model")
        assert "The built-in demo answers" in kit.said
        await kit.run("/model m")
        assert "The demo has one model only" in kit.errors[0]
