"""The rule grammar: ``Tool`` or ``Tool(pattern)`` (D42)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from midturn_core.permission.path_patterns import check_path_pattern
from midturn_core.permission.shell_words import (
    UnreadableCommandError,
    plain_words,
    refuse_invisible,
)

PATH_TOOLS = frozenset({"Read", "Edit", "Write", "MultiEdit", "Glob", "Grep"})
MCP_PREFIX = "mcp__"
_EXACTLY = "exactly:"
"""Cannot begin a list of words: no program that they may name has a colon."""
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_UNESCAPED = {escape: char for char, escape in _ESCAPES.items()}

_RULE = re.compile(r"(?P<tool>[A-Za-z_][\w-]*\*?)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_ESCAPE = re.compile(r"\\.?", re.DOTALL)
_UNSEEN_LETTER = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that leave no trace on a screen; other invisible characters are no letters."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class AnyUse:
    """Every use of the tool."""


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A shell command of these words; with ``prefix``, anything may follow them."""

    words: tuple[str, ...]
    prefix: bool


@dataclass(frozen=True, slots=True)
class ExactCommand:
    """One shell command, to the letter; it says nothing about any other."""

    text: str


@dataclass(frozen=True, slots=True)
class PathPattern:
    pattern: str


@dataclass(frozen=True, slots=True)
class DomainPattern:
    """A host; with ``subdomains``, every host below it and not the host itself."""

    domain: str
    subdomains: bool

    def matches(self, host: str) -> bool:
        """Compare by label; ``host`` is lower-case and in its ASCII form."""
        host = host.rstrip(".")
        return host.endswith("." + self.domain) if self.subdomains else host == self.domain


@dataclass(frozen=True, slots=True)
class UnusedPattern:
    """A pattern for a tool whose uses have nothing to compare it with: it never matches."""

    text: str


Pattern: TypeAlias = (
    AnyUse | CommandPattern | ExactCommand | PathPattern | DomainPattern | UnusedPattern
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was read. ``text`` is how it was written, and how it is shown."""

    text: str
    tool: str
    pattern: Pattern = field(default_factory=AnyUse)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of a session by what they do. Deny beats ask, ask beats allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def parse(
        cls, allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()
    ) -> RuleSet:
        """Read the texts of all three lists.

        Raises:
            ValueError: one of them is no rule; the text quotes it and says why.
        """
        return cls(*(tuple(parse_rule(text) for text in texts) for texts in (allow, ask, deny)))

    def __iter__(self) -> Iterator[Rule]:
        yield from (*self.deny, *self.ask, *self.allow)


def parse_rule(text: str) -> Rule:
    """Read one rule.

    Raises:
        ValueError: it is no rule, or one that could never match; one sentence says why.
    """
    written = text.strip()
    parts = _RULE.fullmatch(written)
    if parts is None:
        raise ValueError(f"{text!r} is not a rule: write Tool or Tool(pattern)")
    tool, inside = parts["tool"], parts["pattern"]
    if "*" in tool and not tool.startswith(MCP_PREFIX):
        raise ValueError(f"{text!r}: * in the name of a tool works for mcp__ tools only")
    try:
        pattern = AnyUse() if inside is None else _parse_pattern(tool, inside.strip())
    except ValueError as error:
        raise ValueError(f"the rule {written} cannot match: {error}") from None
    return Rule(written, tool, pattern)


def exact_command(tool: str, command: str) -> str:
    """The text of the rule for this very command and no other, on one line.

    Raises:
        ValueError: no rule can say it: it has invisible characters, or blanks around it.
    """
    _check_exact(command)
    written = "".join(_ESCAPES.get(char, char) for char in command)
    return f"{tool}({_EXACTLY} {written})"


def check_rules(rules: Iterable[Rule], tool_names: Collection[str]) -> list[str]:
    """One sentence for each rule that can never match with these tools."""
    return [problem for rule in rules if (problem := _problem(rule, tool_names))]


def _problem(rule: Rule, tool_names: Collection[str]) -> str:
    # Servers of MCP tools come and go; their names are not known beforehand.
    if not rule.tool.startswith(MCP_PREFIX) and rule.tool not in tool_names:
        by_lower = {name.lower(): name for name in tool_names}
        near = difflib.get_close_matches(rule.tool.lower(), by_lower, 1)
        hint = by_lower[near[0]] if near else ""
        asks = f": did you mean {hint}?" if hint else ""
        return f"the rule {rule.text} can never match: there is no tool {rule.tool}{asks}"
    if isinstance(rule.pattern, UnusedPattern):
        return f"the rule {rule.text} can never match: {rule.tool} takes no pattern"
    return ""


def _parse_pattern(tool: str, inside: str) -> Pattern:
    if not inside:
        raise ValueError("its pattern is empty")
    if inside == "*":
        return AnyUse()
    if tool == "Bash":
        return _parse_command(inside)
    if tool in PATH_TOOLS:
        check_path_pattern(inside)
        return PathPattern(inside)
    if tool == "WebFetch":
        return _parse_domain(inside)
    return UnusedPattern(inside)


def _check_exact(command: str) -> None:
    refuse_invisible(command)
    if unseen := _UNSEEN_LETTER.search(command):
        raise ValueError(f"it holds the invisible letter U+{ord(unseen[0]):04X}")
    if command != command.strip(" ") or not command.strip():
        raise ValueError("the command begins or ends with a blank, or is empty")


def _parse_exact(written: str) -> ExactCommand:
    if "\n" in written or "\t" in written:
        raise ValueError("write \\n for a line break and \\t for a tab")
    for escape in _ESCAPE.findall(written):
        if escape not in _UNESCAPED:
            raise ValueError(f"{escape} stands for nothing there; write \\\\ for a backslash")
    command = _ESCAPE.sub(lambda escape: _UNESCAPED[escape[0]], written)
    _check_exact(command)
    return ExactCommand(command)


def _parse_command(inside: str) -> CommandPattern | ExactCommand:
    if inside.startswith(f"{_EXACTLY} "):
        return _parse_exact(inside.removeprefix(f"{_EXACTLY} "))
    prefix = inside.endswith((":*", " *"))
    command = inside[:-2].strip() if prefix else inside
    if not command:
        raise ValueError("a prefix needs at least one word; for every command write Bash")
    try:
        return CommandPattern(plain_words(command), prefix)
    except UnreadableCommandError as error:
        raise ValueError(
            f"{error}; only plain words can be matched, with :* or a * of its own at the end, "
            f"or one whole command as Bash({_EXACTLY} COMMAND)"
        ) from None


def _parse_domain(inside: str) -> DomainPattern:
    key, colon, domain = inside.partition(":")
    if key != "domain" or not colon:
        raise ValueError("write WebFetch(domain:example.com)")
    domain = domain.strip().rstrip(".").lower()
    subdomains = domain.startswith("*.")
    domain = domain.removeprefix("*.")
    try:
        domain = domain.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError(f"{domain!r} is not a host name") from None
    is_address = domain.startswith("[") and domain.endswith("]")
    if not is_address and not all(_LABEL.fullmatch(label) for label in domain.split(".")):
        raise ValueError(f"{domain!r} is not a host name; a * stands only for the first labels")
    return DomainPattern(domain.strip("[]"), subdomains)
