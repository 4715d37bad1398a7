"""``SessionPresence``: lets other programs of the user see and wake this session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from midturn_cli.engine import Engine
from midturn_cli.ui_events import UiEvent
from midturn_core import paths
from midturn_core.errors import SessionError
from midturn_core.events import AskAnswered, AskRequested, AskWithdrawn
from midturn_core.queue.open_store import store_name
from midturn_core.session.running import Presence, RunningSession, SessionState


@dataclass(frozen=True, slots=True)
class PresenceHooks:
    """``busy``: whether the session works. ``look``: look at the queue's store, since somebody
    called. ``warn``: tell the user. All are called on the loop's thread.
    """

    busy: Callable[[], bool]
    look: Callable[[], None]
    warn: Callable[[str], None]


class SessionPresence:
    """The entry of one interactive session among the running ones. Made on the loop's thread."""

    def __init__(self, engine: Engine, hooks: PresenceHooks) -> None:
        session = RunningSession(
            id=engine.session.id,
            pid=os.getpid(),
            folder=str(engine.workspace),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            store=store_name(engine.config.queue, paths.queue_file(os.environ)),
            demo=engine.launch.demo,
        )
        self._presence = Presence(paths.running_folder(os.environ), session, os.environ)
        self._hooks = hooks
        self._asks: set[str] = set()
        self._changed = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Be seen and be woken from now on; what prevents that is told to the user."""
        try:
            await asyncio.to_thread(self._presence.announce)
        except SessionError as error:
            self._hooks.warn(str(error))
            return
        if (number := self._presence.fileno()) is not None:
            self._loop.add_reader(number, self._called)
        self._telling = asyncio.create_task(self._tell_changes())

    def observe(self, event: UiEvent) -> None:
        """Count the open questions. Called on the loop's thread."""
        match event:
            case AskRequested(ask):
                self._asks.add(ask.id)
            case AskAnswered(ask) | AskWithdrawn(ask):
                self._asks.discard(ask.id)
            case _:
                return
        self.changed()

    def changed(self) -> None:
        """The session began or ended to work."""
        self._changed.set()

    async def close(self) -> None:
        if (number := self._presence.fileno()) is not None:
            self._loop.remove_reader(number)
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        await asyncio.to_thread(self._presence.close)

    @property
    def _state(self) -> SessionState:
        if self._asks:
            return SessionState.ASKING
        return SessionState.WORKING if self._hooks.busy() else SessionState.IDLE

    def _called(self) -> None:
        self._presence.take_calls()
        self._hooks.look()

    async def _tell_changes(self) -> None:
        """On a thread, since the disk may be slow; many changes in a row are told once."""
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.to_thread(self._presence.set_state, self._state)
