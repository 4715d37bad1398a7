"""The user's own ``!`` lines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midturn_core.interrupt import CancelReason, SignalSource
from midturn_tools.user_shell import run_user_command


async def test_a_line_runs_with_the_users_environment_and_keeps_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "mine")
    result = await run_user_command("echo $MY_API_KEY; pwd; exit 3", tmp_path, SignalSource())
    assert result.output.split() == ["mine", str(tmp_path)]
    assert result.exit_code == 3


async def test_a_line_gets_no_input(tmp_path: Path) -> None:
    result = await run_user_command("cat; echo over", tmp_path, SignalSource())
    assert (result.output, result.exit_code) == ("over\n", 0)


async def test_an_interrupted_line_says_so_and_keeps_what_it_printed(tmp_path: Path) -> None:
    signal = SignalSource()
    mark = tmp_path / "begun"
    running = asyncio.create_task(
        run_user_command(f"echo begun; touch {mark}; sleep 600", tmp_path, signal)
    )
    while not mark.exists():  # noqa: ASYNC110  # a file has no event
        await asyncio.sleep(0.01)
    signal.trip(CancelReason.INTERRUPT)
    result = await running
    assert (result.output, result.exit_code) == ("begun\n", None)
