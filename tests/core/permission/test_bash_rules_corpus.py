"""Every case of tests/corpora/bash_rules.json.

Too lax (softer than due) must never happen. Too strict is a matter of comfort, with a budget: as
long as allow rules cover only single plain commands, compound ones ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from midturn_core.permission.access import CommandAccess
from midturn_core.permission.decision import Verdict
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import Rule, RuleSet, parse_rule
from tests.support.file_cases import Case, case_id, load_cases, text_of

CASES = load_cases("bash_rules.json")
WORKSPACE = Path("/workspace")
TOO_STRICT_BUDGET = 13


def readable(texts: Sequence[str]) -> tuple[Rule, ...]:
    """The rules among the texts; the corpus holds some that are reported and ignored."""
    rules: list[Rule] = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except ValueError:
            continue
    return tuple(rules)


def verdict_of(case: Case) -> Verdict:
    rules = RuleSet(**{effect: readable(texts) for effect, texts in case["rules"].items()})
    policy = PermissionPolicy(WORKSPACE, rules, home=Path("/home/someone"))
    access = CommandAccess(text_of(case, "command"), WORKSPACE)
    return policy.decide("Bash", [access]).verdict


def accepted(case: Case) -> set[Verdict]:
    return {Verdict[word.upper()] for word in (case["expected"], *case.get("also_ok", ()))}


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_no_command_gets_a_softer_verdict_than_is_due(case: Case) -> None:
    assert verdict_of(case) >= min(accepted(case)), case["reason"]


def test_few_commands_get_a_stricter_verdict_than_is_due() -> None:
    too_strict = [case_id(case) for case in CASES if verdict_of(case) > max(accepted(case))]
    assert len(too_strict) <= TOO_STRICT_BUDGET, too_strict


def test_commands_without_operators_and_expansions_get_exactly_what_is_due() -> None:
    wrong = [
        case_id(case)
        for case in CASES
        if not set(text_of(case, "command").rstrip("\n")) & set("|&;<>()$`*?[{\n")
        and verdict_of(case) not in accepted(case)
    ]
    assert wrong == []
