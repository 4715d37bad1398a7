"""What a person sees who does not look at the screen: the window's title and notifications.

The event types are imported when the first event comes: this module is loaded long before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midturn_cli.terminal.modes import FOCUS_GAINED, FOCUS_LOST
from midturn_cli.terminal.timers import CallLater, Timer

if TYPE_CHECKING:
    from midturn_cli.ui_events import UiEvent
    from midturn_core.events import TurnEnded
    from midturn_core.permission.ask import Ask

SHORT_TURN_SECONDS = 5.0
"""Nobody looks away for less: the end of a shorter turn is not told."""
SETTLE_SECONDS = 0.5
"""How long something must last to be told: the next turn may begin, an answer be on its way."""
MOST_CHARS = 120
"""Of the foreign text in a title or a notification."""


@dataclass(frozen=True, slots=True)
class AttentionParts:
    """What it acts on."""

    workspace: str
    set_title: Callable[[str], None]
    notify: Callable[[str, str], None]
    """Takes a title and a text, both clean."""
    held: Callable[[], bool]
    """The terminal is lent to another program: nobody knows what has the focus."""
    call_later: CallLater


class Attention:
    """Follows the events of the session and the focus of its window."""

    def __init__(self, parts: AttentionParts) -> None:
        self._parts = parts
        # Terminals report changes only, and a session starts where somebody types.
        self._focused = True
        self._turn = False
        self._others = 0
        """Compactions and ``!`` lines that run."""
        self._asks: dict[str, Ask] = {}
        """The open questions."""
        self._timer: Timer | None = None

    def show(self) -> None:
        """Bring the title up to date."""
        self._parts.set_title(f"{self._state} · {self._folder} · Midturn")

    def focus_reported(self, sequence: str) -> None:
        """What the terminal sends when its window gains or loses the focus."""
        if sequence in (FOCUS_GAINED, FOCUS_LOST):
            self._focused = sequence == FOCUS_GAINED

    def observe(self, event: UiEvent) -> None:
        from midturn_cli.ui_events import ShellLineFinished, ShellLineStarted
        from midturn_core import events

        match event:
            case events.TurnStarted(context_id=context) if context.agent == "main":
                self._turn = True
                self._cancel()
            case events.TurnEnded(context_id=context) if context.agent == "main":
                self._turn = False
                self._asks.clear()
                self._turn_ended(event)
            case events.AskRequested(ask):
                self._asks[ask.id] = ask
                self._later(lambda: self._tell_question(ask.id))
            case events.AskAnswered(ask) | events.AskWithdrawn(ask):
                self._asks.pop(ask.id, None)
            case events.CompactionStarted() | ShellLineStarted():
                self._others += 1
            case events.CompactionFinished() | ShellLineFinished():
                self._others = max(0, self._others - 1)
            case _:
                return
        self.show()

    def close(self) -> None:
        self._cancel()

    @property
    def _state(self) -> str:
        if self._asks:
            return "asks"
        return "working" if self._turn or self._others else "idle"

    @property
    def _folder(self) -> str:
        return _cut(os.path.basename(self._parts.workspace) or self._parts.workspace)

    def _turn_ended(self, event: TurnEnded) -> None:
        from midturn_core.events import TurnEndReason

        long = event.duration_ms >= SHORT_TURN_SECONDS * 1000
        if not long or event.reason is TurnEndReason.INTERRUPTED:
            return
        done = event.reason is TurnEndReason.DONE and not event.error
        text = "the turn is done" if done else f"the turn ended: {_cut(event.error)}"
        self._later(lambda: self._tell(text))

    def _tell_question(self, ask_id: str) -> None:
        if ask := self._asks.get(ask_id):
            what = ask.title if ask.body in ask.title else f"{ask.title}: {ask.body}"
            self._tell(f"asks {_cut(what)}")

    def _tell(self, text: str) -> None:
        if not self._focused and not self._parts.held():
            self._parts.notify(f"Midturn in {self._folder}", text)

    def _later(self, tell: Callable[[], None]) -> None:
        self._cancel()
        self._timer = self._parts.call_later(SETTLE_SECONDS, tell)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _cut(text: str) -> str:
    """Foreign text, fit to stand inside a sequence to the terminal."""
    # Imported at the first use: the start has no time for it.
    from midturn_cli.render.clean import one_line

    line = one_line(text)
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1]}…"
