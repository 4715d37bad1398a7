"""bug_cases.toml names tests that exist, and each of them cites its case."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
AREAS: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "bug_cases.toml").read_text())
CLAIMS = [(case, test) for area in AREAS.values() for case in area for test in area[case]]


@cache
def docstrings(file: str) -> dict[str, str]:
    """The tests of a file and what they say about themselves."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize(("case", "test"), CLAIMS, ids=[" ".join(claim) for claim in CLAIMS])
def test_the_test_of_a_case_exists_and_cites_it(case: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert case in docstrings(file)[name]


def test_every_case_has_a_test() -> None:
    assert [case for area in AREAS.values() for case, tests in area.items() if not tests] == []
