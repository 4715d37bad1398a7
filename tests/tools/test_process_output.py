"""Output of unknown size in bounded memory."""

from __future__ import annotations

import pytest

from midturn_tools._bounded_output import BoundedOutput


def fed(data: bytes, piece: int, head: int = 100, tail: int = 200) -> BoundedOutput:
    output = BoundedOutput(head, tail)
    for start in range(0, len(data), piece):
        output.feed(data[start : start + piece])
    return output


@pytest.mark.parametrize("piece", [1, 7, 64, 1000])
@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 299, 300, 301, 1000])
def test_what_fits_is_kept_whole_and_the_gap_is_counted(size: int, piece: int) -> None:
    data = bytes(97 + index % 26 for index in range(size))
    text = fed(data, piece).text()
    if size <= 300:
        assert text == data.decode()
    else:
        gap = f"\n[... {size - 300:,} bytes left out ...]\n"
        assert text == f"{data[:100].decode()}{gap}{data[-200:].decode()}"


def test_a_gap_begins_and_ends_at_line_ends() -> None:
    output = fed(b"".join(b"line %d\n" % number for number in range(100)), 10)
    head, gap, tail = output.text().partition("\n[... ")
    assert gap and all(line.startswith("line ") for line in head.split("\n"))
    inner, _, tail = tail.partition(" left out ...]\n")
    assert tail.startswith("line ") and tail.endswith("line 99\n")
    missing = int(inner.partition("(")[2].partition(" ")[0])
    assert len(head.split("\n")) + missing + tail.count("\n") == 100 == output.lines_total


def test_a_character_torn_by_the_cut_is_replaced() -> None:
    text = fed("한".encode() * 200, 50).text()
    assert text.startswith("한" * 33 + "\ufffd") and text.endswith("한" * 66)


def test_the_newest_line_is_the_last_that_says_something() -> None:
    assert fed(b"one\ntwo\r\n  \n", 3).newest_line(10) == "two"
    assert fed(b"10%\r20%\r", 3).newest_line(10) == "20%"
    assert fed(b"\n\n", 3).newest_line(10) == ""
    assert fed(b"x" * 1000, 100).newest_line(10) == "x" * 10


def test_the_last_lines_reach_back_into_the_head() -> None:
    output = fed(b"".join(b"line %d\n" % number for number in range(20)), 10)
    assert output.last_lines(20) == tuple(f"line {number}" for number in range(20))
    assert fed(b"", 1).last_lines(5) == ()
    assert len(fed(b"\0" * 5000, 100, tail=2000).last_lines(5)[0]) == 500
