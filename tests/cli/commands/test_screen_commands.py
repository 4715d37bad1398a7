"""/expand and /theme: what of the session is on screen, and how it looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_cli.finished_results import KEPT_CHARS, KEPT_RESULTS, FinishedResults
from midturn_cli.ui_events import CommandOutput, ResultExpanded, ThemeChanged
from midturn_core.config_loader import ConfigSource, load_config
from tests.support.busy_session import busy_session
from tests.support.screen_events import call_ready, call_started
from tests.support.scripted_model import ScriptedModel, calls, text, use
from tests.support.session_kit import SessionKit, make_launch, open_session


def expanded(kit: SessionKit) -> list[ResultExpanded]:
    return kit.of(ResultExpanded)


async def test_expand_shows_the_newest_result_or_the_one_of_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first file\n")
    (tmp_path / "b.txt").write_text("second file\n")
    reads = calls(use("1", "Read", {"file_path": str(tmp_path / "a.txt")}))
    more = calls(use("2", "Read", {"file_path": str(tmp_path / "b.txt")}))
    model = ScriptedModel(reads, more, text("done"))
    async with open_session(make_launch(tmp_path, demo=False), lambda _: model) as kit:
        await kit.run("read both")
        kit.submit("/expand")
        kit.submit("/expand 2")
        newest, older = expanded(kit)
        assert ("second file" in newest.result.content, newest.number) == (True, 1)
        assert ("first file" in older.result.content, older.number) == (True, 2)
        assert newest.title.endswith("b.txt")
        kit.submit("/expand 3")
        kit.submit("/expand x")
        beyond, no_number = kit.errors
        assert "counted from the newest 2 are kept" in beyond
        assert "must be a whole number" in no_number


async def test_expand_without_any_result_says_so(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit("/expand")
        assert "no tool has run in this session" in kit.said


async def test_expand_and_theme_work_while_a_turn_runs(tmp_path: Path) -> None:
    async with busy_session(tmp_path, text("a")) as busy:
        busy.kit.submit("/theme light")
        busy.kit.submit("/expand")
        assert busy.kit.of(ThemeChanged) == [ThemeChanged("light")]


def test_old_results_give_way_when_there_are_many_or_they_are_long() -> None:
    kept = FinishedResults()
    for number in range(KEPT_RESULTS + 5):
        kept.observe(call_started(number, 1))
        kept.observe(call_ready(number, content="x"))
    assert len(list(kept.newest_first)) == KEPT_RESULTS
    assert kept.newest_first[0].title == f"src/{KEPT_RESULTS + 4}.py"
    kept.observe(call_started(1, 1, title="long"))
    kept.observe(call_ready(1, content="x" * (2 * KEPT_CHARS)))
    (only,) = list(kept.newest_first)
    assert len(only.result.content) == KEPT_CHARS


async def test_theme_changes_the_colours_and_says_which_is_used(tmp_path: Path) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        for line in ("/theme", "/theme light", "/theme"):
            kit.submit(line)
        assert kit.of(ThemeChanged) == [ThemeChanged("light")]
        said = [output.text for output in kit.of(CommandOutput)]
        assert said[0].startswith("The theme is auto: here dark")
        assert said[1:] == [
            "The theme is light.",
            "The theme is light. /theme dark, light or auto changes it.",
        ]


async def test_a_saved_theme_holds_for_later_sessions(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "[ui]\n# mine\nkeys = 'vi'\n")
    async with open_session(launch) as kit:
        await kit.run("/theme light --save")
    file = launch.loaded.file
    assert "# mine" in file.read_text()
    assert load_config(ConfigSource({}, file)).config.ui.theme == "light"


@pytest.mark.parametrize("line", ["/theme blue", "/theme dark light"])
async def test_a_theme_that_is_none_is_refused_with_those_there_are(
    tmp_path: Path, line: str
) -> None:
    async with open_session(make_launch(tmp_path)) as kit:
        kit.submit(line)
        assert "example: /theme light" in kit.said
        assert kit.of(ThemeChanged) == []
