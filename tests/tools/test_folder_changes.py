"""What git says about a folder, without starting anything that the repository names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_core.interrupt import CancelReason, Signal, SignalSource
from midturn_tools.folder_changes import NoRepositoryError, find_folder_changes
from tests.support.git_folder import GitFolder


async def test_staged_and_unstaged_changes_are_one_diff(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit("a.txt", "one\n")
    git.commit("b.txt", "one\n")
    (tmp_path / "a.txt").write_text("staged\n")
    git.run("add", "a.txt")
    (tmp_path / "b.txt").write_text("unstaged\n")
    changes = await find_folder_changes(tmp_path, Signal())
    assert "+staged" in changes.diff
    assert "+unstaged" in changes.diff
    assert changes.untracked == ()


async def test_new_files_are_named_and_ignored_ones_are_not(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit(".gitignore", "*.log\n")
    (tmp_path / "x.log").write_text("x")
    (tmp_path / "new ü.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "one").write_text("x")
    (tmp_path / "folder" / "two").write_text("x")
    changes = await find_folder_changes(tmp_path, Signal())
    assert sorted(changes.untracked) == ["folder/", "new ü.txt"]
    assert changes.diff == ""


async def test_before_the_first_commit_everything_added_is_new(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    git.run("add", "a.txt")
    assert "+one" in (await find_folder_changes(tmp_path, Signal())).diff


async def test_a_folder_inside_the_repository_shows_its_own_changes(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit("inner/a.txt", "one\n")
    git.commit("outer.txt", "one\n")
    for name in ("inner/a.txt", "outer.txt"):
        (tmp_path / name).write_text("two\n")
    changes = await find_folder_changes(tmp_path / "inner", Signal())
    assert "a/a.txt" in changes.diff
    assert "outer.txt" not in changes.diff


async def test_outside_of_a_repository_it_says_so(tmp_path: Path) -> None:
    GitFolder.require()
    with pytest.raises(NoRepositoryError, match="is in no working copy"):
        await find_folder_changes(tmp_path, Signal())


async def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str, folder: Path) -> None:
        return None

    monkeypatch.setattr("midturn_tools.folder_changes.find_program", find_nothing)
    with pytest.raises(NoRepositoryError, match="git is not installed"):
        await find_folder_changes(tmp_path, Signal())


async def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    GitFolder(tmp_path)
    source = SignalSource()
    source.trip(CancelReason.INTERRUPT)
    with pytest.raises(NoRepositoryError, match="interrupted"):
        await find_folder_changes(tmp_path, source)


async def test_it_changes_nothing_in_the_repository(tmp_path: Path) -> None:
    git = GitFolder(tmp_path)
    git.commit("a.txt", "one\n")
    os.utime(tmp_path / "a.txt", (1, 1))
    index = (tmp_path / ".git" / "index").read_bytes()
    changes = await find_folder_changes(tmp_path, Signal())
    assert changes.diff == ""
    assert (tmp_path / ".git" / "index").read_bytes() == index


async def test_nothing_that_the_repository_configures_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mark = tmp_path / "ws", tmp_path / "started"
    folder.mkdir()
    git = GitFolder(folder)
    git.commit("a.txt", "one\n")
    git.commit(".gitattributes", "* filter=evil diff=evil\n")
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {mark}\ncat\n")
    program.chmod(0o755)
    (folder / ".git" / "hooks").mkdir(exist_ok=True)
    (folder / ".git" / "hooks" / "post-index-change").symlink_to(program)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "pager.diff",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
    ):
        git.run("config", "--local", key, str(program))
    git.run("config", "--local", "filter.evil.required", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_PAGER", str(program))
    (folder / "a.txt").write_text("two\n")
    mark.unlink(missing_ok=True)
    changes = await find_folder_changes(folder, Signal())
    assert "+two" in changes.diff
    assert not mark.exists()


async def test_a_git_of_the_folder_is_not_the_one_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    GitFolder(folder).commit("a.txt", "one\n")
    (folder / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:.:{os.environ['PATH']}")
    await find_folder_changes(folder, Signal())
    assert not (tmp_path / "started").exists()
