"""The kit itself: a real session runs turns of the demo and of a script."""

from __future__ import annotations

from pathlib import Path

from midturn_core.events import TurnEnded, TurnEndReason
from tests.support.scripted_model import ScriptedModel, text
from tests.support.session_kit import make_launch, open_session


async def test_the_demo_reads_a_file_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("read a.txt")
        (ended,) = kit.of(TurnEnded)
    assert (ended.reason, ended.steps) == (TurnEndReason.DONE, 2)


async def test_a_scripted_model_gets_the_request(tmp_path: Path) -> None:
    model = ScriptedModel(text("hello"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("hi")
    assert len(model.requests) == 1


async def test_the_configuration_file_is_read(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "[parallel]\nenabled = true\n")
    async with open_session(launch) as kit:
        assert kit.engine.parallel.enabled
