"""What a line becomes, and that one thing runs after another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from midturn_core.controller import (
    ControllerParts,
    ControllerRules,
    LineKind,
    SessionController,
)
from midturn_core.errors import CredentialRejectedError
from midturn_core.events import Notice, TurnEnded, TurnEndReason, TurnStarted
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.queue.claims import Claims, NoStore
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.types import KIND_KEY, QueuedInput, QueuedInputPriority
from tests.support.agent_kit import CONTEXT, DEADLINE, AgentKit, until
from tests.support.scripted_model import ScriptedModel, calls, text, use

NOW, NEXT, LATER = QueuedInputPriority.NOW, QueuedInputPriority.NEXT, QueuedInputPriority.LATER


class Lines:
    """``/now!`` is immediate, ``/slow`` waits for ``release``, ``/boom`` raises, ``!`` is shell."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.release = asyncio.Event()

    def problem(self, text: str) -> str:
        return "unknown command" if text == "/hlep" else ""

    def classify(self, text: str) -> LineKind:
        if text.startswith("!"):
            return LineKind.SHELL
        if text.startswith("/now!"):
            return LineKind.IMMEDIATE
        return LineKind.COMMAND if text.startswith("/") else LineKind.PROMPT

    def run_immediate(self, text: str, attachments: Sequence[AttachmentRef] = ()) -> None:
        self.ran.append(text)

    async def run_own_turn(self, item: QueuedInput, interrupt: InterruptCoordinator) -> None:
        self.ran.append(item.input_text)
        if item.input_text == "/boom":
            raise RuntimeError("broken command")
        if item.input_text == "/slow":
            await self.release.wait()


class SlowStore:
    """Answers a claim only when ``answer`` is set."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.confirmed: list[str] = []

    async def claim(self, items: Sequence[QueuedInput]) -> list[QueuedInput]:
        self.asked.set()
        await self.answer.wait()
        return list(items)

    def confirm(self, uuids: Iterable[str]) -> None:
        self.confirmed += uuids


class Session:
    def __init__(
        self,
        model: ScriptedModel,
        rules: ControllerRules | None = None,
        claims: Claims | None = None,
    ) -> None:
        self.kit = AgentKit(model)
        self.lines = Lines()
        self.awaited_cancelled = 0
        self.controller = SessionController(
            ControllerParts(
                context_id=CONTEXT,
                agent=self.kit.agent,
                queue=self.kit.queue,
                lines=self.lines,
                emit=self.kit.emit,
                cancel_awaited_call=self._cancel,
                rules=rules or ControllerRules(),
                claims=claims or NoStore(),
            )
        )

    def _cancel(self) -> bool:
        self.awaited_cancelled += 1
        return True

    async def idle(self) -> None:
        await asyncio.wait_for(self.controller.wait_idle(), DEADLINE)

    def waiting(self) -> list[str]:
        return [item.input_text for item in self.kit.queue.snapshot()]

    def turns(self) -> list[list[str]]:
        return [[i.input_text for i in e.inputs] for e in self.kit.of(TurnStarted)]


async def test_a_line_starts_a_turn_when_idle() -> None:
    session = Session(ScriptedModel(text("hello")))
    assert session.controller.submit("hi") == ""
    assert session.controller.busy
    await session.idle()
    assert not session.controller.busy
    assert session.turns() == [["hi"]]


async def test_a_blank_line_is_nothing() -> None:
    session = Session(ScriptedModel())
    assert session.controller.submit(" \n ") == ""
    assert not session.controller.busy


async def test_a_line_waits_when_busy_with_the_meaning_of_enter() -> None:
    session = Session(
        ScriptedModel(calls(use("a", "Wait")), text("one"), text("two")),
        ControllerRules(enter=LATER),
    )
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("afterwards")
    assert session.waiting() == ["afterwards"]
    session.kit.batches.release.set()
    await session.idle()
    assert session.turns() == [["hi"], ["afterwards"]]


async def test_later_inputs_are_turns_of_their_own_one_at_a_time() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), *[text("ok")] * 3))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("first", LATER)
    session.controller.submit("second", LATER)
    session.kit.batches.release.set()
    await session.idle()
    assert session.turns() == [["hi"], ["first"], ["second"]]


async def test_later_inputs_stay_when_they_leave_only_by_hand() -> None:
    session = Session(
        ScriptedModel(calls(use("a", "Wait")), text("one"), text("two")),
        ControllerRules(later_when_idle=False),
    )
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("first", LATER)
    session.kit.batches.release.set()
    await session.idle()
    assert session.waiting() == ["first"]
    session.controller.wake(include_later=True)
    await session.idle()
    assert session.turns() == [["hi"], ["first"]]


async def test_a_command_typed_while_busy_runs_after_the_turn_and_splits_the_prompts() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("one"), text("two")))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.kit.queue.hold(CONTEXT)
    for line in ("/status", "hello", "!ls"):
        session.controller.submit(line, NEXT)
    # Held at the boundary, released when the turn is over: the order of the leftovers shows.
    session.kit.queue.hold(CONTEXT)
    session.kit.batches.release.set()
    await session.idle()
    session.controller.release_held()
    await session.idle()
    assert session.lines.ran == ["/status", "!ls"]
    assert session.turns() == [["hi"], ["hello"]]
    assert session.waiting() == []


async def test_an_immediate_command_runs_while_a_turn_runs() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("one")))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("/now!")
    assert session.lines.ran == ["/now!"]
    session.kit.batches.release.set()
    await session.idle()


async def test_a_line_with_a_problem_is_refused_and_said_so() -> None:
    session = Session(ScriptedModel())
    assert session.controller.submit("/hlep") == "unknown command"
    assert not session.controller.busy


async def test_pasted_text_is_never_a_command() -> None:
    session = Session(ScriptedModel(text("ok")))
    session.controller.submit("/clear\nrm x", pasted=True)
    await session.idle()
    assert session.turns() == [["/clear\nrm x"]]


async def test_after_an_interrupt_nothing_queued_is_sent_by_itself() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("ok")))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    for line in ("one", "two", "three"):
        session.controller.submit(line)
    session.controller.submit("four", LATER)
    assert session.controller.interrupt()
    await session.idle()
    assert session.waiting() == ["one", "two", "three", "four"]
    assert session.controller.has_held
    assert len(session.kit.model.requests) == 1


async def test_released_inputs_go_on_their_way_together() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("ok"), text("ok")))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("one")
    session.controller.submit("two")
    session.controller.interrupt()
    await session.idle()
    assert session.controller.release_held()
    await session.idle()
    assert session.turns() == [["hi"], ["one", "two"]]
    assert not session.controller.release_held()


async def test_a_line_typed_right_after_an_interrupt_is_the_next_turn() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("ok")))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("old")
    session.controller.interrupt()
    session.controller.submit("instead")
    await session.idle()
    assert session.turns() == [["hi"], ["instead"]]
    assert session.waiting() == ["old"]


async def test_an_interrupt_when_idle_does_nothing() -> None:
    session = Session(ScriptedModel())
    assert not session.controller.interrupt()


async def test_after_a_failed_turn_what_waits_is_held() -> None:
    gate = asyncio.Event()
    session = Session(ScriptedModel([gate, CredentialRejectedError("wrong key")]))
    session.controller.submit("hi")
    await until(lambda: len(session.kit.model.requests) == 1)
    session.controller.submit("more")
    gate.set()
    await session.idle()
    assert session.controller.has_held
    assert [e.reason for e in session.kit.of(TurnEnded)] == [TurnEndReason.FAILED]


async def test_a_broken_command_is_a_notice_and_the_session_goes_on() -> None:
    session = Session(ScriptedModel(text("ok")))
    session.controller.submit("/boom")
    session.controller.submit("hi")
    await session.idle()
    assert ["broken command" in e.text for e in session.kit.of(Notice)] == [True]
    assert session.turns() == [["hi"]]


async def test_closing_cancels_the_turn_and_starts_nothing_new() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait"))))
    session.controller.submit("hi")
    await session.kit.batches.running.wait()
    session.controller.submit("later")
    await asyncio.wait_for(session.controller.close(), DEADLINE)
    assert session.waiting() == ["later"]
    assert not session.controller.busy


async def test_a_full_queue_refuses_and_says_so() -> None:
    session = Session(ScriptedModel(calls(use("a", "Wait")), text("ok")))
    queue = MessageQueueManager(InMemoryMessageQueueRepository(), cap=1)
    session.kit.queue = queue
    controller = SessionController(
        ControllerParts(
            CONTEXT, session.kit.agent, queue, session.lines, session.kit.emit, lambda: False
        )
    )
    controller.submit("hi")
    await session.kit.batches.running.wait()
    assert controller.submit("one") == ""
    assert "waiting" in controller.submit("two")
    session.kit.batches.release.set()
    await controller.wait_idle()


async def test_a_line_at_any_moment_of_a_turns_end_is_never_lost() -> None:
    for pause in range(40):
        session = Session(ScriptedModel(text("one"), text("two")))
        session.controller.submit("hi")
        for _ in range(pause):
            await asyncio.sleep(0)
        session.controller.submit("late")
        await session.idle()
        heard = str(session.kit.conversation.messages)
        assert heard.count("late") == 1
        assert session.waiting() == []


@pytest.mark.parametrize("line", ["!rm it", "/slow"])
async def test_a_line_interrupted_while_the_store_is_asked_for_it_does_not_begin(
    line: str,
) -> None:
    store = SlowStore()
    session = Session(ScriptedModel(), claims=store)
    session.controller.submit(line)
    await asyncio.wait_for(store.asked.wait(), DEADLINE)
    assert session.controller.interrupt()
    store.answer.set()
    await session.idle()
    assert session.lines.ran == []
    (notice,) = session.kit.of(Notice)
    assert notice.text == f"Interrupted before it began, not run: {line}"
    assert len(store.confirmed) == 1


async def test_an_immediate_command_from_the_store_is_confirmed_once_it_ran() -> None:
    store = SlowStore()
    store.answer.set()
    session = Session(ScriptedModel(), claims=store)
    item = QueuedInput("/now!", CONTEXT, metadata={KIND_KEY: LineKind.IMMEDIATE.value})
    assert session.controller.take(item) == ""
    await session.idle()
    assert session.lines.ran == ["/now!"]
    assert store.confirmed == [item.uuid]
