"""/clear, /resume and /exit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_cli.launch import SessionStart
from midturn_cli.ui_events import CommandTable, PromptReplayed
from midturn_core.events import TurnStarted
from midturn_core.model.messages import TextBlock
from tests.support.busy_session import busy_session
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import make_launch, open_session, texts


async def past_session(workspace: Path, *prompts: str, demo: bool = True) -> str:
    """A session that is over; its id."""
    model = ScriptedModel(*(text("noted") for _ in prompts))
    async with open_session(make_launch(workspace, demo=demo), lambda _: model) as kit:
        for prompt in prompts:
            await kit.run(prompt)
        return kit.engine.session.id


async def test_clear_begins_a_new_history_and_the_old_one_can_be_resumed(tmp_path: Path) -> None:
    model = ScriptedModel(text("one"), text("two"))
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: model) as kit:
        await kit.run("first words")
        await kit.run("/clear")
        kept_id = kit.said.rpartition("/resume ")[2].strip()
        await kit.run("second words")
        (message,) = model.requests[1].messages
        assert [b.text for b in message.blocks if isinstance(b, TextBlock)] == ["second words"]
        session_id = kit.engine.session.id
    for wanted, prompt in ((kept_id, "first words"), (session_id, "second words")):
        again = replace(launch, session=SessionStart.NAMED, session_id=wanted)
        async with open_session(again, lambda _: ScriptedModel()) as kit:
            assert [event.text for event in kit.of(PromptReplayed)] == [prompt]


async def test_clear_forgets_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    model = ScriptedModel(calls(use("1", "Read", {"file_path": "a"})), text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("go")
        assert kit.engine.read_files.snapshot()
        await kit.run("/clear")
        assert not kit.engine.read_files.snapshot()
        assert kit.engine.status().context_percent is None


async def test_clear_keeps_the_queue(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("/clear")
        busy.kit.submit("afterwards")
        await busy.finish()
        assert "What waits in the queue stays (1)" in busy.kit.said
        assert [texts(turn.inputs) for turn in busy.kit.of(TurnStarted)][-1] == ["afterwards"]
        assert len(busy.model.requests[-1].messages) == 1


async def test_clear_with_nothing_to_clear_says_so_and_leaves_no_session(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/clear")
        assert "There is nothing to clear" in kit.errors[0]
        assert kit.engine.store.list() == []


async def test_clear_keeps_everything_when_the_history_cannot_be_kept(tmp_path: Path) -> None:
    model = ScriptedModel(text("one"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("first words")
        kit.engine.session.log.path.unlink()
        await kit.run("/clear")
        assert "the history cannot be set aside" in kit.errors[0]
        assert len(kit.engine.conversation) == 2


async def test_resume_lists_the_sessions_of_the_folder_newest_first(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    ids = [await past_session(here, f"prompt {n}\nmore") for n in range(2)]
    await past_session(elsewhere, "not this one")
    async with open_session(make_launch(here), lambda _: ScriptedModel(text("x"))) as kit:
        for place, one in enumerate(ids):
            os.utime(kit.engine.store.find(one).path, (1000 + place, 1000 + place))
        await kit.run("mine")
        await kit.run("/resume")
        rows = kit.of(CommandTable)[-1].rows
        assert [(row[0], row[2], row[3]) for row in rows] == [
            ("1", ids[1], "prompt 1 more"),
            ("2", ids[0], "prompt 0 more"),
        ]
        assert all(row[1].endswith("d") for row in rows)
        await kit.run("/resume 2")
        assert kit.host.reopened == [ids[0]]


async def test_a_number_means_the_list_that_was_shown(tmp_path: Path) -> None:
    first = await past_session(tmp_path, "first")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/resume")
        await past_session(tmp_path, "newer")
        await kit.run("/resume 1")
        assert kit.host.reopened == [first]


async def test_an_id_or_its_beginning_opens_a_session(tmp_path: Path) -> None:
    wanted = await past_session(tmp_path, "first")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run(f"/resume {wanted}")
        await kit.run(f"/resume {wanted[:-1]}")
        assert kit.host.reopened == [wanted, wanted]


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("2", "There is no session number 2: the list ends at 1"),
        ("0", "There is no session number 0"),
        ("nonsense", "No session with an id that begins with 'nonsense'"),
    ],
)
async def test_what_is_not_there_opens_nothing(argument: str, says: str, tmp_path: Path) -> None:
    await past_session(tmp_path, "first")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run(f"/resume {argument}")
        assert says in kit.errors[0]
        assert kit.host.reopened == []


async def test_the_session_that_is_open_cannot_be_opened_again(tmp_path: Path) -> None:
    model = ScriptedModel(text("ok"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("hello")
        await kit.run(f"/resume {kit.engine.session.id}")
        assert "is open now" in kit.errors[0]
        await kit.run("/resume")
        assert "There is no other session of this folder" in kit.said


async def test_a_session_that_is_open_elsewhere_is_no_reason_to_leave_this_one(
    tmp_path: Path,
) -> None:
    there = ScriptedModel(text("ok"))
    async with (
        open_session(make_launch(tmp_path), lambda _: there) as other,
        open_session(make_launch(tmp_path)) as kit,
    ):
        await other.run("hello")
        await kit.run(f"/resume {other.engine.session.id}")
        assert "another Midturn" in kit.errors[0]
        assert kit.host.reopened == []


async def test_opening_waits_for_the_turn_and_what_waits_behind_it_is_not_sent(
    tmp_path: Path,
) -> None:
    wanted = await past_session(tmp_path, "first", demo=False)
    async with busy_session(tmp_path) as busy:
        busy.kit.submit(f"/resume {wanted}")
        busy.kit.submit("afterwards")
        assert busy.kit.host.reopened == []
        await busy.finish()
        assert busy.kit.host.reopened == [wanted]
        assert await busy.kit.close() == ["afterwards"]
        assert len(busy.kit.of(TurnStarted)) == 1


async def test_a_start_that_asks_to_choose_shows_the_list(tmp_path: Path) -> None:
    wanted = await past_session(tmp_path, "first")
    launch = replace(make_launch(tmp_path), session=SessionStart.CHOOSE)
    async with open_session(launch) as kit:
        await kit.wait_idle()
        assert wanted in kit.said


@pytest.mark.parametrize("line", ["/exit", "/quit"])
async def test_exit_leaves(line: str, tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run(line)
        assert kit.host.exits == 1
