"""docs/keys.md says what the table of actions says, and every action has a binding."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from midturn_cli.commands.help_command import FIXED_KEYS
from midturn_cli.key_labels import key_label, key_labels
from midturn_core.config import KeysConfig
from midturn_core.config_key_names import KEY_NAMES
from midturn_core.config_keys import CONFIG_KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "keys.md").read_text()


def test_the_page_has_exactly_the_actions_of_the_table() -> None:
    rows = [row for row in PAGE.split("## How")[0].splitlines() if row.startswith("| `")]
    assert rows == [
        f"| `{key.name}` | {key.help} | {key_labels(getattr(KeysConfig(), key.name))} |"
        for key in CONFIG_KEYS
        if key.section == "keys"
    ]


def test_the_page_and_the_help_name_the_same_keys_that_stay() -> None:
    rows = [
        row
        for row in PAGE.split("## Keys that stay")[1].split("\n## ")[0].splitlines()
        if row.startswith("| ")
    ]
    assert [row.split(" | ")[0].removeprefix("| ").replace("`", "") for row in rows[1:]] == [
        keys for keys, _ in FIXED_KEYS
    ]


def test_the_table_has_exactly_the_actions_of_the_configuration() -> None:
    names = [key.name for key in CONFIG_KEYS if key.section == "keys"]
    assert names == [field.name for field in fields(KeysConfig)]


@pytest.mark.parametrize("name", sorted(KEY_NAMES))
def test_every_key_name_can_be_bound(name: str) -> None:
    KeyBindings().add(name)(_nothing)


def _nothing(_: KeyPressEvent) -> None:
    pass


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("c-s", "Ctrl-S"),
        ("escape enter", "Alt-Enter"),
        ("escape _", "Alt-_"),
        ("c-x c-u", "Ctrl-X Ctrl-U"),
        ("c-_", "Ctrl-_"),
        ("s-tab", "Shift-Tab"),
        ("c-s-left", "Ctrl-Shift-Left"),
        ("f12", "F12"),
        ("escape", "Esc"),
    ],
)
def test_keys_are_shown_as_people_read_them(written: str, shown: str) -> None:
    assert key_label(written) == shown
