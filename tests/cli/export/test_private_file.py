"""A file of the user's is written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from midturn_cli.export.private_file import PrivateFileError, write_private


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "a", b"data", replace=False)
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert names(tmp_path) == ["a"]


def test_an_existing_file_is_replaced_only_when_wanted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(PrivateFileError, match="exists already; --force replaces it"):
        write_private(tmp_path / "a", b"new", replace=False)
    assert (tmp_path / "a").read_bytes() == b"old"
    write_private(tmp_path / "a", b"new", replace=True)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_private(tmp_path / "link", b"data", replace=False)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"data"


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_no_regular_file_is_left_alone(tmp_path: Path, replace: bool) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PrivateFileError, match="is no regular file"):
        write_private(tmp_path / "fifo", b"data", replace=replace)
    with pytest.raises(PrivateFileError, match="is a folder"):
        write_private(tmp_path / "folder", b"data", replace=replace)
    with pytest.raises(PrivateFileError, match="there is no folder"):
        write_private(tmp_path / "none" / "a", b"data", replace=replace)
    assert names(tmp_path) == ["fifo", "folder"]
