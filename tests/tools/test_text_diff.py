from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_core.model.messages import DiffDetail
from midturn_tools._diff import describe_change

HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "long line\n"]), max_size=30).map(
    "".join
)


def patched(before: str, detail: DiffDetail) -> str:
    """Apply the diff, checking each line of it against the old text."""
    old = before.splitlines()
    result: list[str] = []
    position = 0
    for line in detail.unified.split("\n") if detail.unified else []:
        header = HUNK.fullmatch(line)
        if header:
            start = int(header[1]) - 1 if int(header[2]) else int(header[1])
            result += old[position:start]
            position = start
            assert len(result) == (int(header[3]) - 1 if int(header[4]) else int(header[3]))
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert old[position] == line[1:]
            result += [line[1:]] if line.startswith(" ") else []
            position += 1
    return "".join(f"{line}\n" for line in [*result, *old[position:]])


@given(TEXTS, TEXTS)
def test_the_diff_turns_the_old_text_into_the_new_one(before: str, after: str) -> None:
    detail = describe_change("f", before, after).detail
    assert patched(before, detail) == after
    assert detail.added - detail.removed == after.count("\n") - before.count("\n")


@given(TEXTS, TEXTS)
def test_the_region_numbers_lines_of_the_new_text(before: str, after: str) -> None:
    lines = after.splitlines()
    for row in describe_change("f", before, after).region.split("\n"):
        number, tab, text = row.partition("\t")
        assert not tab or lines[int(number) - 1] == text


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("a\n", "a\n", (0, 0)),
        ("", "a", (1, 0)),
        ("a", "", (0, 1)),
        ("a", "a\n", (1, 1)),
        ("a\r\nb\n", "a\nb\n", (1, 1)),
        ("x\n" * 5_000, "y\n" * 5_000, (5_000, 5_000)),
        ("x\n" * 5_000, "y\n" * 4_000, (4_000, 5_000)),
    ],
)
def test_counts_are_complete_whatever_the_size(
    before: str, after: str, counts: tuple[int, int]
) -> None:
    detail = describe_change("f", before, after).detail
    assert (detail.added, detail.removed) == counts
    assert detail.unified.count("\n") <= 401


def test_a_long_diff_says_that_it_is_cut() -> None:
    change = describe_change("f", "x\n" * 5_000, "y\n" * 5_000)
    assert change.detail.unified.endswith("… 9,601 more lines of this diff not shown")
    assert change.region.endswith("more lines of this region not shown]")
    assert len(describe_change("f", "", "x" * 10_000).region) < 600
