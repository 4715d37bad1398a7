"""Telling a paste from typed lines in a terminal without bracketed paste.

The rule: when one read from the terminal brings two or more Enters together with text, they are
kept apart but not acted on until nothing has come for ``QUIET_SECONDS``.

* The burst ended with Enter: each line was entered. They are submitted one by one, in order.
* The burst ended with text: somebody pasted several lines. They become one draft with line
  breaks, and the Enter that follows later submits it as one message.

A paste that ends with a line end cannot be told from entered lines by anybody; it counts as
entered lines, so that nothing is ever merged silently.

Once a paste has come with its marks, this terminal marks its pastes: whatever else it brings was
typed, and is acted on at once however it arrives. Before that, lines typed ahead of a stalled
machine, with the beginning of a further one, are the same bytes in the same read as a paste. No
clock tells them apart: the time between two keys is lost while they wait in the terminal, and a
question to the terminal is one of the things that Midturn never sends. They become a draft that
can be seen; nothing is sent or lost. The quiet time only has to join the reads of one long paste;
a stall does not cut it, since what has arrived is read before a timer that is due is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midturn_cli.terminal.timers import CallLater, Timer

QUIET_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class EnteredLines:
    """Lines that were each ended by Enter."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastedLines:
    """Lines of one draft; the last one has no Enter yet."""

    lines: tuple[str, ...]


def judge(ended: tuple[str, ...], rest: str) -> EnteredLines | PastedLines:
    """What a burst was: ``ended`` are its lines that an Enter ended, ``rest`` what followed."""
    return PastedLines((*ended, rest)) if rest else EnteredLines(ended)


def is_burst(enters: int, has_text: bool) -> bool:
    """Whether the keys of one read need to be judged together."""
    return enters >= 2 and has_text


class EnterBurst:
    """Collects the lines of a burst and calls ``settled`` when the keys are quiet.

    ``settled`` is given the lines that an Enter ended.
    """

    def __init__(
        self,
        call_later: CallLater,
        settled: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._call_later = call_later
        self._settled = settled
        self._lines: list[str] | None = None
        self._timer: Timer | None = None

    @property
    def active(self) -> bool:
        return self._lines is not None

    def begin(self) -> None:
        self._lines = []
        self.touch()

    def end_line(self, line: str) -> None:
        """An Enter ended this line."""
        if self._lines is not None:
            self._lines.append(line)

    def touch(self) -> None:
        """A key arrived: the burst goes on."""
        if self._lines is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_later(QUIET_SECONDS, self.settle)

    def settle(self) -> None:
        """Judge now; does nothing outside a burst."""
        if self._lines is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = tuple(self._lines), None
        self._settled(lines)
