"""How rules look at each kind of access; ``policy`` turns the answers into a decision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from midturn_core.permission.access import HostAccess, PathAccess
from midturn_core.permission.decision import Decision, Match, PermissionMode, Verdict
from midturn_core.permission.path_patterns import has_wildcard, path_matches
from midturn_core.permission.protected import protection, secrecy
from midturn_core.permission.rules import (
    MCP_PREFIX,
    AnyUse,
    DomainPattern,
    PathPattern,
    Rule,
)

ALLOWED = Decision(Verdict.ALLOW)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folders that decisions depend on; all resolved.

    ``own_folders`` are Midturn's configuration, state and sessions.
    """

    workspace: Path
    home: Path
    own_folders: tuple[Path, ...] = ()

    def protects(self, path: Path) -> str:
        """Why writing to ``path`` is always asked about, or an empty string."""
        if any(path.is_relative_to(folder) for folder in self.own_folders):
            return "it belongs to Midturn itself"
        return protection(path, self.workspace)

    def is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.workspace)


class Subject(Protocol):
    """One thing that a call would do, as rules see it."""

    @property
    def changes(self) -> bool:
        """It writes or runs something: nothing for plan mode."""
        ...

    def denied_by(self, rule: Rule) -> Match: ...

    def asked_by(self, rule: Rule) -> Match: ...

    def allowed_by(self, rule: Rule) -> bool: ...

    def guard(self, mode: PermissionMode) -> str:
        """Why it is asked even though a wildcard may allow it; empty: it is not."""
        ...

    def named_by(self, rule: Rule) -> bool:
        """Whether an allow rule names this very thing, which lifts the guard."""
        ...

    def default(self, mode: PermissionMode) -> Decision:
        """Where no rule decides."""
        ...


def covers_tool(rule: Rule, tool: str) -> bool:
    """Whether the rule is about this tool; ``mcp__server`` is about all tools of a server."""
    if rule.tool == tool:
        return True
    if rule.tool.endswith("*"):
        return tool.startswith(rule.tool[:-1])
    return rule.tool.startswith(MCP_PREFIX) and tool.startswith(rule.tool + "__")


@dataclass(frozen=True, slots=True)
class ToolSubject:
    """A call that touches nothing the policy knows: free, except for MCP tools."""

    tool: str

    @property
    def changes(self) -> bool:
        return self.tool.startswith(MCP_PREFIX)

    def denied_by(self, rule: Rule) -> Match:
        matches = covers_tool(rule, self.tool) and isinstance(rule.pattern, AnyUse)
        return Match.YES if matches else Match.NO

    def asked_by(self, rule: Rule) -> Match:
        return self.denied_by(rule)

    def allowed_by(self, rule: Rule) -> bool:
        return self.denied_by(rule) is Match.YES

    def guard(self, mode: PermissionMode) -> str:
        return ""

    def named_by(self, rule: Rule) -> bool:
        return self.allowed_by(rule)

    def default(self, mode: PermissionMode) -> Decision:
        if self.changes and mode is not PermissionMode.YOLO:
            return Decision(Verdict.ASK, "no rule allows this tool")
        return ALLOWED


@dataclass(frozen=True, slots=True)
class PathSubject:
    """A file or folder. Deny and ask look at the written and at the resolved path, allow only at
    the resolved one.
    """

    tool: str
    access: PathAccess
    around: Surroundings

    @property
    def changes(self) -> bool:
        return self.access.writes

    def denied_by(self, rule: Rule) -> Match:
        # What may not be read may not be written either.
        return self._match(rule, covered=rule.tool == "Read" or self._covers(rule))

    def asked_by(self, rule: Rule) -> Match:
        return self._match(rule, covered=self._covers(rule))

    def allowed_by(self, rule: Rule) -> bool:
        return self._covers(rule) and self._names(rule, self.access.resolved)

    def guard(self, mode: PermissionMode) -> str:
        paths = (self.access.resolved, self.access.written)
        if self.access.writes:
            return self.around.protects(paths[0]) or self.around.protects(paths[1])
        if mode is PermissionMode.YOLO:
            return ""
        workspace = self.around.workspace
        return secrecy(paths[0], workspace) or secrecy(paths[1], workspace)

    def named_by(self, rule: Rule) -> bool:
        pattern = rule.pattern
        if not isinstance(pattern, PathPattern) or has_wildcard(pattern.pattern):
            return False
        named, workspace = Path(pattern.pattern.replace("\\", "")), self.around.workspace
        about_it = protection if self.access.writes else secrecy
        return bool(about_it(named, workspace)) and self.allowed_by(rule)

    def default(self, mode: PermissionMode) -> Decision:
        if mode is PermissionMode.YOLO:
            return ALLOWED
        if not self.around.is_inside(self.access.resolved):
            return Decision(Verdict.ASK, f"{self.access.resolved} is outside the workspace")
        if self.access.writes and mode is not PermissionMode.ACCEPT_EDITS:
            return Decision(Verdict.ASK, "writing asks, unless a rule or a mode allows it")
        return ALLOWED

    def _covers(self, rule: Rule) -> bool:
        by_kind = "Edit" if self.access.writes else "Read"
        return rule.tool == by_kind or covers_tool(rule, self.tool)

    def _match(self, rule: Rule, *, covered: bool) -> Match:
        paths = {self.access.resolved, self.access.written}
        named = covered and any(self._names(rule, path) for path in paths)
        return Match.YES if named else Match.NO

    def _names(self, rule: Rule, path: Path) -> bool:
        match rule.pattern:
            case AnyUse():
                return True
            case PathPattern(pattern):
                return path_matches(pattern, path, self.around.workspace, self.around.home)
            case _:
                return False


@dataclass(frozen=True, slots=True)
class HostSubject:
    """A web address: allowed per host."""

    tool: str
    access: HostAccess

    @property
    def changes(self) -> bool:
        return False

    def denied_by(self, rule: Rule) -> Match:
        return Match.YES if self.allowed_by(rule) else Match.NO

    def asked_by(self, rule: Rule) -> Match:
        return self.denied_by(rule)

    def allowed_by(self, rule: Rule) -> bool:
        if rule.tool != "WebFetch" and not covers_tool(rule, self.tool):
            return False
        match rule.pattern:
            case AnyUse():
                return True
            case DomainPattern():
                return rule.pattern.matches(self.access.host)
            case _:
                return False

    def guard(self, mode: PermissionMode) -> str:
        return ""

    def named_by(self, rule: Rule) -> bool:
        return self.allowed_by(rule)

    def default(self, mode: PermissionMode) -> Decision:
        if mode is PermissionMode.YOLO:
            return ALLOWED
        return Decision(Verdict.ASK, f"no rule allows the host {self.access.host}")
