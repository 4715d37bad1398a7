"""Saving one value into the user's file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from midturn_core.config_loader import add_value, save_value
from midturn_core.errors import ConfigError


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[parallel]\nenabled = true\n"),
        (
            "# mine\n[parallel]   # here\nenabled = false # off\n\n[ui]\nkeys = 'vi'\n",
            "# mine\n[parallel]   # here\nenabled = true # off\n\n[ui]\nkeys = 'vi'\n",
        ),
        ("[ui]\nplain = true\n", "[ui]\nplain = true\n\n[parallel]\nenabled = true\n"),
        ("parallel.fail_fast = true\n", "parallel.fail_fast = true\nparallel.enabled = true\n"),
        ("parallel = { enabled = false }\n", "parallel = { enabled = true }\n"),
    ],
)
def test_everything_else_in_the_file_stays(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(before)
    save_value(file, "parallel", "enabled", True)
    assert file.read_text() == after


def test_a_new_file_and_its_folder_are_the_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "midturn" / "config.toml"
    save_value(file, "parallel", "max_concurrency", 8)
    assert file.read_text() == "[parallel]\nmax_concurrency = 8\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_mode_of_a_file_and_a_link_to_it_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("[ui]\n")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    save_value(link, "ui", "plain", True)
    assert link.is_symlink()
    assert real.read_text() == "[ui]\nplain = true\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "dotfiles.toml"]


@pytest.mark.parametrize("text", ["[ui\n", "parallel = 3\n", "[[parallel]]\nenabled = false\n"])
def test_a_file_that_cannot_take_the_value_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        save_value(file, "parallel", "enabled", True)
    assert file.read_text() == text


def test_an_unknown_key_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[parallel\] speed"):
        save_value(tmp_path / "config.toml", "parallel", "speed", 3)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "midturn").write_text("a file")
    with pytest.raises(ConfigError, match=r"config\.toml: cannot be"):
        save_value(tmp_path / "midturn" / "config.toml", "ui", "plain", True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[permissions]\nallow = ["Bash(make)"]\n'),
        (
            "[permissions]\nallow = [\n    'Bash(ls)', # looks\n] # mine\n",
            "[permissions]\nallow = [\n    'Bash(ls)', # looks\n    \"Bash(make)\",\n] # mine\n",
        ),
        (
            "[permissions]\nallow = ['Bash(ls)']\n",
            "[permissions]\nallow = ['Bash(ls)', \"Bash(make)\"]\n",
        ),
        (
            "permissions = { deny = ['Bash(rm)'] }\n",
            "permissions = { deny = ['Bash(rm)'], allow = [\"Bash(make)\"]}\n",
        ),
        ("[permissions]\nallow = ['Bash(make)']\n", "[permissions]\nallow = ['Bash(make)']\n"),
    ],
)
def test_a_value_is_added_to_a_list_and_everything_else_stays(
    tmp_path: Path, before: str, after: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(before)
    add_value(file, "permissions", "allow", "Bash(make)")
    assert file.read_text() == after


@pytest.mark.parametrize("value", ["'Bash(ls)'", "3", "{}"])
def test_a_value_is_not_added_to_what_is_no_list(tmp_path: Path, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text := f"[permissions]\nallow = {value}\n")
    with pytest.raises(ConfigError, match=r"\[permissions\] allow must be a list"):
        add_value(file, "permissions", "allow", "Bash(make)")
    assert file.read_text() == text
