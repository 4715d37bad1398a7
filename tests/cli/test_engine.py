"""What the wired engine lets the model have."""

from __future__ import annotations

import asyncio
from pathlib import Path

from midturn_cli.shown_number import ShownNumber
from midturn_cli.ui_events import StatusChanged
from midturn_core.model.messages import ToolUse, ToolUseResult, UserMessage
from tests.support.agent_kit import until
from tests.support.gated_site import gated_site
from tests.support.scripted_model import ScriptedModel, calls, text
from tests.support.session_kit import SessionKit, make_launch, open_session


async def test_the_status_follows_the_use_of_the_pool(tmp_path: Path) -> None:
    with gated_site(3) as site:
        fetches = [ToolUse(f"f{n}", "WebFetch", {"url": site.url(n)}) for n in range(3)]
        model = ScriptedModel(calls(*fetches), text("done"))
        rules = (
            "[parallel]\nenabled = true\n"
            f'[web]\nallow_hosts = ["{site.host}"]\n[permissions]\nallow = ["WebFetch"]\n'
        )
        launch = make_launch(tmp_path, rules, demo=False)
        async with open_session(launch, lambda _: model) as kit:
            kit.submit("look")
            await until(lambda: shown_slots(kit)[-1:] == [3])
            assert kit.of(StatusChanged)[-1].status.slots_by_agent == (("main", 3),)
            site.gates[1].open()
            await until(lambda: shown_slots(kit)[-1:] == [2])
            site.open_all()
            await kit.wait_idle()
            assert shown_slots(kit)[-1] == 0


async def test_a_number_that_changes_in_bursts_is_shown_once_per_round() -> None:
    numbers, shown = [0], list[int]()
    watched = ShownNumber(lambda: numbers[-1], lambda: shown.append(numbers[-1]))
    for burst in ((1, 2, 3), (2, 3), (0,)):
        for number in burst:
            numbers.append(number)
            watched.changed()
        await asyncio.sleep(0)
    assert shown == [3, 0]


def test_a_number_that_changes_after_the_loop_has_ended_is_not_shown() -> None:
    shown = list[int]()
    ShownNumber(lambda: 1, lambda: shown.append(1)).changed()
    assert shown == []


def shown_slots(kit: SessionKit) -> list[int]:
    return [event.status.slots_in_use for event in kit.of(StatusChanged)]


async def test_a_search_of_the_folder_shows_no_secret_that_reading_would_ask_about(
    tmp_path: Path,
) -> None:
    for name in ("app.py", ".env", "server.pem", "closed.txt"):
        (tmp_path / name).write_text(f"word = {name}\n")
    search = ToolUse("a", "Grep", {"pattern": "word", "hidden": True})
    model = ScriptedModel(calls(search), text("done"))
    rules = '[permissions]\ndeny = ["Grep(closed.txt)"]\n'
    async with open_session(make_launch(tmp_path, rules, demo=False), lambda _: model) as kit:
        await kit.run("search")
    last = model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    [result] = [block for block in last.blocks if isinstance(block, ToolUseResult)]
    assert "app.py" in result.content
    assert all(name not in result.content for name in (".env", "server.pem", "closed.txt"))
