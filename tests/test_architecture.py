"""Where a library may be imported; directions between packages are import-linter's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("cli/midturn_cli", "core/midturn_core", "tools/midturn_tools")
ONE_MODULE = {
    "anthropic": "core/midturn_core/model/anthropic_client.py",
    "httpx2": "core/midturn_core/model/anthropic_client.py",
    "httpx": "tools/midturn_tools/http.py",
}


def imports(path: Path) -> Iterator[str]:
    """The top-level names of everything a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(str(module)):
                yield module.partition(".")[0]
            case _:
                pass


def importers(library: str) -> list[str]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in files if library in imports(path))


@pytest.mark.parametrize("library", ONE_MODULE)
def test_a_heavy_library_is_imported_in_one_module(library: str) -> None:
    assert importers(library) == [ONE_MODULE[library]]


@pytest.mark.parametrize("library", ["prompt_toolkit", "rich"])
def test_the_terminal_libraries_stay_in_their_folders(library: str) -> None:
    allowed = ("cli/midturn_cli/terminal/", "cli/midturn_cli/render/", "cli/midturn_cli/export/")
    assert [path for path in importers(library) if not path.startswith(allowed)] == []


def test_whoever_types_or_delivers_knows_the_queue_only_by_its_facade() -> None:
    """So that another repository changes none of them (S2.6, S2.34)."""
    storage = {f"midturn_core.queue.{name}" for name in ("repository", "memory", "sqlite", "redis")}
    places = ("core/midturn_core", "cli/midturn_cli/commands", "cli/midturn_cli/terminal")
    files = [file for place in places for file in (ROOT / place).rglob("*.py")]
    users = [file for file in files if file.parent.name != "queue"]
    assert len(users) > 100
    for file in users:
        modules = {
            node.module
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        assert not modules & storage, file
