from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from midturn_cli.ports import LiveRegion
from midturn_core.events import AskAnswered, AskRequested, AskWithdrawn
from midturn_core.ids import AgentRuntimeId
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from tests.support.fake_presenter import FakePresenter
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import (
    LiveTerminal,
    TerminalSetup,
    live_terminal,
    until,
    within_deadline,
)

ESC = "\x1b"
READY = "[y/s/n/r]"


def question(title: str = "ls", rule: str = "Bash(ls:*)", *, may_store: bool = True) -> Ask:
    context = AgentRuntimeId("test")
    ask = Ask(title, context, "use-1", "Bash", title, title, "", session_rule=rule)
    return replace(ask, may_store=may_store)


async def resolve(terminal: LiveTerminal, ask: Ask) -> AskReply:
    """What the gate does around its handler."""
    terminal.front.emit(AskRequested(ask))
    try:
        reply = await terminal.front.ask_handler.resolve(ask)
    except asyncio.CancelledError:
        terminal.front.emit(AskWithdrawn(ask, "withdrawn"))
        raise
    terminal.front.emit(AskAnswered(ask, reply))
    return reply


@asynccontextmanager
async def asking(
    ask: Ask | None = None, draft: str = ""
) -> AsyncGenerator[tuple[LiveTerminal, asyncio.Task[AskReply]]]:
    """A busy terminal with a question on screen."""
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(draft)
        await terminal.draft_is(draft)
        task = asyncio.create_task(resolve(terminal, ask or question()))
        await until(lambda: terminal.front.ask_handler.open)
        yield terminal, task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def arm(terminal: LiveTerminal) -> None:
    terminal.clock.now += 0.6
    await terminal.shows(READY)


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("y", AskAnswer.ONCE),
        ("t", AskAnswer.TURN),
        ("s", AskAnswer.SESSION),
        ("a", AskAnswer.ALWAYS),
        ("n", AskAnswer.NO),
        (ESC, AskAnswer.NO),
    ],
)
async def test_each_key_gives_its_answer_once_the_question_is_armed(
    key: str, answer: AskAnswer
) -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send(key)
        assert await within_deadline(task) == AskReply(answer)
        assert terminal.front.draft == ""
        assert terminal.session.acts == []


async def test_a_question_whose_panel_is_painted_before_its_handler_runs_arms_all_the_same() -> (
    None
):
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.front.emit(AskRequested(question()))
        await terminal.shows("ASK ls")
        task = asyncio.create_task(terminal.front.ask_handler.resolve(question()))
        await until(lambda: terminal.front.ask_handler.open)
        await arm(terminal)
        terminal.send("y")
        assert await within_deadline(task) == AskReply(AskAnswer.ONCE)


async def test_a_key_within_half_a_second_of_the_paint_goes_to_the_draft() -> None:
    async with asking() as (terminal, task):
        terminal.clock.now += 0.4
        terminal.send("y")
        await terminal.draft_is("y")
        assert not task.done()


async def test_typing_keeps_the_question_unarmed_and_the_draft_complete() -> None:
    async with asking() as (terminal, task):
        for letter in "yes yes yn":
            terminal.clock.now += 0.08
            before = terminal.front.draft
            terminal.send(letter)
            await terminal.draft_is(before + letter)
        assert not task.done()


async def test_a_draft_is_never_answered_through_without_tab() -> None:
    async with asking(draft="half a ") as (terminal, task):
        terminal.clock.now += 60
        terminal.send("y")
        await terminal.draft_is("half a y")
        assert not task.done()


async def test_tab_gives_the_keyboard_to_the_question_and_the_draft_stays() -> None:
    async with asking(draft="half a ") as (terminal, task):
        terminal.clock.now += 0.6
        terminal.send("\t")
        await terminal.shows(READY)
        terminal.send("xq\x7fy")
        assert await within_deadline(task) == AskReply(AskAnswer.ONCE)
        assert terminal.front.draft == "half a "


async def test_tab_right_after_the_paint_was_meant_for_something_else() -> None:
    async with asking(draft="half") as (terminal, task):
        terminal.send("\ty")
        await terminal.draft_is("halfy")
        assert not task.done()


async def test_a_second_tab_gives_the_keyboard_back() -> None:
    async with asking(draft="half") as (terminal, task):
        terminal.clock.now += 0.6
        terminal.send("\t")
        await terminal.shows(READY)
        terminal.send("\t")
        terminal.send("y")
        await terminal.draft_is("halfy")
        assert not task.done()


@pytest.mark.parametrize("key", ["\r", " "])
async def test_enter_and_space_never_approve(key: str) -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        await terminal.press(key)
        terminal.clock.now += 0.6
        terminal.send("n")
        assert await within_deadline(task) == AskReply(AskAnswer.NO)


async def test_a_double_answer_key_answers_one_question_and_types_nothing() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("yy")
        assert await within_deadline(task) == AskReply(AskAnswer.ONCE)
        second = asyncio.create_task(resolve(terminal, question("second")))
        await until(lambda: terminal.front.ask_handler.open)
        await terminal.press("y")
        terminal.send("x")
        await terminal.draft_is("x")
        assert not second.done()
        second.cancel()


async def test_text_that_arrives_in_one_piece_is_no_answer() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("yes please")
        await terminal.draft_is("yes please")
        assert not task.done()


async def test_a_paste_is_no_answer() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("\x1b[200~y\x1b[201~")
        await terminal.draft_is("y")
        assert not task.done()


@pytest.mark.parametrize(
    ("key", "rule", "may_store"),
    [("t", "", True), ("s", "", True), ("a", "", True), ("a", "Bash(ls:*)", False)],
)
async def test_an_answer_is_refused_where_it_is_not_offered(
    key: str, rule: str, may_store: bool
) -> None:
    async with asking(question(rule=rule, may_store=may_store)) as (terminal, task):
        await arm(terminal)
        await terminal.press(key)
        terminal.clock.now += 0.6
        terminal.send("n")
        assert await within_deadline(task) == AskReply(AskAnswer.NO)
        assert terminal.front.draft == ""


@pytest.mark.parametrize("key", ["t", "s", "a"])
async def test_an_answer_that_lasts_is_taken_only_while_its_whole_rule_is_on_screen(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = FakePresenter.live

    def too_small(self: FakePresenter, *args: Any, **more: Any) -> LiveRegion:
        return replace(live(self, *args, **more), rule_shown=False)

    monkeypatch.setattr(FakePresenter, "live", too_small)
    async with asking() as (terminal, task):
        await arm(terminal)
        await terminal.press(key)
        assert not task.done()
        monkeypatch.undo()
        terminal.clock.now += 0.6
        terminal.send("y")
        assert await within_deadline(task) == AskReply(AskAnswer.ONCE)


async def test_a_no_with_a_reason_is_typed_beside_the_draft() -> None:
    async with asking(draft="my draft") as (terminal, task):
        terminal.clock.now += 0.6
        terminal.send("\t")
        await terminal.shows(READY)
        terminal.send("r")
        await terminal.shows("reason:")
        terminal.send("use git rm\r")
        assert await within_deadline(task) == AskReply(AskAnswer.NO_WITH_REASON, "use git rm")
        terminal.send("!")
        await terminal.draft_is("my draft!")


async def test_a_reason_without_words_is_a_plain_no() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("r")
        await terminal.shows("reason:")
        terminal.send("\r")
        assert await within_deadline(task) == AskReply(AskAnswer.NO)


async def test_esc_leaves_the_reason_line_and_keeps_the_question() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("r")
        await terminal.shows("reason:")
        terminal.send(ESC)
        await until(lambda: not terminal.front.ask_handler.reasoning)
        assert not task.done()
        terminal.clock.now += 0.6
        terminal.send("y")
        assert await within_deadline(task) == AskReply(AskAnswer.ONCE)


async def test_cancelling_withdraws_the_question_and_gives_the_keyboard_back() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("r")
        await terminal.shows("reason:")
        task.cancel()
        await until(lambda: "ASK" not in terminal.screen_text())
        terminal.send("typed")
        await terminal.draft_is("typed")


async def test_ctrl_c_interrupts_the_turn_of_the_question() -> None:
    async with asking() as (terminal, task):
        terminal.send("\x03")
        await until(lambda: terminal.session.acts == ["interrupt"])
        assert not task.done()


async def test_esc_right_after_the_paint_neither_answers_nor_interrupts() -> None:
    async with asking() as (terminal, task):
        terminal.send(ESC)
        terminal.send("\x03")
        await until(lambda: terminal.session.acts)
        assert terminal.session.acts == ["interrupt"]
        assert not task.done()


async def test_the_answer_is_shown_where_the_question_was() -> None:
    async with asking() as (terminal, task):
        await arm(terminal)
        terminal.send("n")
        await within_deadline(task)
        await terminal.shows("ANSWER ls no")
        await until(lambda: "ASK" not in terminal.screen_text())


@pytest.mark.parametrize(
    ("draft", "stash"),
    [("", "put aside"), ("line\nmore\nlast", ""), ("/", ""), ("/", "put aside")],
    ids=["stash", "rows", "menu", "menu-stash"],
)
async def test_the_lowest_window_shows_a_question_whatever_else_is_open(
    draft: str, stash: str
) -> None:
    setup = TerminalSetup(rows=6, stash=stash)
    async with live_terminal(FakeSession(busy=True), setup) as terminal:
        terminal.send(draft)
        await terminal.draft_is(draft)
        task = asyncio.create_task(resolve(terminal, question("push")))
        await until(lambda: terminal.front.ask_handler.open)
        await until(lambda: "ASK push" in "\n".join(terminal.screen().screen_text()))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        shown = stash or draft[-1:]
        await until(lambda: shown in "\n".join(terminal.screen().screen_text()))
