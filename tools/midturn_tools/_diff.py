"""What a change did to a text: a unified diff for the screen, the changed region for the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from midturn_core.model.messages import DiffDetail
from midturn_tools._text import printable

_CONTEXT = 3
_MAX_COMPARED = 2_000
"""Lines on both sides together that are worth a line-by-line comparison."""
_MAX_DIFF_LINES = 400
_MAX_REGION_LINES = 60
_MAX_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Change:
    """``region`` holds numbered lines of the new text around what changed."""

    detail: DiffDetail
    region: str


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines ``start:end`` of the old text became ``new_start:new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class _Middle:
    """The lines that differ, with a little context; ``first`` is the number of the first."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def describe_change(path: str, before: str, after: str) -> Change:
    """Compare two texts. Long diffs and regions are cut, and say so; the counts are complete."""
    middle = _middle(before, after)
    blocks = _changed_blocks(middle.old, middle.new)
    hunks = list(_hunks(blocks))
    # A change may have millions of lines: only those that are shown are made.
    whole = (line for hunk in hunks for line in _unified(hunk, middle))
    lines = list(islice(whole, _MAX_DIFF_LINES))
    if cut := sum(_length(hunk, middle) for hunk in hunks) - len(lines):
        lines.append(f" … {cut:,} more lines of this diff not shown")
    detail = DiffDetail(
        path=path,
        unified="\n".join(lines),
        added=sum(block.new_end - block.new_start for block in blocks),
        removed=sum(block.end - block.start for block in blocks),
    )
    return Change(detail, _region(hunks, middle))


def _middle(before: str, after: str) -> _Middle:
    start = _common_beginning(before, after)
    # A common end that reaches into the common beginning would count its text twice.
    end = _common_end(before, after, min(len(before), len(after)) - start)
    start = before.rfind("\n", 0, start) + 1
    for _ in range(_CONTEXT):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1
    stop = len(before) - end
    for _ in range(_CONTEXT + 1):
        line_end = before.find("\n", stop)
        stop = line_end + 1 if line_end >= 0 else len(before)
    new_stop = len(after) - (len(before) - stop)
    first = before.count("\n", 0, start) + 1
    return _Middle(first, _split(before[start:stop]), _split(after[start:new_stop]))


def _common_beginning(before: str, after: str) -> int:
    low, high = 0, min(len(before), len(after))
    while low < high:
        half = (low + high + 1) // 2
        if before[low:half] == after[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _common_end(before: str, after: str, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        half = (low + high + 1) // 2
        old = before[len(before) - half : len(before) - low]
        if old == after[len(after) - half : len(after) - low]:
            low = half
        else:
            high = half - 1
    return low


def _split(text: str) -> tuple[str, ...]:
    """Lines with their ends, so that a changed line end is a change."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return tuple(lines if lines[-1] else lines[:-1])


def _changed_blocks(old: Sequence[str], new: Sequence[str]) -> list[_Block]:
    if len(old) + len(new) <= _MAX_COMPARED:
        codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [_Block(*code[1:]) for code in codes if code[0] != "equal"]
    if len(old) == len(new):
        return list(_differing_runs(old, new))
    return [_Block(0, len(old), 0, len(new))]


def _differing_runs(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    start: int | None = None
    for index, (left, right) in enumerate(zip(old, new, strict=True)):
        if left == right:
            if start is not None:
                yield _Block(start, index, start, index)
            start = None
        elif start is None:
            start = index
    if start is not None:
        yield _Block(start, len(old), start, len(new))


def _hunks(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Neighbouring blocks whose context would touch, together."""
    hunk: list[_Block] = []
    for block in blocks:
        if hunk and block.start - hunk[-1].end > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(block)
    if hunk:
        yield hunk


def _frame(hunk: Sequence[_Block], middle: _Middle) -> _Block:
    """The hunk with its context."""
    head, tail = hunk[0], hunk[-1]
    before = min(_CONTEXT, head.start, head.new_start)
    after = min(_CONTEXT, len(middle.old) - tail.end, len(middle.new) - tail.new_end)
    return _Block(
        head.start - before, tail.end + after, head.new_start - before, tail.new_end + after
    )


def _unified(hunk: Sequence[_Block], middle: _Middle) -> Iterator[str]:
    frame = _frame(hunk, middle)
    old_range = _range(middle.first, frame.start, frame.end)
    yield f"@@ -{old_range} +{_range(middle.first, frame.new_start, frame.new_end)} @@"
    position = frame.start
    for block in hunk:
        yield from (f" {_shown(line)}" for line in middle.old[position : block.start])
        yield from (f"-{_shown(line)}" for line in middle.old[block.start : block.end])
        yield from (f"+{_shown(line)}" for line in middle.new[block.new_start : block.new_end])
        position = block.end
    yield from (f" {_shown(line)}" for line in middle.old[position : frame.end])


def _length(hunk: Sequence[_Block], middle: _Middle) -> int:
    """How many lines ``_unified`` makes."""
    frame = _frame(hunk, middle)
    return 1 + frame.end - frame.start + sum(block.new_end - block.new_start for block in hunk)


def _range(first: int, start: int, end: int) -> str:
    # By the format's convention an empty range names the line before it.
    return f"{first + start},{end - start}" if end > start else f"{first + start - 1},0"


def _region(hunks: Sequence[Sequence[_Block]], middle: _Middle) -> str:
    parts: list[str] = []
    room = _MAX_REGION_LINES
    for index, hunk in enumerate(hunks):
        if room <= 0:
            parts.append(f"[{len(hunks) - index:,} further changed regions not shown]")
            break
        frame = _frame(hunk, middle)
        lines = [
            f"{middle.first + number:>6}\t{_shown(middle.new[number])}"
            for number in range(frame.new_start, min(frame.new_end, frame.new_start + room))
        ]
        hidden = frame.new_end - frame.new_start - len(lines)
        if hidden:
            lines.append(f"[{hidden:,} more lines of this region not shown]")
        parts.append("\n".join(lines))
        room -= len(lines)
    return "\n\n".join(part for part in parts if part)


def _shown(line: str) -> str:
    bare = printable(line.rstrip("\r\n"))
    return bare if len(bare) <= _MAX_SHOWN else f"{bare[:_MAX_SHOWN]} … [line cut]"
