"""/diff: what changed, shown on request only."""

from __future__ import annotations

from pathlib import Path

from midturn_cli.ui_events import CommandOutput, CommandTable
from tests.support.git_folder import GitFolder
from tests.support.session_kit import make_launch, open_session


async def test_it_shows_changes_and_new_files(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit("a.txt", "one\n")
    (tmp_path / "a.txt").write_text("two\n~~~~\n")
    (tmp_path / "new.txt").write_text("new\n")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/diff")
        (output,) = kit.of(CommandOutput)
        assert output.markdown
        assert output.text.startswith("~~~~~diff\n")
        assert output.text.endswith("\n~~~~~")
        assert "-one\n+two\n" in output.text
        assert kit.of(CommandTable)[-1].rows == (("new.txt",),)


async def test_without_changes_it_says_so(tmp_path: Path) -> None:
    GitFolder(tmp_path).commit("a.txt", "one\n")
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/diff")
        assert "Nothing has changed since the last commit." in kit.said


async def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    GitFolder.require()
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/diff")
        assert "is in no working copy of a git repository" in kit.errors[0]


async def test_a_long_diff_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit("a.txt", "")
    (tmp_path / "a.txt").write_text("line\n" * 1000)
    async with open_session(make_launch(tmp_path)) as kit:
        await kit.run("/diff")
        assert "605 more lines: `!git diff` shows them." in kit.said
