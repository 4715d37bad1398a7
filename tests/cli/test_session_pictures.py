"""A session with pictures: what waits, what the model gets, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_cli.ports import KeptPicture
from midturn_cli.ui_events import PromptReplayed
from midturn_core.model.client import ModelRequest
from midturn_core.model.messages import ImageBlock, TextBlock, UserMessage
from midturn_core.pictures import read_picture
from midturn_core.queue.attachments import attachments_of
from midturn_core.queue.types import QueuedInputPriority
from tests.support.busy_session import busy_session
from tests.support.clipboard_owner import offer
from tests.support.picture_files import gif, png
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import SessionKit, make_launch, open_session

SHOT = read_picture(png(), "shot.png")
OTHER = read_picture(gif(), "other.gif")


def said_last(request: ModelRequest) -> list[str]:
    message = request.messages[-1]
    assert isinstance(message, UserMessage)
    return [
        block.text if isinstance(block, TextBlock) else f"<{block.name}>"
        for block in message.blocks
    ]


@pytest.mark.parametrize("tier", QueuedInputPriority)
async def test_a_queued_picture_waits_as_a_reference_and_is_delivered_with_its_text(
    tmp_path: Path, tier: QueuedInputPriority
) -> None:
    async with busy_session(tmp_path, text("seen")) as busy:
        assert busy.kit.submit("look", tier, attachments=[SHOT]) == ""
        [item] = busy.kit.waiting()
        [ref] = attachments_of(item)
        file = busy.kit.engine.session.files.folder / ref.file_id
        assert file.read_bytes() == SHOT.data
        await busy.finish()
        assert said_last(busy.model.requests[-1]) == ["look", "<shot.png>"]


async def test_the_queue_says_how_many_pictures_an_input_has(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("seen")) as busy:
        busy.kit.submit("look", attachments=[SHOT])
        busy.kit.submit("and these", attachments=[SHOT, OTHER])
        busy.kit.submit("/queue")
        assert "look · +1 picture\n" in busy.kit.said
        assert "and these · +2 pictures" in busy.kit.said
        await busy.finish()
        assert said_last(busy.model.requests[-1]) == [
            "look",
            "<shot.png>",
            "and these",
            "<shot.png>",
            "<other.gif>",
        ]


@pytest.mark.parametrize("command", ["/now", "/next", "/later"])
async def test_the_commands_for_tiers_take_pictures_along(tmp_path: Path, command: str) -> None:
    async with busy_session(tmp_path, text("seen")) as busy:
        busy.kit.submit(f"{command} look", attachments=[SHOT])
        await busy.finish()
        assert said_last(busy.model.requests[-1]) == ["look", "<shot.png>"]


@pytest.mark.parametrize("line", ["/compact x", "!ls"])
async def test_what_is_not_for_the_model_takes_no_picture(tmp_path: Path, line: str) -> None:
    async with busy_session(tmp_path) as busy:
        problem = busy.kit.submit(line, attachments=[SHOT])
        assert "Pictures go with text for the model only" in problem
        assert busy.kit.waiting() == []


async def test_a_picture_that_cannot_be_kept_leaves_the_line_with_the_user(tmp_path: Path) -> None:
    model = ScriptedModel(text("hi"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        folder = kit.engine.session.files.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way")
        problem = kit.submit("look", attachments=[SHOT])
        assert problem.startswith("The picture shot.png cannot be kept in the session")
        assert model.requests == []
        await kit.run("hello")
        assert said_last(model.requests[0]) == ["hello"]


async def test_clear_keeps_the_pictures_of_what_waits_and_of_what_was(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("seen")) as busy:
        busy.kit.submit("/clear", QueuedInputPriority.NEXT)
        busy.kit.submit("look", attachments=[SHOT])
        await busy.finish()
        assert said_last(busy.model.requests[-1]) == ["look", "<shot.png>"]


async def test_a_first_prompt_attaches_the_pictures_it_names(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png())
    model = ScriptedModel(text("seen"))
    launch = make_launch(tmp_path, demo=False)
    async with open_session(launch, lambda _: model) as kit:
        assert kit.session.submit_line("what is @shot.png?") == ""
        await kit.wait_idle()
        assert said_last(model.requests[0]) == ["what is @shot.png?", "<shot.png>"]


async def test_a_picture_counts_in_the_context_by_its_pixels(tmp_path: Path) -> None:
    large = read_picture(png(8000, 8000), "large.png")
    model = ScriptedModel(text("seen"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        kit.submit("x", attachments=[large])
        await kit.wait_idle()
        await kit.run("/context")
        assert "your messages | ~1,601 | " in kit.said
        assert kit.of(PromptReplayed) == []
        assert isinstance(model.requests[0].messages[0].blocks[1], ImageBlock)


@pytest.fixture
def clipboard(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Wayland clipboard with a picture."""
    programs = tmp_path_factory.mktemp("programs")
    offer(programs, "wl-paste", {"image/png": SHOT.data})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.delenv("DISPLAY", raising=False)


async def attached(kit: SessionKit) -> KeptPicture:
    kept = await kit.session.clipboard_picture()
    assert isinstance(kept, KeptPicture), kept
    assert kept.path.is_file()
    return kept


@pytest.mark.usefixtures("clipboard")
async def test_a_picture_from_the_clipboard_that_is_never_sent_leaves_no_file(
    tmp_path: Path,
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        kept = await attached(kit)
        assert await attached(kit) == kept
    assert not kept.path.exists()


@pytest.mark.usefixtures("clipboard")
async def test_a_picture_that_was_sent_stays_though_it_is_attached_again_and_deleted(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(text("seen"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        kept = await attached(kit)
        assert kit.submit("look", attachments=[kept.picture]) == ""
        await kit.wait_idle()
        await attached(kit)
    assert kept.path.read_bytes() == SHOT.data


@pytest.mark.usefixtures("clipboard")
async def test_a_picture_of_a_draft_that_is_kept_for_later_stays(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        kept = await attached(kit)
        await kit.session.close(f"about @{kept.path} and more")
        assert kept.path.is_file()
