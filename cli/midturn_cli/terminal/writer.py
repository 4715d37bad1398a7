"""The only writer: events in, frames out, at most twenty a second, nothing while idle.

More often only while there is more text than a frame may carry, less often on a slow machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeGuard

from midturn_cli.terminal.frame_budget import FrameBudget
from midturn_cli.terminal.notices import describe

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
        self._events: deque[UiEvent] = deque()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._budget = FrameBudget()
        self._region: LiveRegion | None = None
        self._presenter: Presenter | None = None
        self._backlog = False
        self._last_frame_seconds = 0.0
        self._turn_seconds = 0.0
        self._told: set[str] = set()
        self._clipboard: str | None = None
        self._plain: list[str] = []
        """Sentences for the user that the presenter could not take."""

    @property
    def presenter(self) -> Presenter | None:
        """None until the first paint is over."""
        return self._presenter

    def put(self, event: UiEvent) -> None:
        """Queue an event; safe on any thread, before the start and after the end."""
        self._events.append(event)
        self.wake()

    def wake(self) -> None:
        """Have the live region looked at again; safe on any thread."""
        loop = self._loop
        if loop is None or threading.get_ident() == self._thread:
            self._wake.set()
            return
        # The loop may have closed meanwhile: then there is no screen to show it on.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Write until cancelled. An exception from here must end the session."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        # In a thread, because importing the renderer would hold up the first keys.
        presenter = await asyncio.to_thread(self._hooks.presenter_factory)
        self._presenter = presenter
        self._turn(presenter)
        self._hooks.presenter_ready()
        while True:
            await self._wait(presenter)
            self._wake.clear()
            started = time.thread_time()
            self._turn(presenter)
            self._turn_seconds = time.thread_time() - started
            await asyncio.sleep(self._pause())

    def flush(self) -> None:
        """Commit all that is final, without a budget: the session ends."""
        presenter = self._presenter
        if presenter is None:
            return
        self._apply_waiting(presenter)
        self._fill_clipboard()
        while self._has_committed(presenter) and self._commit(presenter, budget=None):
            pass
        self._target.finish()

    def _pause(self) -> float:
        if not self._backlog:
            rest = PAINT_REST * (self._turn_seconds + self._target.paint_seconds)
            return min(max(rest, FRAME_SECONDS), LONGEST_FRAME_SECONDS)
        pause = max(PAUSE_SHARE * self._last_frame_seconds, SHORTEST_PAUSE)
        return min(pause, FRAME_SECONDS)

    async def _wait(self, presenter: Presenter) -> None:
        timeout = TICK_SECONDS if self._animated(presenter) else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._wake.wait()
        await self._target.wait_paintable()

    def _turn(self, presenter: Presenter) -> None:
        applied = self._apply_waiting(presenter)
        if not self._target.may_paint():
            self._wake.set()
            return
        self._fill_clipboard()
        if self._plain or self._has_committed(presenter):
            committed = self._commit(presenter, budget=self._budget.chars)
            # Only after success: a presenter that cannot render must not keep the loop busy.
            self._backlog = committed and self._has_committed(presenter)
            if self._backlog:
                self._wake.set()
        elif self._look(presenter) or applied:
            self._target.invalidate()

    def _apply_waiting(self, presenter: Presenter) -> bool:
        applied = False
        while self._events:
            event = self._next_event()
            if _is_for_clipboard(event):
                self._clipboard = event.text
                continue
            applied = True
            try:
                if self._backlog and _is_interrupted(event):
                    presenter.drop_backlog(self._target.columns, self._target.rows)
                presenter.apply(event)
            except Exception as error:
                # Isolation wall: one event that cannot be shown must not end the session.
                self._plain.extend(_sentence_of(event))
                self._tell(f"An event could not be shown ({describe(error)}).")
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

    def _next_event(self) -> UiEvent:
        """The oldest event; neighbouring pieces of an answer are one, since each costs the same."""
        # Imported here because this module is loaded long before the first event.
        from midturn_core.events import TextDelta

        event = self._events.popleft()
        if not isinstance(event, TextDelta):
            return event
        texts = [event.text]
        while self._events and isinstance(following := self._events[0], TextDelta):
            texts.append(following.text)
            self._events.popleft()
        return TextDelta("".join(texts))

    def _look(self, presenter: Presenter) -> bool:
        try:
            region = self._target.look(presenter)
        except Exception as error:
            # Isolation wall, as above; the last good region stays.
            self._tell(f"The live region could not be drawn ({describe(error)}).")
            return False
        if region == self._region:
            return False
        self._region = region
        self._target.show(region)
        return True

    def _commit(self, presenter: Presenter, *, budget: int | None) -> bool:
        plain = "".join(f"{line}\n" for line in self._plain)
        self._plain.clear()
        started = time.perf_counter()
        try:
            text = presenter.take_committed(self._target.columns, budget)
            # The blocks just taken may have left the live region.
            self._look(presenter)
        except Exception as error:
            # Isolation wall, as above.
            text = ""
            self._tell(f"A block could not be drawn ({describe(error)}).")
        if not plain and not text:
            return False
        writing = self._target.commit(plain + text)
        seconds = time.perf_counter() - started
        self._budget.record(len(text), seconds - writing, writing)
        self._last_frame_seconds = seconds
        return True

    def _has_committed(self, presenter: Presenter) -> bool:
        try:
            return presenter.has_committed
        except Exception as error:
            # Isolation wall, as above.
            self._tell(f"The renderer failed ({describe(error)}).")
            return False

    def _animated(self, presenter: Presenter) -> bool:
        try:
            return presenter.animated
        except Exception as error:
            # Isolation wall, as above.
            self._tell(f"The renderer failed ({describe(error)}).")
            return False

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


def _sentence_of(event: UiEvent) -> list[str]:
    """What a notice that cannot be rendered says, fit to be written as it is."""
    # Imported here for the reason above.
    from midturn_core.events import Notice

    if not isinstance(event, Notice):
        return []
    return ["".join(c if c.isprintable() else " " for c in event.text)]
