"""What the user entered, as it goes into the transcript: each input once, where it was delivered."""

from __future__ import annotations

from collections.abc import Iterable

from midturn_cli.render.blocks import Block, PromptBlock
from midturn_cli.render.event_blocks import readable
from midturn_cli.render.shown_queue import is_main
from midturn_cli.render.words import origin_words
from midturn_core.queue.types import QueuedInput


class ShownPrompts:
    """Knows which inputs have waited, and which are in the transcript already."""

    def __init__(self) -> None:
        self._waited: set[str] = set()
        self._echoed: set[str] = set()

    def waiting(self, items: Iterable[QueuedInput], *, busy: bool) -> None:
        """These are in the queue. A line typed when idle passes through it too, but it does not
        wait there.
        """
        self._waited |= {item.uuid for item in items if busy or item.held}

    def begin_turn(self) -> None:
        self._echoed.clear()

    def end_turn(self, items: Iterable[QueuedInput]) -> None:
        """Forget what was removed; ``items`` still wait."""
        self._waited &= {item.uuid for item in items}

    def delivered(self, inputs: Iterable[QueuedInput], point: str) -> list[Block]:
        """``point`` says where; empty for the start of a turn."""
        blocks: list[Block] = []
        for item in inputs:
            if not is_main(item.context_id) or item.uuid in self._echoed:
                continue
            self._echoed.add(item.uuid)
            waited = bool(point) or item.uuid in self._waited
            self._waited.discard(item.uuid)
            tier = item.priority.name if waited else ""
            blocks.append(PromptBlock(readable(item.input_text), tier, point, origin_words(item)))
        return blocks
