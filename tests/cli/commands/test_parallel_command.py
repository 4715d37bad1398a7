"""/parallel (D20, D21, S1.51)."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from midturn_cli.ui_events import StatusChanged
from midturn_core import paths
from midturn_core.config_loader import ConfigSource, load_config
from midturn_core.events import BatchStarted
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session


def settings(kit: SessionKit) -> tuple[bool, int, int]:
    config = kit.engine.parallel
    return config.enabled, config.max_concurrency, config.batch_slots


async def test_it_is_off_until_the_user_switches_it_on(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        assert settings(kit) == (False, 4, 4)
        await kit.run("/parallel on")
        assert settings(kit) == (True, 4, 4)
        assert kit.of(StatusChanged)[-1].status.parallel
        await kit.run("/parallel off")
        assert settings(kit) == (False, 4, 4)


async def test_the_limits_are_set_one_by_one_or_together(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/parallel max 8")
        await kit.run("/parallel per-batch 2")
        assert settings(kit) == (False, 8, 2)
        await kit.run("/parallel on max 3 per-batch 3")
        assert settings(kit) == (True, 3, 3)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("max 0", "max_concurrency must be 1..10, not 0"),
        ("max 11", "max_concurrency must be 1..10, not 11"),
        ("max", "max needs a whole number 1..10"),
        ("max many", "max needs a whole number 1..10, not 'many'"),
        ("max ٣", "max needs a whole number 1..10"),
        ("max 99999999999999999999999", "max needs a whole number 1..10"),
        ("per-batch 0", "per_batch_max must be 1..4 (max_concurrency), not 0"),
        ("per-batch 5", "per_batch_max must be 1..4 (max_concurrency), not 5"),
        ("mixed", "mixed needs segments or sequential, not ''"),
        ("mixed parallel", "mixed needs segments or sequential, not 'parallel'"),
        ("start now", "start needs streaming or complete, not 'now'"),
        ("start streaming", "Set both: /parallel mixed segments start streaming"),
        ("perbatch 2", "/parallel does not know 'perbatch'"),
        ("on status", "/parallel status only shows"),
        ("status --save", "/parallel status only shows"),
    ],
)
async def test_a_bad_value_names_the_range_and_changes_nothing(
    line: str, says: str, tmp_path: Path
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run(f"/parallel on {line}" if "status" not in line else f"/parallel {line}")
        (error,) = kit.errors
        assert says in error
        assert settings(kit) == (False, 4, 4)


async def test_lowering_max_below_per_batch_says_how_to_set_both(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/parallel per-batch 3")
        await kit.run("/parallel max 2")
        assert "/parallel max 2 per-batch 2" in kit.errors[0]
        await kit.run("/parallel max 2 per-batch 2")
        assert settings(kit) == (False, 2, 2)


async def test_lowering_max_below_the_share_of_an_agent_says_what_stands_against_it(
    tmp_path: Path,
) -> None:
    async with open_session(make_launch(tmp_path, "[parallel]\nper_context_max = 3\n")) as kit:
        await kit.run("/parallel max 2")
        assert "per_context_max must be 1..2 (max_concurrency), not 3" in kit.errors[0]
        assert "[parallel] per_context_max" in kit.errors[0]
        await kit.run("/parallel")
        assert "per agent | 3" in kit.said
        assert "in use | 0 of 4 slots" in kit.said


async def test_mixed_and_start_are_switched_and_shown(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/parallel on mixed segments")
        await kit.run("/parallel start streaming")
        config = kit.engine.parallel
        assert (config.mixed, config.start) == ("segments", "streaming")
        await kit.run("/parallel")
        assert "segments: neighbouring safe calls together" in kit.said
        assert "start while the model still writes" in kit.said
        await kit.run("/parallel mixed sequential")
        assert "/parallel mixed sequential start complete" in kit.errors[0]
        assert kit.engine.parallel == config
        await kit.run("/parallel mixed sequential start complete")
        assert kit.engine.parallel.mixed == "sequential"
        assert kit.engine.parallel.start == "complete"


async def test_a_change_holds_from_the_next_batch_on(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    reads = [
        calls(*(use(f"{step}{name}", "Read", {"file_path": name}) for name in ("a", "b")))
        for step in (1, 2)
    ]
    model = ScriptedModel(reads[0], text("one"), reads[1], text("two"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("go")
        await kit.run("/parallel on")
        await kit.run("go")
        assert [batch.verdict.parallel for batch in kit.of(BatchStarted)] == [False, True]
        assert "requested together in one response" not in model.requests[0].system
        assert "requested together in one response" in model.requests[-1].system


async def test_status_explains_the_last_batch_and_what_may_run_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    batch = calls(use("1", "Read", {"file_path": "a"}), use("2", "TodoWrite", {"todos": []}))
    model = ScriptedModel(batch, text("done"))
    launch = make_launch(tmp_path, "[parallel]\nenabled = true\n", demo=False)
    async with open_session(launch, lambda _: model) as kit:
        await kit.run("/parallel")
        assert "none yet" in kit.said
        await kit.run("go")
        await kit.run("/parallel status")
    assert "TodoWrite (call 2) may change something" in kit.said
    assert "May run together: Read" in kit.said
    assert "0 now" in kit.said


FORMS = [
    ("/parallel on --save", {"enabled": True}),
    ("/parallel --save off", {"enabled": False}),
    ("/parallel max 6 --save", {"max_concurrency": 6}),
    ("/parallel per-batch 2 --save", {"per_batch_max": 2}),
    ("/parallel mixed segments --save", {"mixed": "segments"}),
    (
        "/parallel mixed segments start streaming --save",
        {"mixed": "segments", "start": "streaming"},
    ),
    (
        "/parallel --save",
        {"enabled": False, "max_concurrency": 4, "mixed": "sequential", "start": "complete"},
    ),
]


@pytest.mark.parametrize(("line", "saved"), FORMS, ids=[line for line, _ in FORMS])
async def test_save_writes_the_users_file_and_says_where(
    line: str, saved: dict[str, object], tmp_path: Path
) -> None:
    toml = "# mine\n[log]\nlevel = 'info'\n"
    async with open_session(make_launch(tmp_path, toml)) as kit:
        await kit.run(line)
        assert kit.errors == []
    file = paths.config_file(os.environ)
    named = ", ".join(f"{key} = {json.dumps(value)}" for key, value in saved.items())
    assert f"Saved to {file} for later sessions: {named}." in kit.said
    assert tomllib.loads(file.read_text())["parallel"] == saved
    assert file.read_text().startswith("# mine\n")


async def test_save_makes_the_file_when_there_is_none(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/parallel on --save")
    assert load_config(ConfigSource(os.environ)).config.parallel.enabled


async def test_what_would_break_the_file_is_not_saved(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "[parallel]\nper_batch_max = 4\n")
    async with open_session(launch) as kit:
        await kit.run("/parallel per-batch 2")
        await kit.run("/parallel max 2 --save")
        assert "It holds for this session, but was not saved" in kit.errors[0]
        assert "nothing was changed" not in kit.errors[0]
        assert settings(kit) == (False, 2, 2)
    assert paths.config_file(os.environ).read_text() == "[parallel]\nper_batch_max = 4\n"


async def test_a_file_that_cannot_be_written_is_an_error_and_the_session_has_the_value(
    tmp_path: Path,
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        file = paths.config_file(os.environ)
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.write_text("a file where the folder should be")
        await kit.run("/parallel on --save")
        assert "It holds for this session, but was not saved" in kit.errors[0]
        assert settings(kit) == (True, 4, 4)


async def test_save_says_when_a_variable_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDTURN_PARALLEL_ENABLED", "0")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/parallel on --save")
        assert "MIDTURN_PARALLEL_ENABLED" in kit.said
