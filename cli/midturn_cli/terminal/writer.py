"""The only writer: events in, frames out, at most twenty a second, nothing while idle.

More often only while there is more text than a frame may carry, less often on a slow machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

from midturn_cli.terminal.event_inbox import EventInbox
from midturn_cli.terminal.frame_budget import FrameBudget
from midturn_cli.terminal.notices import describe
from midturn_cli.terminal.walled_presenter import WalledPresenter

if TYPE_CHECKING:
    from midturn_cli.ports import LiveRegion, Presenter
    from midturn_cli.ui_events import ClipboardText, UiEvent

FRAME_SECONDS = 1 / 20
LONGEST_FRAME_SECONDS = 1 / 10
PAINT_REST = 9
"""The pause between frames, in multiples of the CPU time that the last one took: a machine that
is slow, or has other work, paints less often instead of painting all the time.
"""
PAUSE_SHARE = 0.6
"""The pause while text is left over, in multiples of what the frame before took."""
SHORTEST_PAUSE = 1 / 100
TICK_SECONDS = 1 / 10
"""The pace of spinners."""


class PaintTarget(Protocol):
    """The terminal as the writer sees it."""

    @property
    def columns(self) -> int: ...

    @property
    def rows(self) -> int: ...

    async def wait_paintable(self) -> None:
        """Wait while the size changes or the terminal is lent."""
        ...

    def may_paint(self) -> bool: ...

    @property
    def paint_seconds(self) -> float:
        """CPU time that the last paint of the live region took."""
        ...

    def commit(self, text: str) -> float:
        """Put whole lines above the live region in one frame; seconds that the write took."""
        ...

    def finish(self) -> None:
        """Write what was committed and still waits, because nothing is painted any more."""
        ...

    def invalidate(self) -> None:
        """Paint the live region soon."""
        ...

    def fill_clipboard(self, text: str) -> None:
        """Ask the terminal to put the text into the clipboard.

        Raises:
            ValueError: it is too long for that; nothing was written.
        """
        ...

    def look(self, presenter: Presenter) -> LiveRegion:
        """Ask the presenter for the live region in the room there is."""
        ...

    def show(self, region: LiveRegion) -> None:
        """Make it what the windows show at the next paint."""
        ...


@dataclass(frozen=True, slots=True)
class WriterHooks:
    """What the writer needs from its owner."""

    presenter_factory: Callable[[], Presenter]
    presenter_ready: Callable[[], None]
    """The presenter exists and what was waiting has been painted."""
    warn: Callable[[str], None]
    observe: Callable[[UiEvent], None] = lambda event: None
    """Told of each event once the presenter has it."""


class Writer:
    """Drains all waiting events, applies them to the presenter, then paints once."""

    def __init__(self, target: PaintTarget, hooks: WriterHooks) -> None:
        self._target = target
        self._hooks = hooks
        self._inbox = EventInbox()
        self._budget = FrameBudget()
        self._region: LiveRegion | None = None
        self._presenter: Presenter | None = None
        self._walled: WalledPresenter | None = None
        self._backlog = False
        self._last_frame_seconds = 0.0
        self._turn_seconds = 0.0
        self._told: set[str] = set()
        self._clipboard: str | None = None

    @property
    def presenter(self) -> Presenter | None:
        """None until the first paint is over."""
        return self._presenter

    def put(self, event: UiEvent) -> None:
        """Queue an event; safe on any thread, before the start and after the end."""
        self._inbox.put(event)

    def wake(self) -> None:
        """Have the live region looked at again; safe on any thread."""
        self._inbox.wake()

    async def run(self) -> None:
        """Write until cancelled. An exception from here must end the session."""
        self._inbox.attach()
        # In a thread, because importing the renderer would hold up the first keys.
        self._presenter = await asyncio.to_thread(self._hooks.presenter_factory)
        presenter = self._walled = WalledPresenter(self._presenter, self._tell)
        self._turn(presenter)
        self._hooks.presenter_ready()
        while True:
            await self._inbox.wait(TICK_SECONDS if presenter.animated else None)
            await self._target.wait_paintable()
            self._inbox.rest()
            started = time.thread_time()
            self._turn(presenter)
            self._turn_seconds = time.thread_time() - started
            await asyncio.sleep(self._pause())

    def flush(self) -> None:
        """Commit all that is final, without a budget: the session ends."""
        presenter = self._walled
        if presenter is None:
            return
        self._apply_waiting(presenter)
        self._fill_clipboard()
        while presenter.has_committed and self._commit(presenter, budget=None):
            pass
        self._target.finish()

    def _pause(self) -> float:
        if not self._backlog:
            rest = PAINT_REST * (self._turn_seconds + self._target.paint_seconds)
            return min(max(rest, FRAME_SECONDS), LONGEST_FRAME_SECONDS)
        pause = max(PAUSE_SHARE * self._last_frame_seconds, SHORTEST_PAUSE)
        return min(pause, FRAME_SECONDS)

    def _turn(self, presenter: WalledPresenter) -> None:
        applied = self._apply_waiting(presenter)
        if not self._target.may_paint():
            self._inbox.wake()
            return
        self._fill_clipboard()
        if presenter.has_committed:
            committed = self._commit(presenter, budget=self._budget.chars)
            # Only after success: a presenter that cannot render must not keep the loop busy.
            self._backlog = committed and presenter.has_committed
            if self._backlog:
                self._inbox.wake()
        elif self._look(presenter) or applied:
            self._target.invalidate()

    def _apply_waiting(self, presenter: WalledPresenter) -> bool:
        applied = False
        while self._inbox:
            event = self._inbox.take()
            if _is_for_clipboard(event):
                self._clipboard = event.text
                continue
            applied = True
            if self._backlog and _is_interrupted(event):
                presenter.drop_backlog(self._target.columns, self._target.rows)
            presenter.apply(event)
            self._observe(event)
        return applied

    def _fill_clipboard(self) -> None:
        """Of several texts only the newest counts, as in a clipboard."""
        text, self._clipboard = self._clipboard, None
        if text is None:
            return
        try:
            self._target.fill_clipboard(text)
        except ValueError as error:
            self._tell(f"Nothing was copied: {error}.")

    def _observe(self, event: UiEvent) -> None:
        try:
            self._hooks.observe(event)
        except Exception as error:
            # Isolation wall: what is shown beside the screen must not hold up the screen.
            self._tell(f"Title and notifications failed ({describe(error)}).")

    def _look(self, presenter: WalledPresenter) -> bool:
        """Whether the live region has changed. One that cannot be drawn stays as it was."""
        region = presenter.look(self._target.look)
        if region is None or region == self._region:
            return False
        self._region = region
        self._target.show(region)
        return True

    def _commit(self, presenter: WalledPresenter, *, budget: int | None) -> bool:
        started = time.perf_counter()
        text = presenter.take_committed(self._target.columns, budget)
        # The blocks just taken may have left the live region.
        self._look(presenter)
        if not text:
            return False
        writing = self._target.commit(text)
        seconds = time.perf_counter() - started
        self._budget.record(len(text), seconds - writing, writing)
        self._last_frame_seconds = seconds
        return True

    def _tell(self, text: str) -> None:
        """Say it once, however often it happens."""
        if text not in self._told:
            self._told.add(text)
            self._hooks.warn(text)


def _is_for_clipboard(event: UiEvent) -> TypeGuard[ClipboardText]:
    # Imported here because this module is loaded long before the first event.
    from midturn_cli.ui_events import ClipboardText

    return isinstance(event, ClipboardText)


def _is_interrupted(event: UiEvent) -> bool:
    # Imported here because this module is loaded long before the first event.
    from midturn_core.events import TurnEnded, TurnEndReason

    return isinstance(event, TurnEnded) and event.reason is TurnEndReason.INTERRUPTED
