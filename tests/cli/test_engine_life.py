"""Agents come and go: what they used together is gone with them (S1.47-S1.49)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from midturn_cli.launch import Launch
from midturn_core.events import BatchFinished
from midturn_core.model.messages import Outcome, ToolUse
from tests.support.processes import child_processes
from tests.support.scripted_model import ScriptedModel, calls, text
from tests.support.session_kit import make_launch, open_session

ENGINES = 50


def own_threads() -> set[threading.Thread]:
    """All but those of the event loop, which keeps its own for the next to use."""
    return {t for t in threading.enumerate() if not t.name.startswith("asyncio_")}


async def use_an_engine(launch: Launch, uses: Sequence[ToolUse]) -> set[threading.Thread]:
    """Open a session, have calls run together in it, close it; which threads there were."""
    model = ScriptedModel(calls(*uses), text("done"))
    async with open_session(launch, lambda _: model) as kit:
        await kit.run("look")
        [finished] = kit.of(BatchFinished)
        assert finished.report.verdict.parallel
        assert finished.report.count(Outcome.SUCCEEDED) == len(uses)
        return own_threads()


async def test_fifty_engines_used_and_removed_leave_no_thread_task_or_child(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("word\n")
    uses = [ToolUse(f"r{n}", "Read", {"file_path": str(file)}) for n in range(3)]
    uses.append(ToolUse("g", "Grep", {"pattern": "word"}))
    launch = make_launch(tmp_path, "[parallel]\nenabled = true\n", demo=False)
    # The process that ends what others leave behind comes with the first and stays for all.
    await use_an_engine(launch, uses)
    threads, tasks, children = own_threads(), asyncio.all_tasks(), child_processes()
    seen = set[threading.Thread]()
    for _ in range(ENGINES):
        seen |= await use_an_engine(launch, uses)
    assert len(seen - threads) >= ENGINES
    assert own_threads() <= threads
    assert asyncio.all_tasks() <= tasks
    assert child_processes() <= children
