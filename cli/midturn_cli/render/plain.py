"""``PlainPresenter``: the same events as plain text, for pipes, ``--plain`` and dumb terminals.

No escape byte is ever written. Answers stream through as they come; whatever else happens waits
for the end of an answer line, so that no line is torn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import assert_never

from midturn_cli.render.blocks import (
    AnswerEnd,
    AnswerText,
    Block,
    CallBlock,
    EchoBlock,
    ExpandedBlock,
    GreetingBlock,
    NoticeBlock,
    OutputBlock,
    PanelFooter,
    PanelTitle,
    PromptBlock,
    RemarkBlock,
    ShellBlock,
    TableBlock,
    ThoughtBlock,
    TurnEndBlock,
)
from midturn_cli.render.clean import one_line
from midturn_cli.render.event_blocks import turn_end_block
from midturn_cli.render.shown_queue import is_main
from midturn_cli.render.subagent_lines import SubagentLines
from midturn_cli.render.words import (
    Waiting,
    panel_footer,
    panel_remarks,
    panel_title,
    queue_notes,
    sign,
    told_already,
    took,
    turn_end,
    waits_until,
)
from midturn_cli.ui_events import QueueChanged, UiEvent
from midturn_cli.ui_state import UiState
from midturn_core.events import AskRequested, NoticeLevel, TurnEnded
from midturn_core.model.messages import (
    DiffDetail,
    Outcome,
    OutputDetail,
    TodoDetail,
    ToolDetail,
    TranscriptDetail,
)
from midturn_core.permission.ask import Ask

_LEVEL_WORDS = {
    NoticeLevel.INFO: "note",
    NoticeLevel.WARNING: "warning",
    NoticeLevel.ERROR: "error",
}
_TODO_SIGNS = {"completed": "[x]", "in_progress": "[>]"}


class PlainPresenter:
    """One per session. ``clock`` is monotonic seconds.

    ``tells_end`` says at the end of each turn that it is over: a person who reads line by line sees
    no input line come back.
    """

    def __init__(
        self, *, tells_end: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tells_end = tells_end
        self._clock = clock
        self._state = UiState(expand_tabs=False)
        self._mid_line = False
        self._held: list[str] = []
        self._queued: set[str] = set()
        self._subagents = SubagentLines()

    @property
    def state(self) -> UiState:
        """For reading: questions, calls, whether a turn runs."""
        return self._state

    def apply(self, event: UiEvent) -> str:
        """The text to write now; may be empty."""
        blocks = self._state.apply(event, self._clock())
        if self._tells_end and isinstance(event, TurnEnded) and is_main(event.context_id):
            ended = turn_end_block(event)
            blocks = [*blocks, *([] if ended in blocks else [ended])]
        parts = [self._block(block) for block in blocks]
        if isinstance(event, QueueChanged):
            parts.append(self._lines(self._newly_queued()))
        elif line := self._subagents.line(event, self._clock()):
            parts.append(self._lines([line]))
        elif isinstance(event, AskRequested):
            # A question must be readable before it is answered: it may tear a line.
            parts.append(self._broken_line() + _text(_ask_lines(self._state.asks[-1])))
        return "".join(parts)

    def _block(self, block: Block) -> str:
        if isinstance(block, AnswerText):
            return self._answer(block.text)
        if isinstance(block, AnswerEnd):
            return self._broken_line()
        return self._lines(_block_lines(block))

    def _answer(self, text: str) -> str:
        if not text:
            return ""
        whole, line_end, rest = text.rpartition("\n")
        self._mid_line = bool(rest)
        if not line_end:
            return text
        held, self._held = self._held, []
        return f"{whole}\n{_text(held)}{rest}"

    def _broken_line(self) -> str:
        line_end = "\n" if self._mid_line else ""
        self._mid_line = False
        held, self._held = self._held, []
        return line_end + _text(held)

    def _lines(self, lines: list[str]) -> str:
        if self._mid_line:
            self._held += lines
            return ""
        return _text(lines)

    def _newly_queued(self) -> list[str]:
        """A line is said to be queued when the store has it, or when that cannot be waited for."""
        lines: list[str] = []
        state, queue = self._state, self._state.queue
        on_the_way = frozenset[str]() if queue.store_fails else queue.unstored
        for item in queue.items:
            new = item.uuid not in self._queued and item.uuid not in on_the_way
            if new and (state.busy or item.held):
                barred = item.uuid in queue.barred
                waiting = Waiting(state.busy, barred, queue.settings, way_out="")
                when = waits_until(item, state.calls, waiting)
                notes = queue_notes(item, queue.unstored, queue.store_fails)
                text = " · ".join((one_line(item.input_text), *notes))
                lines.append(f"queued {item.priority.name} ({when}): {text}")
        self._queued = {item.uuid for item in queue.items} - on_the_way
        return lines


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _block_lines(block: Block) -> list[str]:
    match block:
        case EchoBlock() | ThoughtBlock() | AnswerText() | AnswerEnd():
            return []
        case CallBlock():
            return _call_lines(block)
        case ExpandedBlock():
            return _expanded_lines(block)
        case TableBlock():
            return _table_lines(block)
        case ShellBlock():
            return _shell_lines(block)
        case GreetingBlock():
            return _greeting_lines(block)
        case PanelTitle():
            return [panel_title(block)]
        case PanelFooter():
            return [*panel_footer(block), *panel_remarks(block)]
        case _:
            return _sentence_lines(block)


def _sentence_lines(
    block: PromptBlock | NoticeBlock | RemarkBlock | OutputBlock | TurnEndBlock,
) -> list[str]:
    match block:
        case PromptBlock():
            # What was typed or piped is there already; what waited appears where it went in.
            return [f"> {block.text} ({block.where})"] if block.where else []
        case NoticeBlock():
            return [f"{_LEVEL_WORDS[block.level]}: {block.text}"]
        case RemarkBlock():
            return [block.text]
        case OutputBlock():
            return block.text.split("\n")
        case TurnEndBlock():
            return [turn_end(block)]
        case _:
            assert_never(block)


def _call_lines(block: CallBlock) -> list[str]:
    call, result = block.call, block.result
    name = f"{call.name}: {call.title}" if call.title else call.name
    place = f"[{call.index + 1}/{call.count}] {name}" if block.in_panel else f"[{name}]"
    told = result.outcome is Outcome.SUCCEEDED or told_already(
        result.outcome, result.error, result.receipt
    )
    outcome = "" if told else f" {result.outcome.value}"
    remarks = "".join(
        f" · {remark}"
        for remark in (result.summary, "retried" if result.retried else "", result.receipt)
        if remark
    )
    head = f"{place} {sign(result.outcome)}{outcome}{took(result.duration_ms)}{remarks}"
    error = [f"    {result.error}"] if result.error else []
    return [head, *error, *(f"    {line}" for line in _detail_lines(result.detail))]


def _expanded_lines(block: ExpandedBlock) -> list[str]:
    call = block.call
    name = f"{call.name}: {call.title}" if call.title else call.name
    which = f" · number {block.number}, counted from the newest" if block.number > 1 else ""
    text = block.text.split("\n") if block.text else []
    lines = [*text, *_detail_lines(block.diff)] or ["(empty)"]
    head = f"[{name}] {sign(block.outcome)}{took(block.duration_ms)}{which}"
    return [head, *(f"    {line}" for line in lines)]


def _detail_lines(detail: ToolDetail | None) -> list[str]:
    match detail:
        case None:
            return []
        case DiffDetail():
            return detail.unified.rstrip("\n").split("\n")
        case OutputDetail():
            above = detail.lines_total - len(detail.tail)
            return [*([f"… {above} lines above"] if above > 0 else []), *detail.tail]
        case TodoDetail():
            return [f"{_TODO_SIGNS.get(item.status, '[ ]')} {item.text}" for item in detail.items]
        case TranscriptDetail():
            return []  # as on the screen
        case _:
            assert_never(detail)


def _ask_lines(ask: Ask) -> list[str]:
    place = f" ({ask.index + 1} of {ask.count})" if ask.count > 1 else ""
    lasting = "t, s, a" if ask.may_store else "t, s"
    return [
        f"? {ask.title}{place}",
        *(f"| {line}" for line in ask.body.strip("\n").split("\n") if ask.body.strip()),
        *(f"| {line}" for line in _detail_lines(ask.detail)),
        *([f"why: {ask.reason}"] if ask.reason else []),
        *([f"{lasting} allow {ask.session_rule}"] if ask.session_rule else []),
        ask_keys(ask),
    ]


def ask_keys(ask: Ask) -> str:
    """The answers that a question takes, by their keys (D40)."""
    lasting = ", t this turn, s this session" if ask.session_rule else ""
    stored = ", a always" if ask.session_rule and ask.may_store else ""
    return f"y once{lasting}{stored}, n no, r no with a reason"


def _table_lines(block: TableBlock) -> list[str]:
    rows = [row for row in (block.header, *block.rows) if any(row)]
    columns = max((len(row) for row in rows), default=0)
    widths = [max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]
    lines = [
        "  ".join(cell.ljust(widths[index]) for index, cell in enumerate(row)).rstrip()
        for row in rows
    ]
    title = [block.title] if block.title else []
    return [*title, *lines, *([block.footer] if block.footer else [])]


def _shell_lines(block: ShellBlock) -> list[str]:
    lines = block.output.split("\n") if block.output else []
    if block.exit_code is None:
        return [*lines, "interrupted"]
    return [*lines, f"exit code {block.exit_code}"] if block.exit_code else lines


def _greeting_lines(block: GreetingBlock) -> list[str]:
    status = block.status
    demo = "DEMO · " if status.demo else ""
    return [
        f"Midturn {block.version} · {demo}{one_line(status.model)} · {block.folder}",
        *block.hints,
    ]
