"""Whom a ``RepositoryMirror`` tells, and whom it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midturn_core.errors import QueueStoreError
from midturn_core.queue.types import QueuedInput


def _accept(_: QueuedInput) -> str:
    return ""


def _unchanged(item: QueuedInput) -> QueuedInput:
    return item


@dataclass(frozen=True, slots=True)
class MirrorHooks:
    """Whom the mirror tells; all are called on its worker thread.

    ``trouble``: the store began to fail, or works again (None). ``arrived``: inputs came from
    outside. ``refusal``: why an input from outside may not enter, nor its text change; empty when
    it may. ``refused``: one did not, and why. ``stored``: the store has an input that it did not
    have. ``sealed``: an input as it is written into the store; ``left_refusal``: why one that was
    found there at the start may not enter.
    """

    trouble: Callable[[QueueStoreError | None], None]
    arrived: Callable[[], None]
    refusal: Callable[[QueuedInput], str] = _accept
    refused: Callable[[QueuedInput, str], None] = lambda _item, _why: None
    stored: Callable[[], None] = lambda: None
    sealed: Callable[[QueuedInput], QueuedInput] = _unchanged
    left_refusal: Callable[[QueuedInput], str] = _accept
