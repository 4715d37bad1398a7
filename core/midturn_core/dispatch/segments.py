"""Segments: neighbouring calls of a batch that run together, one segment after the other (D23)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


def one_by_one(count: int) -> tuple[range, ...]:
    """Each call is a segment of its own: a sequential batch."""
    return tuple(range(index, index + 1) for index in range(count))


def split(safe: Sequence[bool]) -> tuple[range, ...]:
    """Neighbouring safe calls share a segment; any other call is a barrier with its own."""
    segments: list[range] = []
    for index, is_safe in enumerate(safe):
        if is_safe and index and safe[index - 1]:
            segments[-1] = range(segments[-1].start, index + 1)
        else:
            segments.append(range(index, index + 1))
    return tuple(segments)


class SegmentLine:
    """Lets a call in when every call of all earlier segments has left; on one event loop.

    Calls may leave before the segments are known, and calls that never ran leave too.
    """

    def __init__(self) -> None:
        self._segments: tuple[range, ...] = ()
        self._gates: list[asyncio.Event] = []
        self._current = 0
        self._gone: set[int] = set()

    def begin(self, segments: Sequence[range]) -> None:
        self._segments = tuple(segments)
        self._gates = [asyncio.Event() for _ in segments]
        self._advance()

    async def enter(self, index: int) -> None:
        number = next(n for n, segment in enumerate(self._segments) if index in segment)
        await self._gates[number].wait()

    def leave(self, index: int) -> None:
        """The call has its result and nothing of it runs any more."""
        self._gone.add(index)
        self._advance()

    def _advance(self) -> None:
        while self._current < len(self._segments):
            self._gates[self._current].set()
            if not self._gone.issuperset(self._segments[self._current]):
                return
            self._current += 1
