"""What a delivery asks of a store that others can reach too (D12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from midturn_core.queue.types import QueuedInput


class Claims(Protocol):
    """Between the queue of a session and the store that keeps it."""

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        """Those of the drained ``items`` that nobody else took out meanwhile, in order."""
        ...

    def confirm(self, uuids: Iterable[str]) -> None:
        """The log holds these, or they were carried out: the store forgets them for good."""
        ...


class NoStore:
    """The queue is in memory only: what was drained is ours."""

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        return list(items)

    def confirm(self, uuids: Iterable[str]) -> None:
        pass
