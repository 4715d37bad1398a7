"""What waits, as the screen shows it."""

from __future__ import annotations

from dataclasses import dataclass

from midturn_cli.render.words import queue_words
from midturn_cli.ui_events import QueueChanged
from midturn_core.config import QueueConfig
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.barriers import behind_command, behind_edited
from midturn_core.queue.types import QueuedInput


@dataclass(frozen=True, slots=True)
class ShownQueue:
    """The waiting inputs of the main agent, in delivery order, and what is said of them."""

    items: tuple[QueuedInput, ...] = ()
    words: str = ""
    """How many wait in each tier."""
    settings: QueueConfig = QueueConfig()
    unstored: frozenset[str] = frozenset()
    """The uuids of what the store does not have."""
    store_fails: bool = False
    barred: frozenset[str] = frozenset()
    """The uuids of what waits behind a command."""
    edited: int | None = None
    """The place of the input that is being edited."""
    behind_edited: frozenset[str] = frozenset()
    """The uuids of what waits behind an input that is being edited."""


def shown_queue(event: QueueChanged) -> ShownQueue:
    items = tuple(item for item in event.items if is_main(item.context_id))
    edited = next((place for place, item in enumerate(items) if item.being_edited), None)
    return ShownQueue(
        items,
        queue_words(items),
        event.settings,
        event.unstored,
        event.store_fails,
        behind_command(items),
        edited,
        # Few are edited, and many may wait.
        behind_edited(items) if edited is not None else frozenset(),
    )


def is_main(context_id: AgentRuntimeId) -> bool:
    """Whether it is that of the main agent, whose turns and inputs the transcript tells."""
    return context_id.agent == "main"
