"""The rule grammar."""

from __future__ import annotations

import pytest

from midturn_core.permission.rules import (
    AnyUse,
    CommandPattern,
    DomainPattern,
    ExactCommand,
    PathPattern,
    RuleSet,
    check_rules,
    parse_rule,
)

TOOLS = ("Read", "Edit", "Write", "Bash", "WebFetch", "TodoWrite", "Grep")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Bash", AnyUse()),
        ("Bash(*)", AnyUse()),
        ("Bash(git status)", CommandPattern(("git", "status"), False)),
        ("Bash(git log:*)", CommandPattern(("git", "log"), True)),
        ("Bash(git log *)", CommandPattern(("git", "log"), True)),
        ("Bash( make  test )", CommandPattern(("make", "test"), False)),
        ("Bash(git commit -m 'a (b)')", CommandPattern(("git", "commit", "-m", "a (b)"), False)),
        ("Bash(exactly: (cd x && make) | tail)", ExactCommand("(cd x && make) | tail")),
        (r"Bash(exactly: grep 'a\\|b'\n\tx\\n)", ExactCommand("grep 'a\\|b'\n\tx\\n")),
        ("Bash(exactly: ls *)", ExactCommand("ls *")),
        ("Bash(exactly:*)", CommandPattern(("exactly",), True)),
        ("Read(src/**)", PathPattern("src/**")),
        ("Edit(//etc/hosts)", PathPattern("//etc/hosts")),
        ("WebFetch(domain:Example.com.)", DomainPattern("example.com", False)),
        ("WebFetch(domain:*.example.com)", DomainPattern("example.com", True)),
        ("WebFetch(domain:bücher.example)", DomainPattern("xn--bcher-kva.example", False)),
        ("mcp__server__tool", AnyUse()),
    ],
)
def test_rules_are_read(text: str, pattern: object) -> None:
    rule = parse_rule(text)
    assert rule.text == text
    assert rule.pattern == pattern


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a rule"),
        ("Bash(git status:*", "not a rule"),
        ("Bash git", "not a rule"),
        ("Bash()", "empty"),
        ("Bash(:*)", "at least one word"),
        ("Bash(git status && ls)", "operator &"),
        ("Bash(git status && ls)", "exactly: COMMAND"),
        ("Bash(exactly:cd x && make)", "operator &&"),
        ("Bash(exactly: )", "plain name of a program"),
        ("Bash(exactly:  make)", "begins or ends with a blank"),
        ("Bash(exactly: a\nb)", "for a line break"),
        (r"Bash(exactly: grep 'a\|b')", "for a backslash"),
        ("Bash(exactly: make\\)", "for a backslash"),
        ("Bash(exactly: \u200bmake)", r"U\+200B"),
        ("Bash(exactly: \u3164make)", r"U\+3164"),
        ("Bash(git * status)", r"\* of its own at the end"),
        ("Bash(ls $HOME:*)", "expand"),
        ("Read(!secret)", "negated"),
        ("Read(a\\)", "backslash"),
        ("WebFetch(example.com)", "domain:example.com"),
        ("WebFetch(domain:exa*mple.com)", "not a host name"),
        ("WebFetch(domain:)", "not a host name"),
        ("Web*", "mcp__"),
    ],
)
def test_what_is_no_rule_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_rule(text)


def test_rules_that_can_never_match_are_reported_with_a_hint() -> None:
    rules = RuleSet.parse(
        allow=["bash(ls)", "Read(src/**)", "mcp__files__read"],
        ask=["Frobnicate"],
        deny=["TodoWrite(x)", "Bash(rm:*)"],
    )
    assert check_rules(rules, TOOLS) == [
        "the rule TodoWrite(x) can never match: TodoWrite takes no pattern",
        "the rule Frobnicate can never match: there is no tool Frobnicate",
        "the rule bash(ls) can never match: there is no tool bash: did you mean Bash?",
    ]


@pytest.mark.parametrize(
    ("rule", "host", "matches"),
    [
        ("domain:example.com", "example.com", True),
        ("domain:example.com", "example.com.", True),
        ("domain:example.com", "www.example.com", False),
        ("domain:example.com", "example.com.evil.net", False),
        ("domain:example.com", "notexample.com", False),
        ("domain:*.example.com", "www.example.com", True),
        ("domain:*.example.com", "a.b.example.com", True),
        ("domain:*.example.com", "example.com", False),
        ("domain:*.example.com", "notexample.com", False),
    ],
)
def test_hosts_are_compared_by_label(rule: str, host: str, matches: bool) -> None:
    pattern = parse_rule(f"WebFetch({rule})").pattern
    assert isinstance(pattern, DomainPattern)
    assert pattern.matches(host) is matches
