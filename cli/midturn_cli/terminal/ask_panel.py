"""Answering a question without being able to answer it by accident (D40, D41).

The draft is never touched. A question takes the keyboard only when it is *armed*: with an empty
draft half a second after the later of "painted" and "last key"; with text in the draft only when
Tab gives it the keyboard. Until then keys go on to the draft.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.terminal.timers import CallLater, Timer

if TYPE_CHECKING:
    from midturn_core.permission.ask import Ask, AskReply

ARM_SECONDS = 0.5
REPEAT_SECONDS = 0.5

ANSWER_KEYS = {
    "y": "once",
    "t": "turn",
    "s": "session",
    "a": "always",
    "n": "no",
    "escape": "no",
}
"""Key to the value of ``AskAnswer``."""
LASTING = frozenset({"turn", "session", "always"})
"""They allow what the question shows as a rule."""
REASON_KEY = "r"
HARMLESS_KEYS = ("enter", "space")
"""An armed question takes them and does nothing: they are too easily in flight."""
QUESTION_KEYS = (*ANSWER_KEYS, REASON_KEY, *HARMLESS_KEYS)


@dataclass(frozen=True, slots=True)
class PanelContext:
    """What the panel needs from its surroundings."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    call_later: CallLater
    draft_empty: Callable[[], bool]
    changed: Callable[[], None]
    """The panel looks different now."""
    repaint: Callable[[], None]
    """Paint once more, whether anything looks different or not."""
    closed: Callable[[], None]
    """The question is gone: the reason line, if open, has to close."""


@dataclass(slots=True)
class _Question:
    ask: Ask
    reply: asyncio.Future[AskReply]
    painted: float | None = None
    rule_shown: bool = False
    """The last paint showed all that an answer that lasts would allow."""
    focused: bool = False
    """Tab gave it the keyboard."""
    reasoning: bool = False
    """The reason line is open."""


class TerminalAskHandler:
    """Shows the gate's question and turns keys into its answer; an ``AskHandler``."""

    def __init__(self, context: PanelContext) -> None:
        self._context = context
        self._question: _Question | None = None
        self._last_key = 0.0
        self._answered_with = ""
        self._answered_at = float("-inf")
        self._timer: Timer | None = None

    async def resolve(self, ask: Ask) -> AskReply:
        """Wait for the person's answer. Cancelling withdraws the question."""
        question = _Question(ask, asyncio.get_running_loop().create_future())
        self._question = question
        self._context.changed()
        # Its event may have been painted already; only a paint from now on counts.
        self._context.repaint()
        try:
            return await question.reply
        finally:
            self._question = None
            self._cancel_timer()
            self._context.closed()
            self._context.changed()

    @property
    def open(self) -> bool:
        """A question is waiting and has been painted."""
        question = self._question
        return question is not None and question.painted is not None and not question.reply.done()

    @property
    def waiting(self) -> bool:
        """A question waits, also one for which there is no room on the screen yet."""
        return self._question is not None

    @property
    def reasoning(self) -> bool:
        return self._question is not None and self._question.reasoning

    @property
    def focused(self) -> bool:
        """Tab gave the keyboard to the question."""
        return self.open and self._question is not None and self._question.focused

    @property
    def armed(self) -> bool:
        """A key of D40 would answer now."""
        question = self._question
        if question is None or not self.open or question.reasoning:
            return False
        return question.focused or (self._context.draft_empty() and self._quiet_left() <= 0)

    @property
    def keyboard(self) -> AskKeyboard:
        """For the screen: what keys would do now."""
        if self.reasoning:
            return AskKeyboard.REASONING
        if self.armed:
            return AskKeyboard.ARMED
        return AskKeyboard.NOT_YET if self._context.draft_empty() else AskKeyboard.NEEDS_TAB

    @property
    def guarded(self) -> bool:
        """It was painted so recently that a key may have been meant for something else."""
        question = self._question
        if question is None or question.painted is None:
            return False
        return self._context.clock() - question.painted < ARM_SECONDS

    def painted(self, *, rule_shown: bool) -> None:
        """The panel has reached the screen, the whole rule with it or not."""
        question = self._question
        if question is not None:
            question.rule_shown = rule_shown
        if question is not None and question.painted is None:
            question.painted = self._context.clock()
            self._schedule_arming()

    def key_pressed(self) -> None:
        """Any key at all: the quiet time starts over."""
        was_armed = self.armed
        self._last_key = self._context.clock()
        if self.open:
            self._schedule_arming()
        if was_armed and not self.armed:
            self._context.changed()

    def toggle_focus(self) -> None:
        """Tab: the keyboard goes to the question, or back to the draft."""
        if self._question is not None:
            self._question.focused = not self._question.focused
            self._context.changed()

    def takes(self, key: str) -> bool:
        """Whether ``key`` is for the question; otherwise it belongs to the draft."""
        if self._is_repeat(key):
            return True
        return self.armed and key in QUESTION_KEYS

    def press(self, key: str) -> None:
        """A key that the question takes."""
        question = self._question
        if question is None or not self.armed or key in HARMLESS_KEYS:
            return
        if key == REASON_KEY:
            question.reasoning = True
            self._context.changed()
            return
        answer = ANSWER_KEYS[key]
        if all(answer != offered.value for offered in question.ask.offered):
            return
        if answer in LASTING and not question.rule_shown:
            return
        self._answer(answer, "")
        self._answered_with, self._answered_at = key, self._context.clock()

    def _is_repeat(self, key: str) -> bool:
        """A repeat of the answer just given must not reach the draft or the next question."""
        recent = self._context.clock() - self._answered_at < REPEAT_SECONDS
        return recent and key == self._answered_with

    def give_reason(self, reason: str) -> None:
        """The reason line was entered; without words it is a plain no."""
        words = reason.strip()
        self._answer("no_with_reason" if words else "no", words)

    def leave_reason(self) -> None:
        """Back to the question, which arms anew."""
        if self._question is not None:
            self._question.reasoning = False
            self._schedule_arming()
            self._context.changed()

    def _answer(self, answer: str, reason: str) -> None:
        # Imported at the first answer: it would cost a tenth of the start-up time.
        from midturn_core.permission.ask import AskAnswer, AskReply

        if self._question is not None and not self._question.reply.done():
            self._question.reply.set_result(AskReply(AskAnswer(answer), reason))
            self._context.changed()

    def _quiet_left(self) -> float:
        question = self._question
        if question is None or question.painted is None:
            return ARM_SECONDS
        return ARM_SECONDS - (self._context.clock() - max(question.painted, self._last_key))

    def _schedule_arming(self) -> None:
        self._cancel_timer()
        delay = max(0.0, self._quiet_left())
        self._timer = self._context.call_later(delay, self._context.changed)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
