"""One question at a time, in call order, and taken back when nobody needs it any more."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from midturn_core.events import AskAnswered, AskRequested, AskWithdrawn, Event
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.permission.decision import Decision, Verdict
from midturn_core.permission.gate import CLOSED, FAILED, AskGate, Pointless, Withdrawal

MAIN = AgentRuntimeId("s1", "main")
YES = AskReply(AskAnswer.ONCE)
ASK_AGAIN = Decision(Verdict.ASK)
COVERED = Decision(Verdict.ALLOW, "covered")


def question(name: str, index: int = 0, step: int = 1) -> Ask:
    return Ask(name, MAIN, f"use-{name}", "Bash", name, name, "why", index, order=(step, index))


class Person:
    """Answers when told to; notes which questions were on screen, and how many at once."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.on_screen = 0
        self.shown = asyncio.Event()
        self.answers: asyncio.Queue[AskReply | Exception] = asyncio.Queue()

    async def resolve(self, ask: Ask) -> AskReply:
        assert self.on_screen == 0, "two questions at once"
        self.on_screen += 1
        self.seen.append(ask.id)
        self.shown.set()
        try:
            answer = await self.answers.get()
        finally:
            # Leaving the screen takes a moment too.
            await asyncio.sleep(0)
            self.on_screen -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def say(self, *answers: AskReply | Exception) -> None:
        for answer in answers:
            self.answers.put_nowait(answer)

    async def sees(self, name: str) -> None:
        async with asyncio.timeout(60):
            while not self.seen or self.seen[-1] != name or not self.on_screen:
                self.shown.clear()
                await self.shown.wait()


class Scene:
    def __init__(self) -> None:
        self.person = Person()
        self.events: list[Event] = []
        self.gate = AskGate(self.person, self.events.append)
        self.signal = SignalSource()

    def ask(
        self,
        name: str,
        index: int = 0,
        step: int = 1,
        recheck: Callable[[], Decision] | None = None,
    ) -> asyncio.Task[AskReply | Decision | Withdrawal | Pointless]:
        return asyncio.create_task(
            self.gate.ask(question(name, index, step), recheck or (lambda: ASK_AGAIN), self.signal)
        )

    def told(self) -> list[tuple[str, str]]:
        return [
            (type(event).__name__, event.ask.id)
            for event in self.events
            if isinstance(event, AskRequested | AskAnswered | AskWithdrawn)
        ]


@pytest.fixture
async def scene() -> Scene:
    return Scene()


async def test_a_question_is_answered(scene: Scene) -> None:
    scene.person.say(YES)
    assert await scene.ask("a") == YES
    assert scene.told() == [("AskRequested", "a"), ("AskAnswered", "a")]


async def test_waiting_questions_are_asked_in_call_order(scene: Scene) -> None:
    first = scene.ask("first", index=5)
    await scene.person.sees("first")
    others = [scene.ask("c", 2), scene.ask("later step", 0, step=2), scene.ask("b", 1)]
    await asyncio.sleep(0)
    scene.person.say(YES, YES, YES, YES)
    await asyncio.gather(first, *others)
    assert scene.person.seen == ["first", "b", "c", "later step"]


async def test_a_question_that_the_previous_answer_covers_is_not_asked(scene: Scene) -> None:
    decision = ASK_AGAIN

    def remember(_: AskReply) -> None:
        nonlocal decision
        decision = COVERED

    first = asyncio.create_task(
        scene.gate.ask(question("a"), lambda: decision, scene.signal, on_reply=remember)
    )
    await scene.person.sees("a")
    waiting = [scene.ask(str(number), number, recheck=lambda: decision) for number in range(1, 5)]
    await asyncio.sleep(0)
    scene.person.say(YES)
    assert await first == YES
    assert await asyncio.gather(*waiting) == [COVERED] * 4
    assert scene.person.seen == ["a"]


async def test_one_answer_settles_what_waits_behind_another_question(scene: Scene) -> None:
    settled = ASK_AGAIN
    first = scene.ask("a")
    await scene.person.sees("a")
    second = scene.ask("b", 1)
    third = scene.ask("c", 2, recheck=lambda: settled)
    await asyncio.sleep(0)
    settled = COVERED
    scene.person.say(YES)
    assert await third == COVERED
    await scene.person.sees("b")
    scene.person.say(YES)
    assert [await first, await second] == [YES, YES]
    assert scene.person.seen == ["a", "b"]


async def test_a_change_of_mode_settles_waiting_questions(scene: Scene) -> None:
    mode_allows = False
    first = scene.ask("a")
    await scene.person.sees("a")
    second = scene.ask("b", 1, recheck=lambda: COVERED if mode_allows else ASK_AGAIN)
    await asyncio.sleep(0)
    mode_allows = True
    scene.gate.reconsider()
    assert await second == COVERED
    scene.person.say(YES)
    assert await first == YES


async def test_a_tripped_signal_takes_back_the_question_and_those_that_wait(scene: Scene) -> None:
    tasks = [scene.ask("a"), scene.ask("b", 1)]
    await scene.person.sees("a")
    scene.signal.trip(CancelReason.USER_MESSAGE)
    assert await asyncio.gather(*tasks) == [Withdrawal(CancelReason.USER_MESSAGE)] * 2
    assert scene.person.on_screen == 0
    assert scene.told() == [("AskRequested", "a"), ("AskWithdrawn", "a")]
    assert await scene.ask("c") == Withdrawal(CancelReason.USER_MESSAGE)


async def test_a_signal_from_another_thread_withdraws_too(scene: Scene) -> None:
    task = scene.ask("a")
    await scene.person.sees("a")
    await asyncio.to_thread(scene.signal.trip, CancelReason.INTERRUPT)
    assert await task == Withdrawal(CancelReason.INTERRUPT)


async def test_the_signal_of_one_call_leaves_the_others_alone(scene: Scene) -> None:
    mine = SignalSource()
    one = asyncio.create_task(scene.gate.ask(question("a"), lambda: ASK_AGAIN, mine))
    await scene.person.sees("a")
    other = scene.ask("b", 1)
    mine.trip(CancelReason.CALL_CANCELLED)
    assert await one == Withdrawal(CancelReason.CALL_CANCELLED)
    await scene.person.sees("b")
    scene.person.say(YES)
    assert await other == YES


async def test_a_cancelled_call_takes_its_question_from_the_screen(scene: Scene) -> None:
    task, other = scene.ask("a"), scene.ask("b", 1)
    await scene.person.sees("a")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await scene.person.sees("b")
    scene.person.say(YES)
    assert await other == YES
    assert ("AskWithdrawn", "a") in scene.told()


async def test_a_cancelled_call_that_waits_lets_the_next_one_through(scene: Scene) -> None:
    first, waiting, last = scene.ask("a"), scene.ask("b", 1), scene.ask("c", 2)
    await scene.person.sees("a")
    waiting.cancel()
    scene.person.say(YES, YES)
    assert [await first, await last] == [YES, YES]
    assert scene.person.seen == ["a", "c"]


async def test_an_answer_and_an_interrupt_at_once_count_as_no_answer(scene: Scene) -> None:
    task = scene.ask("a")
    await scene.person.sees("a")
    scene.person.say(YES)
    scene.signal.trip(CancelReason.INTERRUPT)
    assert await task == Withdrawal(CancelReason.INTERRUPT)


async def test_a_closed_gate_denies_now_and_later(scene: Scene) -> None:
    tasks = [scene.ask("a"), scene.ask("b", 1)]
    await scene.person.sees("a")
    scene.gate.close()
    assert await asyncio.gather(*tasks) == [CLOSED, CLOSED]
    assert await scene.ask("c") == CLOSED
    assert scene.person.seen == ["a"]


async def test_a_handler_that_raises_means_no_and_the_next_question_comes(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = [scene.ask("a"), scene.ask("b", 1)]
    scene.person.say(RuntimeError("broken panel"), YES)
    assert await asyncio.gather(*tasks) == [FAILED, YES]
    assert "could not be shown" in caplog.text


async def test_a_denial_after_waiting_is_returned_without_a_question(scene: Scene) -> None:
    denied = Decision(Verdict.DENY, "plan mode")
    assert await scene.ask("a", recheck=lambda: denied) == denied
    assert scene.told() == []


async def test_many_agents_that_come_and_go_never_put_two_questions_on_screen(
    scene: Scene,
) -> None:
    rng = random.Random(7)
    tasks: list[asyncio.Task[AskReply | Decision | Withdrawal | Pointless]] = []
    for number in range(300):
        tasks.append(scene.ask(str(number), rng.randrange(8), rng.randrange(3)))
        if rng.random() < 0.3:
            rng.choice(tasks).cancel()
        if rng.random() < 0.6:
            scene.person.say(YES)
        await asyncio.sleep(0)
    scene.person.say(*[YES] * 300)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result == YES or isinstance(result, asyncio.CancelledError) for result in results)
    assert scene.person.on_screen == 0
    asked = [ask for what, ask in scene.told() if what == "AskRequested"]
    closed = [ask for what, ask in scene.told() if what != "AskRequested"]
    assert asked == closed == scene.person.seen
