"""Sets of names, written as one text so that long tables stay readable."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text that blanks separate."""
    return frozenset(text.split())
