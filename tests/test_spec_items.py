"""tests/spec_items.toml: every item of the specification is there, with tests that exist."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("spec_items.toml")
KINDS = {"M", "D", "L", "T", "N"}
NEEDS_TESTS = {"M", "D", "T"}
KEYS = {"id", "kind", "about", "tests", "where", "pending", "left_out"}


def problems(document: dict[str, Any]) -> Iterator[str]:
    """Everything that is wrong with a table, each in one sentence."""
    for key in document.keys() - {"sections", "extra", "item"}:
        yield f"unknown key {key}"
    items: list[dict[str, Any]] = document.get("item", [])
    yield from _wrong_ids(document, [item.get("id", "") for item in items])
    for item in items:
        for problem in _wrong_item(item):
            yield f"{item.get('id')}: {problem}"


def _wrong_ids(document: dict[str, Any], found: list[str]) -> Iterator[str]:
    sections: dict[str, tuple[int, int]] = document.get("sections", {})
    expected = {
        f"{section}{'' if section == 'D' else '.'}{number}"
        for section, (first, last) in sections.items()
        for number in range(first, last + 1)
    } | set(document.get("extra", []))
    for identifier in sorted(expected - set(found)):
        yield f"{identifier} is not listed"
    for identifier in sorted(set(found) - expected):
        yield f"{identifier} is no item of the sections"
    for identifier, times in Counter(found).items():
        if times > 1:
            yield f"{identifier} is listed {times} times"


def _wrong_item(item: dict[str, Any]) -> Iterator[str]:
    for key in item.keys() - KEYS:
        yield f"unknown key {key}"
    kinds = set(str(item.get("kind", "")).split())
    if not kinds or kinds - KINDS:
        yield f"the kind is one or more of {', '.join(sorted(KINDS))}"
    if not item.get("about"):
        yield "it does not say what it is about"
    if not item.keys() & {"tests", "where", "pending", "left_out"}:
        yield "it has no tests, and no reason why"
    if kinds & NEEDS_TESTS and not item.keys() & {"tests", "pending", "left_out"}:
        yield "an item of this kind needs tests"
    if "left_out" in item and "tests" in item:
        yield "it is left out and has tests"
    if "where" in item and not (ROOT / str(item["where"])).is_file():
        yield f"there is no file {item['where']}"
    for test in item.get("tests", []):
        path, _, name = str(test).partition("::")
        if name not in names_of_tests(path):
            yield f"there is no test {test}"


@cache
def names_of_tests(path: str) -> frozenset[str]:
    """The names of the tests of a file, which is read, not run."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, functions) and node.name.startswith("test_")
    )


def test_every_item_has_tests_that_exist_or_a_reason() -> None:
    assert list(problems(tomllib.loads(TABLE.read_text(encoding="utf-8")))) == []


GOOD = '[[item]]\nid = "S9.1"\nkind = "M"\nabout = "x"\n'
HERE = '"tests/test_spec_items.py::test_every_item_has_tests_that_exist_or_a_reason"'
SECTION = "[sections]\nS9 = [1, 1]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SECTION, "S9.1 is not listed"),
        (f"[sections]\nS9 = [1, 0]\n{GOOD}tests = [{HERE}]", "S9.1 is no item of the sections"),
        (f"{SECTION}{GOOD}tests = [{HERE}]\n{GOOD}pending = 'x'", "S9.1 is listed 2 times"),
        (f"{SECTION}{GOOD}", "S9.1: it has no tests, and no reason why"),
        (f"{SECTION}{GOOD}where = 'README.md'", "S9.1: an item of this kind needs tests"),
        (f"{SECTION}{GOOD}tests = ['tests/a.py::test_b']", "there is no test tests/a.py::test_b"),
        (f"{SECTION}{GOOD}tests = [{HERE}]\nwhere = 'no.md'", "S9.1: there is no file no.md"),
        (f"{SECTION}{GOOD}tests = [{HERE}]\nwhy = 'x'", "S9.1: unknown key why"),
        (f"items = []\n{SECTION}{GOOD}tests = [{HERE}]", "unknown key items"),
    ],
)
def test_what_is_wrong_with_the_table_is_told(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(tomllib.loads(text)))


def test_an_item_between_two_numbers_is_extra() -> None:
    item = GOOD.replace("S9.1", "S9.1b") + f"tests = [{HERE}]\n"
    text = f'extra = ["S9.1b"]\n{SECTION}{GOOD}tests = [{HERE}]\n{item}'
    assert list(problems(tomllib.loads(text))) == []
