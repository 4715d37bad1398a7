"""Replacing a file as a whole."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from midturn_tools._atomic import FileState, write_file
from midturn_tools._paths import FileProblem


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "a.txt"
    path.write_bytes(b"old")
    return path


def test_a_file_that_changed_after_it_was_examined_is_left_alone(target: Path) -> None:
    state = FileState.of(target.stat())
    target.write_bytes(b"someone else's")
    with pytest.raises(FileProblem, match="was changed by someone else"):
        write_file(target, b"new", state)
    assert target.read_bytes() == b"someone else's"
    assert os.listdir(target.parent) == ["a.txt"]


def test_a_file_that_vanished_after_it_was_examined_is_not_made_again(target: Path) -> None:
    state = FileState.of(target.stat())
    target.unlink()
    with pytest.raises(FileProblem, match="was removed by someone else"):
        write_file(target, b"new", state)
    assert os.listdir(target.parent) == []


def test_a_file_that_appeared_meanwhile_is_not_overwritten(target: Path) -> None:
    with pytest.raises(FileProblem, match="was created by someone else"):
        write_file(target, b"new", None)
    assert target.read_bytes() == b"old"


def test_a_short_write_and_a_full_disk_leave_the_old_file_and_no_temporary_one(
    target: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel takes four bytes and refuses the next write, as a disk does that fills up.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write_file(target, b"0123456789", FileState.of(target.stat()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == ["a.txt"]


def test_a_reader_who_has_the_file_open_sees_the_old_bytes_to_the_end(target: Path) -> None:
    with target.open("rb") as reader:
        write_file(target, b"new", FileState.of(target.stat()))
        assert reader.read() == b"old"
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes by descriptor")
def test_extended_attributes_are_kept(target: Path) -> None:
    try:
        os.setxattr(target, "user.midturn", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    write_file(target, b"new", FileState.of(target.stat()))
    assert os.getxattr(target, "user.midturn") == b"kept"


def test_nothing_is_written_through_a_link_put_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "folder").symlink_to("outside")
    with pytest.raises(OSError):
        write_file(tmp_path.resolve() / "folder/new.txt", b"x", None)
    assert os.listdir(tmp_path / "outside") == []
