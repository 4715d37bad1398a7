"""The permission stage as the runner of calls uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from midturn_core.call_runner import PendingCall
from midturn_core.dispatch.runner import BatchCall
from midturn_core.events import CallPhase, Event
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import DiffDetail, JsonObject, Outcome, ToolUse
from midturn_core.permission.access import Access, CommandAccess
from midturn_core.permission.ask import Ask, AskAnswer, AskHandler, AskReply, DenyingAskHandler
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.gate import AskGate
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet
from midturn_core.permission.stage import PermissionStage
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    ToolContext,
    ToolResult,
)

MAIN = AgentRuntimeId("s1", "main")
WORKSPACE = Path("/repo")


class Shell:
    """The parts of a shell tool that permission looks at."""

    name = "Bash"
    description = "runs a command"
    input_schema: JsonObject = {"type": "object"}

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.EXTERNALLY_TERMINATED

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return None

    def validate(self, tool_input: JsonObject) -> None:
        return None

    def describe(self, tool_input: JsonObject) -> str:
        return str(tool_input["command"])

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        return [CommandAccess(str(tool_input["command"]), WORKSPACE)]

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        raise AssertionError("only permission is looked at here")


@dataclass
class Person:
    reply: AskReply
    asked: list[Ask] = field(default_factory=list[Ask])

    async def resolve(self, ask: Ask) -> AskReply:
        self.asked.append(ask)
        return self.reply


@dataclass
class Scene:
    handler: AskHandler
    signal: SignalSource = field(default_factory=SignalSource)
    phases: list[CallPhase] = field(default_factory=list[CallPhase])
    events: list[Event] = field(default_factory=list[Event])

    def stage(self, allow: Sequence[str] = ()) -> PermissionStage:
        policy = PermissionPolicy(WORKSPACE, RuleSet.parse(allow=allow), home=Path("/home/someone"))
        return PermissionStage(Authorizer(policy, AskGate(self.handler, self.events.append)), MAIN)

    def pending(self, command: str) -> PendingCall:
        use = ToolUse("toolu_1", "Bash", {"command": command, "description": "why"})
        call = BatchCall(
            tool_use=use,
            batch_id="batch-1",
            step=2,
            index=1,
            count=3,
            signal=self.signal,
            announce=self.phases.append,
            progress=lambda _: None,
        )
        return PendingCall(call, Shell(), (CommandAccess(command, WORKSPACE),))


async def test_an_allowed_call_goes_on_without_a_word() -> None:
    scene = Scene(DenyingAskHandler())
    assert await scene.stage(["Bash(make:*)"])(scene.pending("make test")) is None
    assert scene.events == []
    assert CallPhase.ASKING not in scene.phases


async def test_an_interceptor_has_a_person_asked_about_an_allowed_call() -> None:
    person = Person(AskReply(AskAnswer.NO))
    pending = replace(Scene(person).pending("make test"), must_ask="clock: it is late")
    answer = await Scene(person).stage(["Bash(make:*)"])(pending)
    assert answer is not None
    assert answer.outcome is Outcome.DENIED
    assert [(ask.reason, ask.session_rule) for ask in person.asked] == [("clock: it is late", "")]


async def test_a_question_names_the_call_and_stops_its_clock_while_a_person_thinks() -> None:
    person = Person(AskReply(AskAnswer.ONCE))
    scene = Scene(person)
    assert await scene.stage()(scene.pending("make test")) is None
    (ask,) = person.asked
    assert (ask.context_id, ask.tool_use_id, ask.title) == (MAIN, "toolu_1", "Bash")
    assert (ask.index, ask.count, ask.order) == (1, 3, (2, 1))
    assert ask.body == "make test\ndescription:\nwhy"
    assert scene.phases == [CallPhase.ASKING, CallPhase.WAITING]


async def test_a_refused_call_is_answered_with_the_users_words() -> None:
    scene = Scene(Person(AskReply(AskAnswer.NO_WITH_REASON, "use uv")))
    result = await scene.stage()(scene.pending("pip install x"))
    assert result is not None
    assert result.outcome is Outcome.DENIED
    assert result.content.endswith("said: use uv")


async def test_a_call_whose_signal_has_tripped_is_skipped_and_nobody_is_asked() -> None:
    person = Person(AskReply(AskAnswer.ONCE))
    scene = Scene(person)
    scene.signal.trip(CancelReason.USER_MESSAGE)
    result = await scene.stage()(scene.pending("make test"))
    assert result is not None
    assert (result.outcome, result.content) == (Outcome.SKIPPED, "skipped: the user sent a message")
    assert person.asked == []


class Editor(Shell):
    name = "Edit"

    def preview(self, tool_input: JsonObject, accesses: Sequence[Access]) -> DiffDetail:
        return DiffDetail("a.py", "-old\n+new", 1, 1)


async def test_a_question_shows_the_change_instead_of_the_raw_texts() -> None:
    person = Person(AskReply(AskAnswer.ONCE))
    scene = Scene(person)
    pending = replace(scene.pending("ignored"), tool=Editor())
    await scene.stage()(pending)
    (ask,) = person.asked
    assert ask.detail == DiffDetail("a.py", "-old\n+new", 1, 1)
    assert "why" not in ask.body
