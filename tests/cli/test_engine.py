"""What the wired engine lets the model have."""

from __future__ import annotations

from pathlib import Path

from midturn_core.model.messages import ToolUse, ToolUseResult, UserMessage
from tests.support.scripted_model import ScriptedModel, calls, text
from tests.support.session_kit import make_launch, open_session


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
