"""The queue editor in the live terminal: keys, questions, vi, and rows that others change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from midturn_cli.terminal.controls import QUIT_HINT, QUIT_SECONDS
from midturn_cli.terminal.row_editing import row_hint
from midturn_cli.ui_events import QueueChanged
from midturn_core.config import KeysConfig
from midturn_core.controller import LineKind
from midturn_core.events import AskRequested
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import InterruptCoordinator
from midturn_core.permission.ask import Ask
from midturn_core.queue.attachments import AttachmentRef, attachment_tags, attachments_of
from midturn_core.queue.barriers import may_go
from midturn_core.queue.edits import QueueEdits
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.memory import InMemoryMessageQueueRepository
from midturn_core.queue.types import QueuedInput
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import TerminalSetup, live_terminal, until, within_deadline

MAIN = AgentRuntimeId("s1", "main")
START = datetime(2026, 1, 1, tzinfo=UTC)
UP, DOWN, ALT_UP, ALT_DOWN = "\x1b[A", "\x1b[B", "\x1b[1;3A", "\x1b[1;3B"
CTRL_D, CTRL_U, CTRL_P, ENTER, TAB = "\x04", "\x15", "\x10", "\r", "\t"


@dataclass
class Lines:
    """A ``LineRunner`` with two commands: /help at once, /compact as a turn of its own."""

    ran: list[str] = field(default_factory=list[str])

    def problem(self, text: str) -> str:
        return "There is no command /nope" if text.startswith("/nope") else ""

    def classify(self, text: str) -> LineKind:
        if text.startswith("!"):
            return LineKind.SHELL
        kinds = {"/help": LineKind.IMMEDIATE, "/compact": LineKind.COMMAND}
        return kinds.get(text, LineKind.PROMPT)

    def run_immediate(self, text: str, attachments: Sequence[AttachmentRef] = ()) -> None:
        self.ran.append(text)

    async def run_own_turn(self, item: QueuedInput, interrupt: InterruptCoordinator) -> None:
        raise NotImplementedError


class Bench:
    """A busy session in which these lines wait, oldest first."""

    def __init__(self, *texts: str) -> None:
        self.queue = MessageQueueManager(InMemoryMessageQueueRepository())
        self.lines = Lines()
        self.woken = 0
        self.could_go: list[list[str]] = []
        """What an idle session would have started with, each time it was woken."""
        self.edits = QueueEdits(self.queue, MAIN, self.lines, self._wake)
        self.session = FakeSession(busy=True, rows=self.edits)
        for number, text in enumerate(texts):
            at = START + timedelta(seconds=number)
            self.queue.enqueue(QueuedInput(text, MAIN, enqueued_at=at))

    def _wake(self) -> None:
        self.woken += 1
        self.could_go.append([item.input_text for item in may_go(self.edits.waiting())])

    @property
    def texts(self) -> list[str]:
        return [item.input_text for item in self.edits.waiting()]

    @property
    def tiers(self) -> list[str]:
        return [item.priority.name for item in self.edits.waiting()]

    @property
    def edited(self) -> list[str]:
        return [item.input_text for item in self.edits.waiting() if item.being_edited]

    def item(self, text: str) -> QueuedInput:
        return next(item for item in self.edits.waiting() if item.input_text == text)


async def test_up_selects_rows_newest_first_and_holds_the_selected_one_alone() -> None:
    bench = Bench("one", "two")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP)
        await terminal.draft_is("two")
        assert bench.edited == ["two"]
        terminal.send(UP)
        await terminal.draft_is("one")
        assert bench.edited == ["one"]
        terminal.send(DOWN)
        await terminal.draft_is("two")
        terminal.send(DOWN)
        await terminal.draft_is("")
        assert bench.edited == []
        assert not any(item.held for item in bench.edits.waiting())


async def test_enter_saves_in_place_with_the_same_identity() -> None:
    bench = Bench("one", "two")
    before = bench.item("one").uuid
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP + UP)
        await terminal.draft_is("one")
        terminal.send(f"{CTRL_U}ONE")
        await terminal.draft_is("ONE")
        await terminal.press(ENTER)
        await terminal.draft_is("")
    assert bench.texts == ["ONE", "two"]
    assert bench.item("ONE").uuid == before
    assert bench.session.texts == []
    assert bench.woken


async def test_the_row_that_is_gone_to_does_not_go_along_with_the_one_that_is_left() -> None:
    bench = Bench("one", "two", "three")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP + UP + UP)
        await terminal.draft_is("one")
        terminal.send(DOWN)
        await terminal.draft_is("two")
        assert bench.could_go == [["one"], [], ["one"]]
        await terminal.press(CTRL_D)
        await terminal.draft_is("one")
        assert bench.could_go[3:] == [[]]


async def test_a_changed_row_is_saved_by_going_to_another() -> None:
    bench = Bench("one", "two")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP)
        await terminal.draft_is("two")
        terminal.send("!")
        await terminal.draft_is("two!")
        terminal.send(UP)
        await terminal.draft_is("one")
    assert bench.texts == ["one", "two!"]


async def test_ctrl_d_removes_and_the_text_is_in_the_history() -> None:
    bench = Bench("only")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP)
        await terminal.draft_is("only")
        await terminal.press(CTRL_D)
        await terminal.draft_is("")
        assert bench.texts == []
        await until(lambda: "Removed, never sent: only" in terminal.notices())
        # A second one right behind it, when idle, does not leave the program.
        bench.session.busy = False
        await terminal.press(CTRL_D)
        await terminal.press(UP)
        await terminal.draft_is("only")


async def test_tab_changes_the_tier_and_alt_keys_the_order_of_the_row() -> None:
    bench = Bench("one", "two", "three")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP)
        await terminal.draft_is("three")
        await terminal.press(ALT_UP)
        await until(lambda: bench.texts == ["one", "three", "two"])
        await terminal.press(ALT_DOWN)
        await until(lambda: bench.texts == ["one", "two", "three"])
        await terminal.press(TAB)
        await until(lambda: bench.texts == ["three", "one", "two"])
        assert bench.tiers == ["NOW", "NEXT", "NEXT"]
        await terminal.draft_is("three")
        await terminal.shows("NOW edit")


async def test_alt_arrows_outside_the_editor_are_no_esc() -> None:
    bench = Bench()
    async with live_terminal(bench.session) as terminal:
        await terminal.press(ALT_UP)
        await terminal.press("x")
        await terminal.draft_is("x")
        assert "interrupt" not in bench.session.acts


async def test_esc_leaves_without_interrupting_and_says_that_a_change_is_discarded() -> None:
    bench = Bench("one")
    async with live_terminal(bench.session) as terminal:
        terminal.send(f"{UP}x")
        await terminal.draft_is("onex")
        terminal.send("\x1b")
        await terminal.draft_is("")
        await terminal.shows("The change was discarded")
    assert bench.texts == ["one"]
    assert bench.session.acts == []


async def test_up_in_the_second_line_of_a_row_is_only_the_cursors() -> None:
    bench = Bench("older", "first\nsecond")
    async with live_terminal(bench.session) as terminal:
        await terminal.press(UP)
        await terminal.press(UP)
        await terminal.press("x")
        await until(lambda: "x" in terminal.front.draft)
        assert "second" in terminal.front.draft
        assert bench.edited == ["first\nsecond"]


@pytest.mark.parametrize(
    ("text", "kind", "texts"),
    [
        ("/compact", "command", ["/compact"]),
        ("!ls", "shell", ["!ls"]),
        ("more", "prompt", ["more"]),
    ],
)
async def test_what_a_saved_line_is_is_decided_as_when_it_is_typed(
    text: str, kind: str, texts: list[str]
) -> None:
    bench = Bench("one")
    async with live_terminal(bench.session) as terminal:
        terminal.send(f"{UP}{CTRL_U}{text}")
        await terminal.draft_is(text)
        await terminal.press(ENTER)
        await terminal.draft_is("")
    assert bench.texts == texts
    assert bench.item(text).metadata["kind"] == kind


async def test_a_command_that_takes_effect_at_once_does_so_and_waits_no_more() -> None:
    bench = Bench("one")
    assert bench.edits.save(bench.item("one").uuid, "/help") == ""
    assert bench.lines.ran == ["/help"]
    assert bench.texts == []


async def test_what_was_pasted_as_content_stays_content() -> None:
    bench = Bench("/compact")
    uuid = bench.item("/compact").uuid
    bench.queue.edit(uuid, "/compact", {"kind": "prompt"})
    assert bench.edits.save(uuid, "!ls") == ""
    assert bench.item("!ls").is_prompt


@pytest.mark.parametrize("text", ["/nope", " "])
async def test_what_cannot_wait_is_refused_and_stays_in_the_input_line(text: str) -> None:
    bench = Bench("one")
    async with live_terminal(bench.session) as terminal:
        terminal.send(f"{UP}{CTRL_U}{text}")
        await terminal.draft_is(text)
        await terminal.press(ENTER)
        await until(lambda: "Warning" in terminal.notices() or "WARNING" in terminal.notices())
        assert terminal.front.draft == text
        assert bench.texts == ["one"]
        assert bench.edited == ["one"]


async def test_a_row_that_is_removed_elsewhere_leaves_its_text_as_a_draft() -> None:
    bench = Bench("one")
    async with live_terminal(bench.session) as terminal:
        terminal.send(f"{UP} and more")
        await terminal.draft_is("one and more")
        bench.queue.clear(MAIN)
        terminal.front.emit(QueueChanged(()))
        await until(lambda: "waits no more" in terminal.notices())
        assert terminal.front.draft == "one and more"
        await terminal.press(ENTER)
        await terminal.submitted("one and more")


async def test_a_question_takes_no_key_until_tab_and_then_the_row_gets_none() -> None:
    bench = Bench("one", "two")
    async with live_terminal(bench.session) as terminal:
        terminal.send(UP + CTRL_U)
        await terminal.draft_is("")
        ask = Ask("q", MAIN, "use-1", "Bash", "Bash: x", "x", "")
        terminal.front.emit(AskRequested(ask))
        asking = asyncio.create_task(terminal.front.ask_handler.resolve(ask))
        await until(lambda: terminal.front.ask_handler.open)
        terminal.clock.now += 10
        await terminal.press("y")
        await terminal.draft_is("y")
        assert not asking.done()
        terminal.clock.now += 10
        await terminal.press(TAB)
        await until(lambda: terminal.front.ask_handler.focused)
        await terminal.press(UP)
        assert bench.edited == ["two"]
        assert terminal.front.draft == "y"
        await terminal.press("y")
        await asking
        assert bench.tiers == ["NEXT", "NEXT"]


async def test_with_vi_keys_esc_leaves_insert_mode_first_and_k_goes_to_the_older_row() -> None:
    bench = Bench("one", "two")
    async with live_terminal(bench.session, TerminalSetup(keys="vi")) as terminal:
        terminal.send(UP)
        await terminal.draft_is("two")
        terminal.send("\x1b")
        await terminal.shows("[N]")
        terminal.send("k")
        await terminal.draft_is("one")
        terminal.send("j")
        await terminal.draft_is("two")
        terminal.send("\x1b")
        await terminal.draft_is("")
    assert bench.session.acts == []


async def test_ctrl_p_reaches_the_history_although_something_waits() -> None:
    bench = Bench("one")
    async with live_terminal(bench.session) as terminal:
        terminal.send(f"earlier{ENTER}")
        await terminal.submitted("earlier")
        await terminal.press(CTRL_P)
        await terminal.draft_is("earlier")
        assert bench.edited == []


@pytest.mark.parametrize("columns", [80, 60, 30])
def test_the_hint_fits_the_screen(columns: int) -> None:
    hint = row_hint(KeysConfig(), columns)
    assert len(hint) < columns
    assert hint.startswith("Enter saves · Esc leaves")


async def test_pictures_stay_with_a_changed_line_which_then_cannot_become_a_command() -> None:
    bench = Bench("look [Picture #1 a.png 1×1 70 B]")
    (item,) = bench.edits.waiting()
    tags = attachment_tags([AttachmentRef("id-1", "a.png")])
    bench.queue.edit(item.uuid, item.input_text, tags)
    assert "Pictures go with text" in bench.edits.save(item.uuid, "/compact")
    assert bench.edits.save(item.uuid, "another text") == ""
    assert attachments_of(bench.item("another text")) == (AttachmentRef("id-1", "a.png"),)


async def test_a_hint_stands_for_its_own_time_whatever_stood_there_before() -> None:
    bench = Bench("one")
    bench.session.busy = False
    async with live_terminal(bench.session) as terminal:
        terminal.send("\x03")
        await terminal.shows(QUIT_HINT)
        first_is_over = asyncio.Event()
        asyncio.get_running_loop().call_later(QUIT_SECONDS, first_is_over.set)
        terminal.send(f"{UP}x")
        await terminal.draft_is("onex")
        terminal.send("\x1b")
        await terminal.shows("The change was discarded")
        await within_deadline(first_is_over.wait())
        await terminal.press("y")
        await terminal.shows("› y")
        assert "The change was discarded" in terminal.screen_text()
