"""What a terminal session wrote and when, and figures taken from it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Latency:
    count: int = 0
    missed: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    max_ms: float = 0.0

    @classmethod
    def of(cls, samples: Sequence[float | None]) -> Latency:
        seen = sorted(s * 1000 for s in samples if s is not None)
        if not seen:
            return cls(missed=len(samples))

        def at(q: float) -> float:
            return round(seen[min(len(seen) - 1, int(q * len(seen)))], 2)

        return cls(len(seen), len(samples) - len(seen), at(0.50), at(0.95), round(seen[-1], 2))


@dataclass
class Traffic:
    bytes: int
    reads: int
    erase_below: int  # CSI J
    erase_line: int  # CSI K
    cursor_queries: int  # CSI 6n
    sync_frames: int  # DEC 2026 begin marks


@dataclass
class Flicker:
    """How often the prompt was gone at a moment the emulator could paint."""

    boundaries: int  # paint opportunities looked at
    missing: int  # prompt glyph not on the screen
    vanished: int  # visible -> missing transitions
    honouring_sync: bool


class OutputLog:
    """Time-stamped output bytes and resizes, safe to read while it grows."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.data = bytearray()
        self.chunks: list[tuple[float, int]] = []  # (time, end offset)
        self.resizes: list[tuple[int, int, int]] = []  # (offset, cols, rows)
        self.closed = False

    def append(self, chunk: bytes) -> None:
        with self.changed:
            self.data += chunk
            self.chunks.append((time.perf_counter(), len(self.data)))
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def wait_bytes(self, needle: bytes, start: int, timeout: float) -> float | None:
        """Arrival time of ``needle`` at or after offset ``start``; None on timeout."""
        deadline = time.perf_counter() + timeout
        with self.changed:
            while True:
                at = self.data.find(needle, start)
                if at >= 0:
                    chunk = bisect_left(self.chunks, at + len(needle), key=lambda c: c[1])
                    return self.chunks[chunk][0]
                start = max(start, len(self.data) - len(needle) + 1)
                left = deadline - time.perf_counter()
                if left <= 0 or self.closed:
                    return None
                self.changed.wait(left)
