"""``PermissionPolicy``: may a call happen, must a person be asked, or is it out of the question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from midturn_core.permission.access import Access, CommandAccess, HostAccess, PathAccess
from midturn_core.permission.command_subject import CommandSubject
from midturn_core.permission.decision import Decision, Match, PermissionMode, Verdict
from midturn_core.permission.rules import Rule, RuleSet
from midturn_core.permission.subjects import (
    HostSubject,
    PathSubject,
    Subject,
    Surroundings,
    ToolSubject,
)


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Pure: the same question gets the same answer, and nothing outside is looked at.

    In this order: deny rules; plan mode; ask rules, and deny rules where the text of a command
    cannot tell; what no wildcard opens; allow rules; the mode.

    Args:
        workspace: where the user started, resolved.
        own_folders: Midturn's configuration, state and session folders, resolved.
    """

    workspace: Path
    rules: RuleSet = field(default_factory=RuleSet)
    mode: PermissionMode = PermissionMode.DEFAULT
    home: Path = field(default_factory=Path.home)
    own_folders: tuple[Path, ...] = ()

    def decide(
        self, tool_name: str, accesses: Sequence[Access], session_rules: Iterable[Rule] = ()
    ) -> Decision:
        """The strictest decision on anything the call would touch.

        ``session_rules`` allow in addition to the rules of the policy.
        """
        allow = (*self.rules.allow, *session_rules)
        subjects = [self._subject(tool_name, access) for access in accesses]
        decisions = [
            self._decide(subject, allow) for subject in subjects or [ToolSubject(tool_name)]
        ]
        return max(decisions, key=lambda decision: decision.verdict)

    def guards(self, tool_name: str, accesses: Iterable[Access]) -> bool:
        """Whether the call touches anything that no wildcard opens."""
        return any(self._subject(tool_name, access).guard(self.mode) for access in accesses)

    def withholds(
        self,
        tool_name: str,
        path: Path,
        searched: Sequence[Access],
        session_rules: Iterable[Rule] = (),
    ) -> bool:
        """Whether a permitted search of ``searched`` must pass over a file (absolute path) in it.

        So it is where a rule denies it, and where it would be asked about by itself but nobody
        was asked about the search.
        """
        rules = tuple(session_rules)
        found = self.decide(tool_name, [PathAccess(path, path, False)], rules).verdict
        if found is Verdict.ASK:
            return self.decide(tool_name, searched, rules).verdict is not Verdict.ASK
        return found is Verdict.DENY

    def _surroundings(self) -> Surroundings:
        return Surroundings(self.workspace, self.home, self.own_folders)

    def _subject(self, tool_name: str, access: Access) -> Subject:
        match access:
            case PathAccess():
                return PathSubject(tool_name, access, self._surroundings())
            case CommandAccess():
                return CommandSubject.read(tool_name, access, self._surroundings())
            case HostAccess():
                return HostSubject(tool_name, access)
            case _:
                assert_never(access)

    def _decide(self, subject: Subject, allow: Sequence[Rule]) -> Decision:
        denials = [(subject.denied_by(rule), rule) for rule in self.rules.deny]
        for match, rule in denials:
            if match is Match.YES:
                return Decision(Verdict.DENY, f"the rule {rule.text} denies it", rule.text)
        if self.mode is PermissionMode.PLAN and subject.changes:
            return Decision(
                Verdict.DENY,
                "plan mode only reads: nothing is written or run. "
                "Put what you would do into your plan; the user can leave plan mode",
            )
        for rule in self.rules.ask:
            if subject.asked_by(rule) is not Match.NO:
                return Decision(Verdict.ASK, f"the rule {rule.text} asks", rule.text)
        for match, rule in denials:
            if match is Match.MAYBE:
                reason = f"it may be what the rule {rule.text} denies"
                return Decision(Verdict.ASK, reason, rule.text)
        return self._decide_without_strict_rules(subject, allow)

    def _decide_without_strict_rules(self, subject: Subject, allow: Sequence[Rule]) -> Decision:
        guard = subject.guard(self.mode)
        for rule in allow:
            if subject.named_by(rule) if guard else subject.allowed_by(rule):
                return Decision(Verdict.ALLOW, f"the rule {rule.text} allows it", rule.text)
        return Decision(Verdict.ASK, guard) if guard else subject.default(self.mode)
