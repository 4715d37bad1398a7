"""The window's title, and telling a person whose window has no focus."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from midturn_cli.terminal import screen
from midturn_cli.terminal.modes import (
    FOCUS_GAINED,
    FOCUS_LOST,
    FOCUS_REPORTS_OFF,
    FOCUS_REPORTS_ON,
    TITLE_BACK,
    TITLE_KEPT,
)
from midturn_cli.terminal.notifier import NotifyOptions, NotifyWay
from midturn_cli.terminal.signals import SignalHandlers
from midturn_cli.ui_events import ShellLineFinished, ShellLineStarted
from midturn_core.events import AskRequested, AskWithdrawn, TurnEnded, TurnEndReason
from midturn_core.model.messages import Usage
from tests.support.fake_session import FakeSession
from tests.support.live_terminal import LiveTerminal, TerminalSetup, live_terminal, until
from tests.support.screen_events import MAIN, SUB, ask, turn_ended, turn_started

BELL = TerminalSetup(notify=NotifyOptions("bell"))
HOSTILE = "a\x1b]2;evil\x07b\x9bc\nd"


def written(terminal: LiveTerminal) -> str:
    return "".join(terminal.stdout.writes)


async def look_away(terminal: LiveTerminal) -> None:
    await terminal.press(FOCUS_LOST)


async def see(terminal: LiveTerminal, text: str) -> None:
    await until(lambda: text in written(terminal))


async def settled(terminal: LiveTerminal) -> None:
    """Until what would have been told has been: a later turn is told, and only it."""
    terminal.front.emit(turn_started())
    terminal.front.emit(failed("marker"))
    await see(terminal, "marker\x1b\\")


def failed(error: str) -> TurnEnded:
    return turn_ended(TurnEndReason.FAILED, error=error)


def osc9(workspace: Path = Path("/srv/folder")) -> TerminalSetup:
    return TerminalSetup(workspace=workspace, notify=NotifyOptions("osc9"))


async def test_without_notify_and_title_nothing_of_them_is_written() -> None:
    async with live_terminal() as terminal:
        terminal.send(FOCUS_LOST)
        terminal.front.emit(turn_started())
        terminal.front.emit(turn_ended())
        await terminal.shows("ENDED done")
    for sequence in (FOCUS_REPORTS_ON, FOCUS_REPORTS_OFF, TITLE_KEPT, TITLE_BACK, "\x1b]", "\x07"):
        assert sequence not in written(terminal)


async def test_focus_reports_type_nothing_and_interrupt_nothing() -> None:
    async with live_terminal(FakeSession(busy=True)) as terminal:
        terminal.send(f"a{FOCUS_LOST}b{FOCUS_GAINED}c")
        await terminal.draft_is("abc")
        assert terminal.session.acts == []


async def test_the_end_of_a_turn_is_told_when_the_window_has_no_focus() -> None:
    async with live_terminal(setup=osc9()) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_started())
        terminal.front.emit(turn_ended())
        await see(terminal, "\x1b]9;Midturn in folder: the turn is done\x1b\\")


async def test_a_failed_turn_is_told_with_its_cleaned_reason() -> None:
    async with live_terminal(setup=osc9(Path("/x/e\x1b]0;vil\x07"))) as terminal:
        await look_away(terminal)
        terminal.front.emit(failed(HOSTILE))
        await see(terminal, "\x1b]9;Midturn in e: the turn ended: ab ⏎ d\x1b\\")


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("osc9", "\x1bPtmux;\x1b\x1b]9;Midturn in a: asks Bash: ls\x1b\x1b\\\x1b\\"),
        ("osc777", "\x1bPtmux;\x1b\x1b]777;notify;Midturn in a;asks Bash: ls\x1b\x1b\\\x1b\\"),
    ],
)
async def test_tmux_is_told_to_pass_a_notification_on(way: NotifyWay, told: str) -> None:
    setup = TerminalSetup(workspace=Path("/x/a"), notify=NotifyOptions(way, in_tmux=True))
    async with live_terminal(setup=setup) as terminal:
        await look_away(terminal)
        terminal.front.emit(AskRequested(ask("ls")))
        await see(terminal, told)


async def test_a_question_that_waits_is_told_with_its_title() -> None:
    setup = TerminalSetup(workspace=Path("/x/a;b"), notify=NotifyOptions("osc777"))
    async with live_terminal(setup=setup) as terminal:
        await look_away(terminal)
        terminal.front.emit(AskRequested(ask("rm x; rm y")))
        await see(terminal, "\x1b]777;notify;Midturn in a,b;asks Bash: rm x, rm y\x1b\\")


async def test_a_question_that_was_answered_at_once_is_not_told() -> None:
    async with live_terminal(setup=osc9()) as terminal:
        await look_away(terminal)
        terminal.front.emit(AskRequested(ask("git push")))
        terminal.front.emit(AskWithdrawn(ask("git push"), "covered"))
        await settled(terminal)
        assert "asks" not in written(terminal)


async def test_nothing_is_told_while_the_window_has_the_focus() -> None:
    async with live_terminal(setup=osc9()) as terminal:
        terminal.front.emit(turn_ended())
        terminal.front.emit(AskRequested(ask("git push")))
        await look_away(terminal)
        await terminal.press(FOCUS_GAINED)
        await terminal.shows("ASK")
        terminal.front.emit(AskWithdrawn(ask("git push"), ""))
        await look_away(terminal)
        await settled(terminal)
        assert written(terminal).count("\x1b]9;") == 1


@pytest.mark.parametrize(
    "ended",
    [
        TurnEnded(MAIN, "turn", TurnEndReason.DONE, 1, Usage(), 4_900.0),
        TurnEnded(MAIN, "turn", TurnEndReason.INTERRUPTED, 1, Usage(), 60_000.0),
        TurnEnded(SUB, "turn", TurnEndReason.DONE, 1, Usage(), 60_000.0),
    ],
    ids=["short", "interrupted", "of a subagent"],
)
async def test_such_an_end_is_not_told(ended: TurnEnded) -> None:
    async with live_terminal(setup=osc9()) as terminal:
        await look_away(terminal)
        terminal.front.emit(ended)
        await settled(terminal)
        assert written(terminal).count("\x1b]9;") == 1


async def test_an_end_that_the_next_turn_follows_is_not_told() -> None:
    async with live_terminal(setup=osc9()) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_ended())
        await settled(terminal)
        assert written(terminal).count("\x1b]9;") == 1


async def test_the_bell_rings_once() -> None:
    async with live_terminal(setup=BELL) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_ended())
        await see(terminal, "\x07")
    assert written(terminal).count("\x07") == 1


async def test_a_program_is_told_with_the_text_as_its_last_argument(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = tmp_path / "notify"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {told}.part\nmv {told}.part {told}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    options = NotifyOptions("command", (str(program), "-t", "a b"))
    setup = TerminalSetup(workspace=Path("/x/$(touch evil)"), notify=options)
    async with live_terminal(setup=setup) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_ended())
        await until(told.exists)
    assert told.read_text() == "-t|a b|Midturn in $(touch evil): the turn is done|"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("/nonexistent/program",), "notify_command could not be started"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "notify_command ended with exit code 3"),
    ],
)
async def test_a_program_that_does_not_work_is_one_warning(
    command: tuple[str, ...], complaint: str
) -> None:
    setup = TerminalSetup(notify=NotifyOptions("command", command))
    async with live_terminal(setup=setup) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_ended())
        await terminal.shows(complaint)


async def test_a_program_that_hangs_holds_up_neither_keys_nor_the_end(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    hang = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    setup = TerminalSetup(notify=NotifyOptions("command", (sys.executable, "-c", hang)))
    async with live_terminal(setup=setup) as terminal:
        await look_away(terminal)
        terminal.front.emit(turn_ended())
        await until(lambda: started.exists() and started.read_text())
        terminal.send("still here\r")
        await terminal.submitted("still here")
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


async def test_the_title_follows_the_state_and_comes_back_at_the_end() -> None:
    setup = TerminalSetup(workspace=Path("/x/proj"), title=True)
    async with live_terminal(setup=setup) as terminal:
        await see(terminal, f"{TITLE_KEPT}\x1b]2;idle · proj · Midturn\x1b\\")
        terminal.front.emit(turn_started())
        await see(terminal, "\x1b]2;working · proj · Midturn\x1b\\")
        terminal.front.emit(AskRequested(ask("x")))
        await see(terminal, "\x1b]2;asks · proj · Midturn\x1b\\")
        terminal.front.emit(turn_ended())
        await until(lambda: written(terminal).count("\x1b]2;idle · ") == 2)
        terminal.front.emit(ShellLineStarted("1", "sleep"))
        await until(lambda: written(terminal).count("\x1b]2;working · ") == 2)
        terminal.front.emit(ShellLineFinished("1", "sleep", "", 0))
        await until(lambda: written(terminal).count("\x1b]2;idle · ") == 3)
    assert written(terminal).count(TITLE_KEPT) == written(terminal).count(TITLE_BACK) == 1
    assert written(terminal).rindex(TITLE_BACK) > written(terminal).rindex("\x1b]2;")


async def test_a_title_cannot_act_on_the_terminal() -> None:
    setup = TerminalSetup(workspace=Path(f"/x/{HOSTILE}"), title=True)
    async with live_terminal(setup=setup) as terminal:
        await see(terminal, "\x1b]2;idle · ab ⏎ d · Midturn\x1b\\")
    assert "evil" not in written(terminal)


async def test_whoever_gets_the_terminal_gets_it_without_reports_and_with_its_title(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[str] = []
    setup = TerminalSetup(title=True, notify=NotifyOptions("bell"))
    async with live_terminal(setup=setup) as terminal:
        await see(terminal, FOCUS_REPORTS_ON)

        def stop(_: SignalHandlers) -> None:
            stopped.append(written(terminal))

        monkeypatch.setattr(screen, "stop_process_group", stop)
        terminal.send("\x1a")
        await until(lambda: written(terminal).count(FOCUS_REPORTS_ON) == 2)
        (before,) = stopped
        assert before.rindex(FOCUS_REPORTS_OFF) > before.rindex(FOCUS_REPORTS_ON)
        assert before.count(TITLE_BACK) == before.count(TITLE_KEPT) == 1
    after = written(terminal)
    assert after.rindex(FOCUS_REPORTS_OFF) > after.rindex(FOCUS_REPORTS_ON)
    assert after.count(TITLE_BACK) == after.count(TITLE_KEPT) == 2
