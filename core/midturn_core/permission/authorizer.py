"""``Authorizer``: the permission stage of a call, policy and question together (D30)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from midturn_core.ids import AgentRuntimeId, new_id
from midturn_core.interrupt import CancelReason, Signal
from midturn_core.model.messages import ToolDetail
from midturn_core.permission.access import Access, PathAccess
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.permission.decision import Decision, PermissionMode, Verdict
from midturn_core.permission.gate import AskGate, Look, Pointless, Withdrawal
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import Rule, parse_rule
from midturn_core.permission.session_rules import SessionRules
from midturn_core.permission.suggest import may_be_stored, suggest_rule


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """One call that wants to run, with its final input (D30). Fields as in ``Ask``.

    ``must_ask`` is why a person must be asked although the policy would allow it (a hook said
    so); empty: the policy alone decides.
    """

    context_id: AgentRuntimeId
    tool_use_id: str
    tool: str
    title: str
    body: str
    accesses: Sequence[Access]
    index: int = 0
    count: int = 1
    order: tuple[int, int] = (0, 0)
    detail: ToolDetail | None = None
    must_ask: str = ""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The call must not run; ``reason`` is for the model, in whole sentences."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The signal tripped before anybody answered: the call never starts."""

    reason: CancelReason


Authorization: TypeAlias = Allowed | Denied | Withdrawn | Pointless

StoreRule: TypeAlias = Callable[[Rule], bool]
"""Stores an allow rule for all sessions and says so; False: it could not, and has said why.

One that stores without waiting returns True, and itself moves the rule from ``stored_rules`` to
``session_rules`` if that fails.
"""


class Authorizer:
    """Decides on calls. One for a whole session: all its agents share rules and gate.

    Used on the loop's thread; ``policy`` may be replaced at any time. Without ``store_rule`` the
    answer "always" is not offered.
    """

    def __init__(
        self,
        policy: PermissionPolicy,
        gate: AskGate,
        session_rules: SessionRules | None = None,
        store_rule: StoreRule | None = None,
    ) -> None:
        self._policy = policy
        self._gate = gate
        self._store_rule = store_rule
        self.session_rules = SessionRules() if session_rules is None else session_rules
        self.turn_rules = SessionRules()
        """Allowed for the rest of the turn, for its subagents too."""
        self.stored_rules = SessionRules()
        """Allowed for always in this session; from the next one on the configuration has them."""

    @property
    def policy(self) -> PermissionPolicy:
        return self._policy

    @property
    def mode(self) -> PermissionMode:
        return self._policy.mode

    def set_mode(self, mode: PermissionMode) -> None:
        """Change the mode for all later decisions; questions that still wait are settled by it."""
        self.set_policy(dataclasses.replace(self._policy, mode=mode))

    def set_policy(self, policy: PermissionPolicy) -> None:
        """Decide by another policy from now on, waiting questions included."""
        self._policy = policy
        self._gate.reconsider()

    def decide(self, request: PermissionRequest) -> Decision:
        """What would happen to the call now, without asking anybody."""
        decision = self._policy.decide(request.tool, request.accesses, self._granted())
        if request.must_ask and decision.verdict is Verdict.ALLOW:
            return Decision(Verdict.ASK, request.must_ask)
        return decision

    def withholds(self, tool_name: str, path: Path, searched: Sequence[Access]) -> bool:
        """Whether a permitted search must pass over a file: see ``PermissionPolicy``."""
        return self._policy.withholds(tool_name, path, searched, self._granted())

    def may_read(self, access: PathAccess) -> bool:
        """Whether the file could be read now without a question."""
        reading = PathAccess(access.written, access.resolved, writes=False)
        return self._policy.decide("Read", [reading], self._granted()).verdict is Verdict.ALLOW

    def end_turn(self) -> None:
        """Forget what was allowed for the turn."""
        self.turn_rules.clear()

    def _granted(self) -> tuple[Rule, ...]:
        granted = (self.stored_rules, self.session_rules, self.turn_rules)
        return tuple(rule for rules in granted for rule in rules.rules())

    async def authorize(
        self,
        request: PermissionRequest,
        signal: Signal,
        on_asking: Callable[[], None] = lambda: None,
        look: Look | None = None,
    ) -> Authorization:
        """Decide, and ask where the decision is ASK; the signal takes the question back.

        ``on_asking`` is called when the call begins to wait for a person (D22); ``look`` completes
        the question when its turn has come, or finds that it has no point.
        """
        decision = self.decide(request)
        if decision.verdict is not Verdict.ASK:
            return _settled(decision)
        on_asking()
        ask = self._ask_about(request, decision)
        outcome = await self._gate.ask(
            ask,
            lambda: self.decide(request),
            signal,
            on_reply=lambda reply: self._remember(ask, reply),
            look=look,
        )
        match outcome:
            case Withdrawal(reason):
                return Withdrawn(reason)
            case Pointless():
                return outcome
            case Decision():
                return _settled(outcome)
            case AskReply():
                return _answered(outcome)

    def _ask_about(self, request: PermissionRequest, decision: Decision) -> Ask:
        offered = (
            "" if request.must_ask else suggest_rule(self._policy, request.tool, request.accesses)
        )
        return Ask(
            id=new_id("ask"),
            context_id=request.context_id,
            tool_use_id=request.tool_use_id,
            tool=request.tool,
            title=request.title,
            body=request.body,
            reason=decision.reason,
            index=request.index,
            count=request.count,
            order=request.order,
            session_rule=offered,
            detail=request.detail,
            may_store=self._store_rule is not None
            and may_be_stored(self._policy, offered, request.tool, request.accesses),
        )

    def _remember(self, ask: Ask, reply: AskReply) -> None:
        if reply.answer not in ask.offered:
            return
        match reply.answer:
            case AskAnswer.TURN:
                self.turn_rules.add(parse_rule(ask.session_rule))
            case AskAnswer.SESSION:
                self.session_rules.add(parse_rule(ask.session_rule))
            case AskAnswer.ALWAYS:
                self._store(parse_rule(ask.session_rule))
            case AskAnswer.ONCE | AskAnswer.NO | AskAnswer.NO_WITH_REASON:
                pass

    def _store(self, rule: Rule) -> None:
        stored = self._store_rule is not None and self._store_rule(rule)
        (self.stored_rules if stored else self.session_rules).add(rule)


def _settled(decision: Decision) -> Authorization:
    if decision.verdict is Verdict.ALLOW:
        return Allowed()
    return Denied(
        f"Permission denied: {decision.reason}. Do not try to reach the same in another way."
    )


def _answered(reply: AskReply) -> Authorization:
    match reply.answer:
        case AskAnswer.ONCE | AskAnswer.TURN | AskAnswer.SESSION | AskAnswer.ALWAYS:
            return Allowed()
        case AskAnswer.NO:
            return Denied(
                "The user declined this call. Do not repeat it; ask how to go on if it is unclear."
            )
        case AskAnswer.NO_WITH_REASON:
            if not reply.by_person:
                return Denied(f"Permission is needed, but {reply.reason}.")
            return Denied(f"The user declined this call and said: {reply.reason}")
