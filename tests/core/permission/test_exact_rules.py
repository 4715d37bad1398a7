"""Rules for one command to the letter: what they allow, and everything near it that they do not."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
import tomlkit

from midturn_core.permission.access import CommandAccess
from midturn_core.permission.decision import PermissionMode, Verdict
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import Rule, RuleSet, exact_command, parse_rule
from midturn_core.permission.suggest import suggest_rule

WORKSPACE = Path("/repo")
CHAIN = "cd x && make 'a b' # it"


def policy(mode: PermissionMode = PermissionMode.DEFAULT, **rules: list[str]) -> PermissionPolicy:
    return PermissionPolicy(WORKSPACE, RuleSet.parse(**rules), mode, Path("/home/someone"))


def verdict(command: str, rule: Rule, under: PermissionPolicy | None = None) -> Verdict:
    access = CommandAccess(command, WORKSPACE)
    return (under or policy()).decide("Bash", [access], [rule]).verdict


def exactly(command: str) -> Rule:
    return parse_rule(exact_command("Bash", command))


@pytest.mark.parametrize(
    "command",
    [
        "cd x && make test",
        "make > log 2>&1",
        "grep 'a\\|b'\t*.txt | head",
        'for f in *; do echo "$f"; done',
        "X=1 make; echo $X `date` $(pwd)",
        "(make) & wait",
        "cd 문서 && make",
        "printf '\\n\\t\\\\'; true",
        "echo )",
    ],
)
def test_an_offered_rule_says_the_whole_command_and_survives_the_configuration(
    command: str,
) -> None:
    offered = suggest_rule(policy(), "Bash", [CommandAccess(command, WORKSPACE)])
    assert "\n" not in offered and "\t" not in offered
    document = tomlkit.document()
    document["rule"] = offered
    rule = parse_rule(tomllib.loads(tomlkit.dumps(document))["rule"])
    assert rule == parse_rule(offered) == exactly(command)
    assert verdict(command, rule) is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "cat <<'END'\n$HOME\n\tEND\nEND\n",
        "git commit -m \"$(cat <<'EOF'\nmsg 1\nEOF\n)\"",
        "cd x\nmake test",
    ],
)
def test_a_command_of_several_lines_is_offered_no_rule_but_may_have_one(command: str) -> None:
    """MB-0312: it hardly ever comes again as it was."""
    assert suggest_rule(policy(), "Bash", [CommandAccess(command, WORKSPACE)]) == ""
    text = exact_command("Bash", command)
    assert "\n" not in text and "\t" not in text
    assert verdict(command, parse_rule(text)) is Verdict.ALLOW


@pytest.mark.parametrize(
    "near",
    [
        "cd x && make 'a b'",
        "cd x && make 'a b' # it ",
        " cd x && make 'a b' # it",
        "cd x && make 'a b' # it\n",
        "cd x && make 'a b' # it\nrm -rf y",
        "cd x && make 'a b' # it\rrm -rf y",
        "cd x  && make 'a b' # it",
        "cd x\t&& make 'a b' # it",
        "cd x && make 'a  b' # it",
        'cd x && make "a b" # it',
        "cd x && make a b # it",
        "cd x && make 'a b' #it",
        "cd x & make 'a b' # it",
        "cd x && make 'a b' # It",
        "cd\u00a0x && make 'a b' # it",
        "cd x && m\u0430ke 'a b' # it",
        "cd x && make 'a b' # i\u200bt",
        "cd x && make 'a b' # it\ufe0f",
        "cd $x && make 'a b' # it",
        "sh -c \"cd x && make 'a b' # it\"",
        "make 'a b'",
        "cd x",
    ],
)
def test_nothing_that_differs_by_a_character_is_allowed(near: str) -> None:
    assert verdict(CHAIN, exactly(CHAIN)) is Verdict.ALLOW
    assert verdict(near, exactly(CHAIN)) is Verdict.ASK


@pytest.mark.parametrize("seed", range(20))
def test_no_other_command_ever_has_the_same_rule(seed: int) -> None:
    chance = random.Random(seed)
    letters = ["\\", "n", "t", "\n", "\t", ")", "(", " ", "a", ";", ":", "*", "'"]
    texts = {"x" + "".join(chance.choices(letters, k=6)) + "x" for _ in range(300)}
    rules = {text: exactly(text) for text in texts}
    assert len({rule.text for rule in rules.values()}) == len(texts)
    assert len({rule.pattern for rule in rules.values()}) == len(texts)


@pytest.mark.parametrize(
    ("deny", "expected"),
    [
        ("Bash(make:*)", Verdict.DENY),
        ("Bash(cd:*)", Verdict.DENY),
        ("Bash", Verdict.DENY),
        (f"Bash(exactly: {CHAIN})", Verdict.DENY),
        ("Bash(exactly: cd x)", Verdict.ALLOW),
        ("Bash(rm:*)", Verdict.ALLOW),
        # Where the text cannot tell, a person is asked every time.
        ("Read(.env)", Verdict.ASK),
    ],
)
def test_a_rule_that_denies_a_part_of_it_wins(deny: str, expected: Verdict) -> None:
    under = policy(deny=[deny])
    assert verdict(CHAIN, exactly(CHAIN), under) is expected
    offered = suggest_rule(under, "Bash", [CommandAccess(CHAIN, WORKSPACE)])
    assert bool(offered) is (expected is Verdict.ALLOW)


def test_ask_rules_and_plan_mode_beat_it() -> None:
    rule = exactly(CHAIN)
    assert verdict(CHAIN, rule, policy(ask=["Bash(make:*)"])) is Verdict.ASK
    assert verdict(CHAIN, rule, policy(PermissionMode.PLAN)) is Verdict.DENY
    assert verdict(CHAIN, parse_rule("Write"), policy()) is Verdict.ASK


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit && true",
        "cd .git && touch config",
        "cd a; cd ../.git/hooks; tee pre-commit",
        "true && rm -rf /",
        "cd / && rm -rf *",
    ],
)
def test_it_lifts_no_guard(command: str) -> None:
    assert verdict(command, exactly(command)) is Verdict.ASK
    assert suggest_rule(policy(), "Bash", [CommandAccess(command, WORKSPACE)]) == ""


def test_following_the_folders_of_a_command_takes_no_time_however_many_there_are() -> None:
    many = "cd a; " * 10_000 + "touch x"
    assert verdict(many, exactly(CHAIN), policy(PermissionMode.YOLO)) is Verdict.ASK
