"""What is said of inputs that were not sent."""

from __future__ import annotations

import pytest

from midturn_cli.goodbye import what_is_kept


@pytest.mark.parametrize(
    ("undelivered", "begins"),
    [
        (1, "Not stored, so here"),
        (2, "1 of them is kept, and offered"),
        (3, "2 of them are kept, and offered"),
    ],
)
def test_what_no_store_has_is_written_whole(undelivered: int, begins: str) -> None:
    first, *texts = what_is_kept(undelivered, ["a\nlong one"])
    assert first.startswith(begins)
    assert texts == ["a\nlong one"]


def test_what_is_stored_is_only_counted_on() -> None:
    assert what_is_kept(3, []) == ["They are kept, and offered when you go on with the session."]
