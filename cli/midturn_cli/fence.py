"""Markdown around text of any kind: nothing in the text can end it."""

from __future__ import annotations

import re


def fenced(text: str, language: str = "") -> str:
    """The text as a code block, without a line end after it."""
    mark = "~" * max(_longest_run("~", text) + 1, 3)
    line_end = "" if text.endswith("\n") else "\n"
    return f"{mark}{language}\n{text}{line_end}{mark}"


def code_span(line: str) -> str:
    """One line of text as code within a sentence; empty stays empty."""
    if not line.strip():
        return ""
    mark = "`" * (_longest_run("`", line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{mark}{pad}{line}{pad}{mark}"


def _longest_run(character: str, text: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)
