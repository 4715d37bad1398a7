"""Output of unknown size in bounded memory: its head and its tail stay, the gap is counted."""

from __future__ import annotations

import re

_LINE_SEARCH = 2_000
"""Bytes at the inner edges within which a cut is moved to a line end."""

_SCREEN_WIDTH = 500


class BoundedOutput:
    """Collects bytes; keeps the first ``head`` and the last ``tail`` of them."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_size = head
        self._tail_size = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._lines = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        self._lines += data.count(b"\n")
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :][-self._tail_size :]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]

    @property
    def lines_total(self) -> int:
        """How many lines came in; a last one without a line end counts."""
        ends_open = self.total > 0 and not (self._tail or self._head).endswith(b"\n")
        return self._lines + ends_open

    def text(self) -> str:
        """Everything, or head, size of the gap, and tail. Bytes that are no UTF-8 are replaced."""
        tail = bytes(self._tail[-self._tail_size :])
        if self._is_whole(tail):
            return _decode(bytes(self._head) + tail)
        head = _until_line_end(bytes(self._head))
        tail = _from_line_start(tail)
        gap = self.total - len(head) - len(tail)
        lines = self.lines_total - _count_lines(head) - _count_lines(tail)
        missing = f"{gap:,} bytes" + (f" ({lines:,} lines)" if lines > 0 else "")
        return f"{_decode(head)}\n[... {missing} left out ...]\n{_decode(tail)}"

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The newest lines, for the screen, each cut to ``_SCREEN_WIDTH`` characters."""
        tail = bytes(self._tail[-self._tail_size :])
        recent = bytes(self._head) + tail if self._is_whole(tail) else tail
        lines = _decode(recent).rstrip("\r\n").split("\n")[-count:] if recent else []
        return tuple(line[:_SCREEN_WIDTH] for line in lines)

    def newest_line(self, width: int) -> str:
        """The last line that is not blank, at most ``width`` characters; empty when there is none."""
        recent = bytes((self._tail or self._head)[-4 * width :])
        lines = [line.strip() for line in re.split(r"[\r\n]+", _decode(recent))]
        return next((line[:width] for line in reversed(lines) if line), "")

    def _is_whole(self, tail: bytes) -> bool:
        return len(self._head) + len(tail) == self.total


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def _until_line_end(head: bytes) -> bytes:
    end = head.rfind(b"\n", len(head) - _LINE_SEARCH)
    return head if end < 0 else head[:end]


def _from_line_start(tail: bytes) -> bytes:
    start = tail.find(b"\n", 0, _LINE_SEARCH)
    return tail if start < 0 else tail[start + 1 :]
