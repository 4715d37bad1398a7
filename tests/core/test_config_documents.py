"""The documentation of the configuration says what the table says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midturn_core.config import Config
from midturn_core.config_keys import CONFIG_KEYS, SECTIONS, ConfigKey

DOCUMENT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def built_in(key: ConfigKey) -> str:
    value = getattr(getattr(Config(), key.section), key.name)
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return json.dumps(value)
        case _:
            return str(value)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_document_has_exactly_the_keys_of_the_section(section: str) -> None:
    part = DOCUMENT.split(f"### [{section}]\n", 1)[1].split("\n#", 1)[0]
    rows = [row for row in part.splitlines() if row.startswith("| `")]
    assert rows == [
        f"| `{key.name}` | {key.help} | {key.kind.allowed} | `{built_in(key)}` |"
        for key in CONFIG_KEYS
        if key.section == section
    ]
