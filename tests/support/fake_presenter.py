"""A presenter without Rich: lines are committed as they are, the rest is the tail."""

from __future__ import annotations

from dataclasses import dataclass, field

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.ports import LiveRegion
from midturn_cli.ui_events import CommandOutput, UiEvent
from midturn_core.events import (
    AskAnswered,
    AskRequested,
    AskWithdrawn,
    Notice,
    TextDelta,
    TurnEnded,
    TurnStarted,
)

KEY_HINTS = {
    AskKeyboard.NOT_YET: "[...]",
    AskKeyboard.NEEDS_TAB: "[Tab]",
    AskKeyboard.ARMED: "[y/s/n/r]",
    AskKeyboard.REASONING: "[reason]",
}


@dataclass(slots=True)
class FakePresenter:
    """A ``Presenter``. ``fail_on`` makes it raise for texts that contain it."""

    fail_on: str = ""
    applied: list[UiEvent] = field(default_factory=list[UiEvent])
    status: str = "status row"
    _lines: list[str] = field(default_factory=list[str])
    _transcript: list[str] = field(default_factory=list[str])
    _tail: str = ""
    _ask: str = ""
    _working: bool = False
    dropped: int = 0
    max_rows: int = 0
    rows_above: int = 0
    """As the newest call of ``live`` had them."""

    def apply(self, event: UiEvent) -> None:
        self.applied.append(event)
        if self.fail_on and self.fail_on in repr(event):
            raise ValueError(f"cannot show {self.fail_on}")
        match event:
            case TextDelta(text):
                *lines, self._tail = (self._tail + text).split("\n")
                self._lines.extend(lines)
            case Notice(level, text):
                self._lines.append(f"[{level.value}] {text}")
            case CommandOutput(text):
                self._lines.append(text)
            case AskRequested(ask):
                self._ask = f"ASK {ask.title}"
            case AskAnswered(ask, reply):
                self._ask = ""
                self._lines.append(
                    f"ANSWER {ask.title} {reply.answer.value} {reply.reason}".rstrip()
                )
            case AskWithdrawn():
                self._ask = ""
            case TurnStarted():
                self._working = True
            case TurnEnded():
                self._working = False
                self._lines.append(f"ENDED {event.reason.value}")
            case _:
                pass

    @property
    def has_committed(self) -> bool:
        return bool(self._lines)

    def take_committed(self, width: int, max_chars: int | None = None) -> str:
        taken = 1
        size = len(self._lines[0]) if self._lines else 0
        while taken < len(self._lines) and (max_chars is None or size < max_chars):
            size += len(self._lines[taken])
            taken += 1
        lines, self._lines = self._lines[:taken], self._lines[taken:]
        self._transcript.extend(lines)
        return "".join(f"{line}\n" for line in lines)

    def drop_backlog(self, width: int, keep_rows: int) -> None:
        surplus = len(self._lines) - keep_rows
        if surplus > 0:
            self.dropped += surplus
            self._lines = [f"[{surplus} lines not shown]", *self._lines[surplus:]]

    def live(
        self,
        width: int,
        max_rows: int,
        now: float,
        *,
        keyboard: AskKeyboard = AskKeyboard.NOT_YET,
        rows_above: int = 0,
    ) -> LiveRegion:
        self.max_rows, self.rows_above = max_rows, rows_above
        keys = KEY_HINTS[keyboard]
        spinner = "|/-\\"[int(now * 10) % 4]
        return LiveRegion(
            tail=self._tail[:width],
            tools=f"{spinner} working" if self._working else "",
            ask=f"{self._ask} {keys}" if self._ask and max_rows > 1 else "",
            status=self.status[:width],
            rule_shown=keyboard is AskKeyboard.ARMED,
        )

    @property
    def animated(self) -> bool:
        return self._working

    def recent(self, width: int, rows: int) -> str:
        return "".join(f"{line}\n" for line in self._transcript[-rows:])
