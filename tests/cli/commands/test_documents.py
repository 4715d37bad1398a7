"""docs/commands.md and /help speak of exactly the commands there are."""

from __future__ import annotations

import re
from pathlib import Path

from midturn_cli.commands.all_commands import all_commands

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def documented() -> dict[str, str]:
    """When each command of the table takes effect."""
    rows = [line.strip("| ").split(" | ") for line in page().splitlines() if "| `/" in line]
    return {row[0].strip("`").split()[0][1:]: row[2] for row in rows if len(row) == 3}


def page() -> str:
    return PAGE.read_text()


def test_the_page_has_a_row_for_each_command_and_no_other() -> None:
    assert list(documented()) == [command.name for command in all_commands()]


def test_the_page_says_when_each_takes_effect() -> None:
    assert documented() == {command.name: command.timing for command in all_commands()}


def test_every_command_the_page_mentions_exists() -> None:
    names = {name for command in all_commands() for name in (command.name, *command.aliases)}
    mentioned = set(re.findall(r"(?m)(?:`|^    )/([a-z]+)(?=[ `])", page()))
    assert mentioned <= names
