from __future__ import annotations

import os
import socket
import stat
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from midturn_core.tool import InvalidInputError
from midturn_tools._paths import (
    FileProblem,
    check_file_path,
    check_path_text,
    explain,
    near_paths,
    open_regular,
    path_access,
    short_path,
    shown_path,
)
from tests.support.tool_context import make_tool_context


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    folder.mkdir()
    return folder


def test_a_path_is_relative_to_the_workspace_absolute_or_below_home(
    workspace: Path, home: Path
) -> None:
    context = make_tool_context(workspace)
    resolved = [
        path_access(path, context, writes=False).resolved
        for path in ("a/b.txt", "./a/../b", "/etc/hosts", "//etc/hosts", "~/x", "~", "~user/x")
    ]
    assert resolved == [
        workspace / "a/b.txt",
        workspace / "b",
        Path("/etc/hosts").resolve(),
        Path("/etc/hosts").resolve(),
        home.resolve() / "x",
        home.resolve(),
        workspace / "~user/x",
    ]


def test_two_leading_slashes_are_one_for_every_rule(workspace: Path) -> None:
    access = path_access("//etc/../etc/hosts", make_tool_context(workspace), writes=False)
    assert access.written == Path("/etc/hosts")


def test_links_are_followed_in_the_resolved_path_and_kept_in_the_written_one(
    workspace: Path,
) -> None:
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    access = path_access("link/new.txt", make_tool_context(workspace), writes=True)
    assert access.written == workspace / "link/new.txt"
    assert access.resolved == workspace / "real/new.txt"
    assert access.writes


def test_parent_steps_are_taken_behind_the_link_as_the_kernel_does(
    workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "far/away").mkdir(parents=True)
    (workspace / "link").symlink_to(tmp_path / "far/away")
    access = path_access("link/../x", make_tool_context(workspace), writes=False)
    assert access.resolved == tmp_path.resolve() / "far/x"


def test_a_link_changed_after_the_permission_leads_nowhere_else(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "allowed").write_text("allowed")
    (tmp_path / "secret").write_text("secret")
    (workspace / "link").symlink_to("allowed")
    context = make_tool_context(workspace)
    asked = path_access("link", context, writes=False)
    (workspace / "link").unlink()
    (workspace / "link").symlink_to(tmp_path / "secret")
    access = path_access("link", replace(context, accesses=(asked,)), writes=False)
    assert access == asked
    with os.fdopen(open_regular(access.resolved)) as file:
        assert file.read() == "allowed"


def test_a_permission_to_read_is_none_to_write(workspace: Path) -> None:
    context = make_tool_context(workspace)
    asked = path_access("a", context, writes=False)
    assert path_access("a", replace(context, accesses=(asked,)), writes=True).writes


@pytest.mark.parametrize("swapped", ["folder/file", "folder"])
def test_opening_follows_no_link_that_was_put_in_place_of_a_component(
    workspace: Path, tmp_path: Path, swapped: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("secret")
    (workspace / "folder").mkdir()
    place = workspace / swapped
    if place.exists():
        place.rmdir()
    place.symlink_to(tmp_path / "outside" / ("file" if swapped == "folder/file" else ""))
    with pytest.raises((OSError, FileProblem)):
        open_regular(workspace / "folder/file")


def test_pipes_sockets_devices_and_folders_are_refused_without_being_opened(
    workspace: Path,
) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "dir").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(workspace / "sock"))
        for path, word in (
            (workspace / "pipe", "named pipe"),
            (workspace / "sock", "socket"),
            (workspace / "dir", "folder"),
            (Path("/dev/zero"), "device"),
        ):
            with pytest.raises(FileProblem, match=word):
                open_regular(path)


def test_opening_leaves_no_descriptor_behind(workspace: Path) -> None:
    (workspace / "dir").mkdir()
    (workspace / "file").touch()
    before = len(os.listdir("/dev/fd"))
    os.close(open_regular(workspace / "file"))
    for wrong in ("dir", "gone", "file/x"):
        with pytest.raises((OSError, FileProblem)):
            open_regular(workspace / wrong)
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "d/" * 3_000])
def test_a_path_that_no_system_call_takes_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="^file_path (must|contains)"):
        check_path_text("file_path", path)


@pytest.mark.parametrize("path", ["a/", "a/.", "a/.."])
def test_a_path_for_a_file_must_not_name_a_folder(path: str) -> None:
    with pytest.raises(InvalidInputError, match="must name a file"):
        check_file_path("file_path", path)


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ("don’t.md", "don't.md"),
        ("README.md", "readme.md"),
        (unicodedata.normalize("NFD", "한글.txt"), "한글.txt"),
        ("settings.toml", "setings.toml"),
        ("a — b.txt", "a - b.txt"),
        ("src/app/main.py", "src/ap/main.py"),
    ],
)
def test_a_missing_file_is_answered_with_the_near_name(
    workspace: Path, there: str, asked: str
) -> None:
    target = workspace / there
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    (workspace / "unrelated.bin").touch()
    if (workspace / asked).exists():
        pytest.skip("this file system takes both names for one file")
    assert near_paths(workspace / asked, workspace) == (there,)


def test_near_names_are_never_looked_up_outside_the_workspace(
    workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secrets.txt").touch()
    assert near_paths(tmp_path.resolve() / "secret.txt", workspace) == ()


def test_a_dangling_link_names_its_target(workspace: Path) -> None:
    (workspace / "link").symlink_to("gone")
    access = path_access("link", make_tool_context(workspace), writes=False)
    sentence = explain(FileNotFoundError(2, ""), "link", access, workspace)
    assert str(workspace / "gone") in sentence


def test_paths_are_shown_relative_where_that_is_shorter(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    assert shown_path(workspace / "a/b", workspace) == "a/b"
    assert shown_path(Path("/etc/hosts"), workspace) == "/etc/hosts"
    assert short_path(str(workspace / "a/b")) == "a/b"
    assert short_path(str(home / "a")) == "~/a"
    assert short_path(f"{workspace}x/a") == f"{workspace}x/a"
    assert short_path("two\nlines\r") == "two\\nlines\\r"


def test_a_path_with_a_byte_that_is_no_utf8_can_be_opened(workspace: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (workspace / name).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    check_file_path("file_path", name)
    descriptor = open_regular(
        path_access(name, make_tool_context(workspace), writes=False).resolved
    )
    assert stat.S_ISREG(os.fstat(descriptor).st_mode)
    os.close(descriptor)
