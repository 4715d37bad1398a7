"""Markdown becomes HTML in a child: the same HTML whatever happens to the child."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from midturn_cli.export.html_child import markdown_child
from midturn_cli.export.html_markdown import html_of

TEXTS = ["# 안녕\n\n- one\n- two", "```python\nx = 'line'\n```\n\nend", "", "\ud800 \x00 \u2028"]


def test_the_child_gives_the_same_html() -> None:
    with markdown_child() as convert:
        assert [convert(text) for text in TEXTS] == [html_of(text) for text in TEXTS]


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/true", "/bin/echo"])
def test_without_a_child_the_html_is_the_same(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with markdown_child() as convert:
        assert [convert(text) for text in TEXTS] == [html_of(text) for text in TEXTS]


def test_the_child_imports_nothing_of_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "markdown_it", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open('{name} was imported', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with markdown_child() as convert:
        assert convert("*x*") == html_of("*x*")
    assert not list(tmp_path.glob("*was imported"))
