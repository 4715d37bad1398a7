"""``StoreLink``: a store that is opened when it is needed, and anew when it was taken away."""

from __future__ import annotations

import logging
from collections.abc import Callable

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.repository import MessageQueueRepository

_log = logging.getLogger(__name__)


class StoreLink:
    """For one thread at a time.

    Args:
        open_store: opens it.
        changed: called on a thread of the store's when others changed something in the context.
    """

    def __init__(
        self,
        open_store: Callable[[], MessageQueueRepository],
        context_id: AgentRuntimeId,
        changed: Callable[[], None],
    ) -> None:
        self._open_store = open_store
        self._context_id = context_id
        self._changed = changed
        self._opened: MessageQueueRepository | None = None
        self._stop_watching: Callable[[], None] = lambda: None

    @property
    def store(self) -> MessageQueueRepository:
        """
        Raises:
            QueueStoreError: it cannot be opened.
        """
        if self._opened is None:
            self._opened = self._open_store()
        return self._opened

    def watch(self) -> None:
        """Hear of changes, once each.

        Raises:
            QueueStoreError: the store cannot be used.
        """
        self._stop_watching()
        self._stop_watching = self.store.watch(self._context_id, self._changed)

    def let_go(self) -> None:
        """Close what is open; the next use opens it anew."""
        self._stop_watching()
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            opened.close()
        except QueueStoreError:
            _log.warning("the queue's store was not closed", exc_info=True)
