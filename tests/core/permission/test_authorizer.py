"""Policy, questions and session rules together, as a call goes through them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from midturn_core.events import Event
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonValue
from midturn_core.permission.access import CommandAccess, HostAccess, PathAccess
from midturn_core.permission.ask import Ask, AskAnswer, AskHandler, AskReply, DenyingAskHandler
from midturn_core.permission.authorizer import (
    Allowed,
    Authorizer,
    Denied,
    PermissionRequest,
    StoreRule,
    Withdrawn,
)
from midturn_core.permission.decision import PermissionMode
from midturn_core.permission.gate import AskGate
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import Rule, RuleSet
from midturn_core.permission.stage import question_body

MAIN = AgentRuntimeId("s1", "main")
WORKSPACE = Path("/repo")


@dataclass
class Scripted:
    """Gives its answers in turn; an Ask that comes after the last one waits for ever."""

    answers: list[AskReply] = field(default_factory=list[AskReply])
    asked: list[Ask] = field(default_factory=list[Ask])
    shown: asyncio.Event = field(default_factory=asyncio.Event)

    async def is_asked(self) -> None:
        async with asyncio.timeout(60):
            await self.shown.wait()

    async def resolve(self, ask: Ask) -> AskReply:
        self.asked.append(ask)
        self.shown.set()
        if not self.answers:
            await asyncio.Event().wait()
        return self.answers.pop(0)


@dataclass
class StoredRules:
    texts: list[str]

    def __call__(self, rule: Rule) -> bool:
        self.texts.append(rule.text)
        return True


def authorizer(
    handler: AskHandler, store_rule: StoreRule | None = None, **rules: list[str]
) -> Authorizer:
    events: list[Event] = []
    policy = PermissionPolicy(WORKSPACE, RuleSet.parse(**rules), home=Path("/home/someone"))
    return Authorizer(policy, AskGate(handler, events.append), store_rule=store_rule)


def running(command: str, index: int = 0) -> PermissionRequest:
    return PermissionRequest(
        context_id=MAIN,
        tool_use_id=f"use-{index}",
        tool="Bash",
        title=command,
        body=command,
        accesses=[CommandAccess(command, WORKSPACE)],
        index=index,
        count=3,
        order=(1, index),
    )


def fetching(host: str, index: int) -> PermissionRequest:
    access = HostAccess(f"https://{host}/{index}", host)
    return replace(running(access.url, index), tool="WebFetch", accesses=[access])


async def test_what_a_rule_allows_runs_without_a_question() -> None:
    person = Scripted()
    asking: list[bool] = []
    outcome = await authorizer(person, allow=["Bash(make:*)"]).authorize(
        running("make test"), SignalSource(), lambda: asking.append(True)
    )
    assert (outcome, person.asked, asking) == (Allowed(), [], [])


async def test_what_a_rule_denies_is_told_to_the_model_with_the_rule() -> None:
    person = Scripted()
    outcome = await authorizer(person, deny=["Bash(rm:*)"]).authorize(
        running("rm x"), SignalSource()
    )
    assert isinstance(outcome, Denied)
    assert "Bash(rm:*)" in outcome.reason
    assert person.asked == []


async def test_the_question_says_everything_about_the_call() -> None:
    person = Scripted([AskReply(AskAnswer.ONCE)])
    asking: list[bool] = []
    outcome = await authorizer(person).authorize(
        running("make test", 1), SignalSource(), lambda: asking.append(True)
    )
    assert outcome == Allowed()
    assert asking == [True]
    (ask,) = person.asked
    assert (ask.tool, ask.title, ask.index, ask.count, ask.order) == (
        "Bash",
        "make test",
        1,
        3,
        (1, 1),
    )
    assert ask.session_rule == "Bash(make test)"
    assert ask.reason == "no rule allows this command"


async def test_once_is_once() -> None:
    person = Scripted([AskReply(AskAnswer.ONCE), AskReply(AskAnswer.NO)])
    session = authorizer(person)
    assert await session.authorize(running("make test"), SignalSource()) == Allowed()
    assert isinstance(await session.authorize(running("make test"), SignalSource()), Denied)


async def test_this_session_stores_the_rule_that_was_shown() -> None:
    person = Scripted([AskReply(AskAnswer.SESSION)])
    session = authorizer(person)
    assert await session.authorize(running("git log -1"), SignalSource()) == Allowed()
    assert [rule.text for rule in session.session_rules.rules()] == [person.asked[0].session_rule]
    assert await session.authorize(running("git log -2"), SignalSource()) == Allowed()
    assert len(person.asked) == 1


async def test_this_turn_holds_until_the_turn_ends() -> None:
    person = Scripted([AskReply(AskAnswer.TURN), AskReply(AskAnswer.NO)])
    session = authorizer(person)
    for number in (1, 2):
        assert await session.authorize(running(f"git log -{number}"), SignalSource()) == Allowed()
    assert (len(person.asked), session.session_rules.rules()) == (1, ())
    session.end_turn()
    assert isinstance(await session.authorize(running("git log -3"), SignalSource()), Denied)


async def test_always_stores_the_rule_that_was_shown_and_holds_at_once() -> None:
    person = Scripted([AskReply(AskAnswer.ALWAYS)])
    stored: list[str] = []
    session = authorizer(person, StoredRules(stored))
    for number in (1, 2):
        assert await session.authorize(running(f"git log -{number}"), SignalSource()) == Allowed()
    assert stored == [ask.session_rule for ask in person.asked] == ["Bash(git log:*)"]
    assert [rule.text for rule in session.stored_rules.rules()] == stored


async def test_always_holds_for_the_session_where_the_rule_could_not_be_stored() -> None:
    person = Scripted([AskReply(AskAnswer.ALWAYS)])
    session = authorizer(person, lambda _: False)
    for number in (1, 2):
        assert await session.authorize(running(f"git log -{number}"), SignalSource()) == Allowed()
    assert [rule.text for rule in session.session_rules.rules()] == ["Bash(git log:*)"]
    assert session.stored_rules.rules() == ()


@pytest.mark.parametrize("answer", [AskAnswer.TURN, AskAnswer.SESSION, AskAnswer.ALWAYS])
async def test_what_is_not_offered_allows_no_more_than_the_one_call(answer: AskAnswer) -> None:
    person = Scripted([AskReply(answer), AskReply(AskAnswer.NO)])
    stored: list[str] = []
    session = authorizer(person, StoredRules(stored))
    assert await session.authorize(running("make > .git/config"), SignalSource()) == Allowed()
    assert isinstance(
        await session.authorize(running("make > .git/config"), SignalSource()), Denied
    )
    assert stored == []


async def test_the_question_offers_the_answers_that_it_takes() -> None:
    person = Scripted([AskReply(AskAnswer.ONCE)] * 4)
    session = authorizer(person, lambda _: True)
    for command in ("git log", "rm x", "make > .git/config"):
        await session.authorize(running(command), SignalSource())
    await authorizer(person).authorize(running("git log"), SignalSource())
    ever = {AskAnswer.ONCE, AskAnswer.NO, AskAnswer.NO_WITH_REASON}
    lasting = {*ever, AskAnswer.TURN, AskAnswer.SESSION}
    assert [ask.offered for ask in person.asked] == [
        {*lasting, AskAnswer.ALWAYS},
        lasting,
        ever,
        lasting,
    ]


async def test_one_session_answer_settles_three_fetches_of_one_host() -> None:
    person = Scripted([AskReply(AskAnswer.SESSION)])
    session = authorizer(person)
    outcomes = await asyncio.gather(
        *(session.authorize(fetching("example.com", index), SignalSource()) for index in range(3))
    )
    assert outcomes == [Allowed()] * 3
    assert len(person.asked) == 1


async def test_a_reason_reaches_the_model_in_the_users_words() -> None:
    person = Scripted([AskReply(AskAnswer.NO_WITH_REASON, "use pytest -x")])
    outcome = await authorizer(person).authorize(running("make test"), SignalSource())
    assert outcome == Denied("The user declined this call and said: use pytest -x")


async def test_without_a_terminal_the_model_hears_that_nobody_was_asked() -> None:
    outcome = await authorizer(DenyingAskHandler()).authorize(running("make"), SignalSource())
    assert isinstance(outcome, Denied)
    assert "nobody can be asked" in outcome.reason
    assert "user" not in outcome.reason


async def test_a_tripped_signal_withdraws() -> None:
    person, signal = Scripted(), SignalSource()
    task = asyncio.create_task(authorizer(person).authorize(running("make"), signal))
    await person.is_asked()
    signal.trip(CancelReason.INTERRUPT)
    assert await task == Withdrawn(CancelReason.INTERRUPT)


async def test_a_new_mode_holds_at_once_even_for_waiting_questions() -> None:
    person = Scripted()
    session = authorizer(person)
    first = asyncio.create_task(session.authorize(running("make a"), SignalSource()))
    second = asyncio.create_task(session.authorize(running("make b", 1), SignalSource()))
    await person.is_asked()
    session.set_mode(PermissionMode.PLAN)
    outcome = await second
    assert isinstance(outcome, Denied)
    assert "plan mode" in outcome.reason
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_hook_can_insist_on_a_question_that_no_session_rule_answers() -> None:
    person = Scripted([AskReply(AskAnswer.SESSION), AskReply(AskAnswer.ONCE)])
    session = authorizer(person, allow=["Bash"])
    request = replace(running("make"), must_ask="the audit hook asks")
    for _ in range(2):
        assert await session.authorize(request, SignalSource()) == Allowed()
    assert [ask.reason for ask in person.asked] == ["the audit hook asks"] * 2
    assert person.asked[0].session_rule == ""
    assert session.session_rules.rules() == ()


def test_the_body_of_a_question_shows_the_resolved_path_and_every_text() -> None:
    access = PathAccess(WORKSPACE / "link.py", Path("/etc/real.py"), True)
    texts: dict[str, JsonValue] = {"file_path": "link.py", "old_string": "a", "new_string": "b\nc"}
    assert question_body([access], texts) == (
        "/etc/real.py (through /repo/link.py)\nold_string:\na\nnew_string:\nb\nc"
    )


def test_the_body_of_a_command_or_an_address_is_that_alone() -> None:
    access = CommandAccess("make test", WORKSPACE)
    assert question_body([access], {"command": "make test", "timeout": 5}) == "make test"
    host = HostAccess("https://example.com/a", "example.com")
    assert question_body([host], {"url": "https://example.com/a"}) == "https://example.com/a"
