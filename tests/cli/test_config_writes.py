"""The configuration file is written off the loop, one write after another."""

from __future__ import annotations

import asyncio
import threading
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from midturn_cli.ui_events import ThemeChanged
from midturn_core.errors import ConfigError
from midturn_core.events import Notice, ToolResultReady
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from tests.support.agent_kit import until
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session

DEADLINE = 30.0


class AlwaysAskHandler:
    async def resolve(self, ask: Ask) -> AskReply:
        return AskReply(AskAnswer.ALWAYS)


def ignore(_: ConfigError | None) -> None:
    pass


@contextmanager
def slow_disk(kit: SessionKit) -> Generator[Callable[[], None]]:
    """A write that does not end before the given function is called."""
    free = threading.Event()
    kit.engine.config_writes.start(lambda: _wait(free), ignore)
    try:
        yield free.set
    finally:
        free.set()


def _wait(free: threading.Event) -> None:
    assert free.wait(DEADLINE)


async def test_a_theme_is_used_before_it_is_saved(tmp_path: Path) -> None:
    launch = make_launch(tmp_path)
    async with open_session(launch) as kit:
        with slow_disk(kit) as end:
            kit.submit("/theme light --save")
            await until(lambda: bool(kit.of(ThemeChanged)))
            kit.submit("/parallel on --save")
            await until(lambda: kit.engine.parallel.enabled)
            assert "Saved to" not in kit.said
            end()
            await kit.wait_idle()
        assert kit.said.count("Saved to") == 2
    saved = tomllib.loads(launch.loaded.file.read_text())
    assert (saved["ui"], saved["parallel"]) == ({"theme": "light"}, {"enabled": True})


async def test_a_call_that_is_always_allowed_does_not_wait_for_the_file(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, demo=False)
    model = ScriptedModel(calls(use("1", "Bash", {"command": "touch made"})), text("done"))
    async with open_session(launch, lambda _: model, AlwaysAskHandler()) as kit:
        with slow_disk(kit) as end:
            kit.submit("go")
            await until(lambda: bool(kit.of(ToolResultReady)))
            assert not any("Always allowed" in notice.text for notice in kit.of(Notice))
            end()
            await kit.wait_idle()
        assert any("Always allowed" in notice.text for notice in kit.of(Notice))
        assert [rule.text for rule in kit.engine.authorizer.stored_rules.rules()]
    assert "touch" in launch.loaded.file.read_text()


async def test_a_rule_that_the_file_cannot_have_holds_for_the_session(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, demo=False)
    model = ScriptedModel(calls(use("1", "Bash", {"command": "touch made"})), text("done"))
    async with open_session(launch, lambda _: model, AlwaysAskHandler()) as kit:
        launch.loaded.file.parent.mkdir(parents=True, exist_ok=True)
        launch.loaded.file.write_text("no [ configuration")
        await kit.run("go")
        authorizer = kit.engine.authorizer
        assert [rule.text for rule in authorizer.session_rules.rules()]
        assert authorizer.stored_rules.rules() == ()
        assert any("was not stored" in notice.text for notice in kit.of(Notice))


async def test_what_is_being_written_at_the_end_is_written(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, demo=False)
    model = ScriptedModel(calls(use("1", "Bash", {"command": "touch made"})), text("done"))
    async with open_session(launch, lambda _: model, AlwaysAskHandler()) as kit:
        with slow_disk(kit) as end:
            kit.submit("go")
            await until(lambda: bool(kit.of(ToolResultReady)))
            asyncio.get_running_loop().call_later(0.01, end)
            await kit.close()
    assert "touch" in launch.loaded.file.read_text()
