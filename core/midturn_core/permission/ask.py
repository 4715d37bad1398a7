"""The ask gate: one question on screen at a time, in call order (S0.6, S1.39).

Permission itself is decided without a lock; only the question is behind the gate, and the
decision is taken again after acquiring it, since the previous answer may cover it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import ToolDetail


class AskAnswer(Enum):
    """What a person can say to a question (D40)."""

    ONCE = "once"
    TURN = "turn"
    SESSION = "session"
    ALWAYS = "always"
    NO = "no"
    NO_WITH_REASON = "no_with_reason"


@dataclass(frozen=True, slots=True)
class Ask:
    """One question about one tool use.

    ``order`` sorts waiting questions: step, then index in the batch. ``body`` is the full
    command, path or address (untrusted text); ``session_rule`` is what answering "this turn" or
    "this session" would allow, in the words of the rule grammar, or empty when that is not
    offered.
    """

    id: str
    context_id: AgentRuntimeId
    tool_use_id: str
    tool: str
    title: str
    body: str
    reason: str
    """Why it is asked: the rule or the mode."""
    index: int = 0
    count: int = 1
    order: tuple[int, int] = (0, 0)
    session_rule: str = ""
    detail: ToolDetail | None = None
    may_store: bool = False
    """Whether "always" is offered: to store ``session_rule``, for all sessions in all folders."""

    @property
    def offered(self) -> frozenset[AskAnswer]:
        """The answers that this question takes."""
        lasting = {AskAnswer.TURN, AskAnswer.SESSION} if self.session_rule else set[AskAnswer]()
        stored = {AskAnswer.ALWAYS} if self.session_rule and self.may_store else set[AskAnswer]()
        return frozenset({*_EVER_OFFERED, *lasting, *stored})


_EVER_OFFERED = (AskAnswer.ONCE, AskAnswer.NO, AskAnswer.NO_WITH_REASON)


@dataclass(frozen=True, slots=True)
class AskReply:
    answer: AskAnswer
    reason: str = ""
    """The user's words of a ``NO_WITH_REASON``."""
    by_person: bool = True
    """False: nobody was asked, and ``reason`` says why."""


class AskHandler(Protocol):
    """Shows one question and waits for the person. The gate never calls it twice at once.

    Cancelling the coroutine withdraws the question from the screen.
    """

    async def resolve(self, ask: Ask) -> AskReply: ...


@dataclass(frozen=True, slots=True)
class DenyingAskHandler:
    """Answers every question with no: where nobody can be asked (pipes, print mode)."""

    reason: str = "nobody can be asked here: there is no terminal"
    asked: list[Ask] = field(default_factory=list[Ask])

    async def resolve(self, ask: Ask) -> AskReply:
        self.asked.append(ask)
        return AskReply(AskAnswer.NO_WITH_REASON, self.reason, by_person=False)
