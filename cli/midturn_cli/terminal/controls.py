"""What the keys mean: the draft, the question, the session and the terminal, each in its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.buffer import Buffer

from midturn_cli.terminal.ask_panel import TerminalAskHandler
from midturn_cli.terminal.clipboard_key import ClipboardKey
from midturn_cli.terminal.draft import Draft
from midturn_cli.terminal.enter_bursts import (
    EnterBurst,
    EnteredLines,
    PastedLines,
    is_burst,
    judge,
)
from midturn_cli.terminal.queue_editor import RowKey
from midturn_cli.terminal.row_editing import RowEditing
from midturn_cli.terminal.timers import CallLater

if TYPE_CHECKING:
    from midturn_cli.ports import SessionPort

QUIT_SECONDS = 1.0
QUIT_HINT = "Press Ctrl-C again to quit."
EXPAND_LINE = "/expand"
NEXT_MODE_LINE = "/mode next"


class TerminalPort(Protocol):
    """What keys can do to the terminal itself."""

    @property
    def held(self) -> bool:
        """It is lent to another program."""
        ...

    def exit(self, code: int) -> None: ...

    def suspend(self) -> None: ...

    def repaint_screen(self) -> None: ...

    def start_editor(self) -> None: ...

    def leave_search(self) -> bool:
        """Close the history search; False when there is none."""
        ...

    def focus_reason(self, reasoning: bool) -> None:
        """Give the keyboard to the reason line, or back to the draft."""
        ...

    def show_hint(self, text: str, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class ControlParts:
    """What the controls act on."""

    draft: Draft
    rows: RowEditing
    ask: TerminalAskHandler
    reason: Buffer
    session: SessionPort
    terminal: TerminalPort
    clipboard: ClipboardKey
    warn: Callable[[str], None]
    clock: Callable[[], float]
    call_later: CallLater
    focus_reported: Callable[[str], None]
    """Given what the terminal sends when its window gains or loses the focus."""


class Controls:
    """One method for each thing a key can want."""

    def __init__(self, parts: ControlParts) -> None:
        self.draft = parts.draft
        self.rows = parts.rows
        self.ask = parts.ask
        self._reason = parts.reason
        self._session = parts.session
        self._terminal = parts.terminal
        self._clipboard = parts.clipboard
        self._warn = parts.warn
        self._clock = parts.clock
        self.focus_reported = parts.focus_reported
        self._burst = EnterBurst(parts.call_later, self._burst_settled)
        self._pastes_are_marked = False
        self._quit_hinted_at = float("-inf")
        self._turn_interrupted_at = float("-inf")

    def key_handled(self) -> None:
        """Any key was handled; called after it."""
        self.ask.key_pressed()
        self._burst.touch()
        self.draft.fold_typed_picture()

    def enter(self, waiting: Sequence[str]) -> None:
        """Enter; ``waiting`` are the keys of the same read that come after it."""
        if self._accept_completion():
            return
        if not self._burst.active:
            enters = 1 + waiting.count("c-m")
            has_text = not self.draft.empty or any(len(key) == 1 for key in waiting)
            if self._pastes_are_marked or not is_burst(enters, has_text):
                self._enter_draft()
                return
            self._burst.begin()
        self._burst.end_line(self.draft.buffer.text)
        self.draft.buffer.reset()

    def newline(self) -> None:
        self.draft.buffer.insert_text("\n")

    def paste(self, data: str) -> None:
        """A paste with its marks; the lines before it are judged by themselves."""
        self._burst.settle()
        self._pastes_are_marked = True
        self.draft.paste(data)

    def tab(self) -> None:
        """D41: question, completion menu, queue editor, tier of the draft; when idle only completion."""
        buffer = self.draft.buffer
        if self.ask.open:
            if not self.ask.guarded:
                self.ask.toggle_focus()
        elif buffer.complete_state is not None:
            buffer.complete_next()
        elif self.rows.active:
            self.rows.press(RowKey.TIER)
        elif not self._session.busy:
            buffer.start_completion(insert_common_part=True)
        elif not self.draft.empty:
            self.draft.cycle_tier()

    def end_of_file(self) -> None:
        """Ctrl-D on an empty draft: leaves when idle (D44). A key that removes rows and is still down
        leaves nothing.
        """
        if not (self._session.busy or self.rows.removed_within(QUIT_SECONDS)):
            self._terminal.exit(0)

    def interrupt(self) -> None:
        """Ctrl-C and SIGINT: the turn, else the draft, else (twice) the program (D44).

        Whoever presses it several times to stop a turn means the turn with all of them.
        """
        self._burst.settle()
        if self._terminal.held or self._terminal.leave_search():
            return
        if self._session.busy:
            self._turn_interrupted_at = self._clock()
            self._session.interrupt()
        elif self._clock() - self._turn_interrupted_at <= QUIT_SECONDS:
            return
        elif self.rows.active:
            self.rows.press(RowKey.LEAVE)
        elif not self.draft.empty:
            self.draft.clear()
        elif self._clock() - self._quit_hinted_at <= QUIT_SECONDS:
            self._terminal.exit(0)
        else:
            self._quit_hinted_at = self._clock()
            self._terminal.show_hint(QUIT_HINT, QUIT_SECONDS)

    def escape(self) -> None:
        """Close the menu, else leave the queue editor, else cancel the call that a NOW waits for,
        else interrupt the turn.
        """
        buffer = self.draft.buffer
        if buffer.complete_state is not None:
            buffer.cancel_completion()
        elif self.ask.open and self.ask.guarded:
            # A question has just appeared under the key: what was meant is unknown.
            return
        elif self.rows.active:
            self.rows.press(RowKey.LEAVE)
        elif not self._session.cancel_awaited_call() and self._session.busy:
            self._session.interrupt()

    def stash(self) -> None:
        """Put the draft aside. The text of a row is no draft: it belongs into the queue."""
        if not self.rows.active:
            self.draft.swap_stash()

    @property
    def rows_take_up(self) -> bool:
        """Up is for the queue editor: on an empty line, or on the first line of a row."""
        document = self.draft.buffer.document
        first = self.rows.active and document.on_first_line
        return self._rows_have_keys and (first or self.rows.can_start)

    @property
    def rows_take_down(self) -> bool:
        """Down is for the queue editor: on the last line of a row."""
        return self.row_has_keys and self.draft.buffer.document.on_last_line

    @property
    def row_has_keys(self) -> bool:
        """A row is being edited, and neither a question nor a menu has the keyboard."""
        return self.rows.active and self._rows_have_keys

    def row_up(self) -> None:
        if self.rows.active:
            self.rows.press(RowKey.OLDER)
        else:
            self.rows.start()

    def suspend(self) -> None:
        self._burst.settle()
        self._terminal.suspend()

    def expand(self) -> None:
        """Show the newest tool result whole."""
        if refused := self._session.submit(EXPAND_LINE, None):
            self._warn(refused)

    def next_mode(self) -> None:
        """The next permission mode; in a completion menu the entry before."""
        buffer = self.draft.buffer
        if buffer.complete_state is not None:
            buffer.complete_previous()
        elif refused := self._session.submit(NEXT_MODE_LINE, None):
            self._warn(refused)

    def attach_picture(self) -> None:
        self._clipboard.press()

    def repaint(self) -> None:
        self._terminal.repaint_screen()

    def edit_externally(self) -> None:
        if self._session.busy:
            self._warn("The external editor opens when the turn is over.")
        else:
            self._terminal.start_editor()

    def question_takes(self, key: str, waiting: Sequence[str]) -> bool:
        """Whether ``key`` is for the question. Text that arrives in one piece is no answer."""
        alone = all(later == key for later in waiting)
        return alone and self.ask.takes(key)

    def answer(self, key: str) -> None:
        self.ask.press(key)
        if self.ask.reasoning:
            self._reason.reset()
            self._terminal.focus_reason(True)

    def give_reason(self) -> None:
        self.ask.give_reason(self._reason.text)

    def leave_reason(self) -> None:
        self.ask.leave_reason()
        self._terminal.focus_reason(False)

    def paste_reason(self, data: str) -> None:
        self._pastes_are_marked = True
        self._reason.insert_text(" ".join(data.split()))

    @property
    def _rows_have_keys(self) -> bool:
        menu = self.draft.buffer.complete_state is not None
        return not (menu or self.ask.focused or self.ask.reasoning)

    def _accept_completion(self) -> bool:
        """Enter on a chosen completion takes it; a command without arguments also runs."""
        buffer = self.draft.buffer
        state = buffer.complete_state
        if state is None or state.current_completion is None:
            return False
        chosen = state.current_completion.text
        buffer.complete_state = None
        commands = self._session.commands()
        return not any(chosen == f"/{one.name}" and not one.arguments for one in commands)

    def _enter_draft(self) -> None:
        if self.draft.continues():
            self.draft.break_line()
            return
        if self._clipboard.holds_enter():
            return
        if self.rows.active:
            self.rows.press(RowKey.SAVE)
            return
        submission = self.draft.submission()
        if not submission.text.strip():
            if self.draft.empty and self._session.has_held:
                self._session.release_held()
            self.draft.drop()
            return
        # Two Ctrl-C with a line between them are not one "twice".
        self._quit_hinted_at = float("-inf")
        refused = self._session.submit(
            submission.text,
            submission.priority,
            pasted=submission.pasted,
            attachments=submission.pictures,
        )
        if refused:
            self._warn(refused)
        else:
            self.draft.taken()

    def _burst_settled(self, ended: tuple[str, ...]) -> None:
        match judge(ended, self.draft.buffer.text):
            case EnteredLines(lines):
                self._enter_lines(lines)
            case PastedLines(lines):
                self.draft.take_pasted_lines(lines)

    def _enter_lines(self, lines: tuple[str, ...]) -> None:
        for place, line in enumerate(lines):
            self.draft.buffer.insert_text(line)
            continues = self.draft.continues()
            self._enter_draft()
            if not (self.draft.empty or continues):
                # Refused: the lines after it stay with it in the input line.
                self.draft.append_lines(lines[place + 1 :])
                return
