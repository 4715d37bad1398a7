"""``UiState``: what the screen shows, as a reducer over events. Pure: no I/O, no clock of its own.

``apply`` returns the blocks that became final, in the order in which they belong into the
transcript. Foreign text is cleaned here, at the border; what blocks and live state hold is safe
to render. This module does not import Rich: it is needed before the first paint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from midturn_cli.render.blocks import (
    Block,
    LiveCall,
    PanelTitle,
    RemarkBlock,
    ShellBlock,
)
from midturn_cli.render.clean import (
    one_line,
    reveal_line,
)
from midturn_cli.render.early_calls import EarlyCall, EarlyCalls
from midturn_cli.render.event_blocks import (
    cleaned_ask,
    greeting_block,
    readable,
    said_block,
    turn_end_block,
)
from midturn_cli.render.open_batches import OpenBatches
from midturn_cli.render.open_message import Activity, OpenMessage
from midturn_cli.render.open_subagents import OpenSubagents
from midturn_cli.render.shown_prompts import ShownPrompts
from midturn_cli.render.shown_queue import ShownQueue, is_main, shown_queue
from midturn_cli.render.words import delivered, receipt
from midturn_cli.ui_events import (
    AnswerReplayed,
    ClipboardText,
    CommandOutput,
    CommandTable,
    Greeting,
    PromptReplayed,
    QueueChanged,
    ResultExpanded,
    ShellLineFinished,
    ShellLineStarted,
    StatusChanged,
    StatusInfo,
    ThemeChanged,
    UiEvent,
    UserEcho,
)
from midturn_core.dispatch.speedup import RoundTrips
from midturn_core.events import (
    AskAnswered,
    AskRequested,
    AskWithdrawn,
    BatchFinished,
    BatchStarted,
    CallPhase,
    CompactionFinished,
    CompactionStarted,
    InputsDelivered,
    MessageEnded,
    MessageSuperseded,
    Notice,
    RetryWaiting,
    StepStarted,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolPhaseChanged,
    ToolProgress,
    ToolResultReady,
    ToolUseAnnounced,
    ToolUseEndedEarly,
    ToolUseStarted,
    ToolUseStartedEarly,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
    UsageChanged,
)
from midturn_core.permission.ask import Ask

_TurnEvent: TypeAlias = TurnStarted | StepStarted | InputsDelivered | TurnEnded
_CallEvent: TypeAlias = (
    ToolUseStartedEarly
    | ToolUseEndedEarly
    | BatchStarted
    | ToolUseStarted
    | ToolPhaseChanged
    | ToolProgress
    | ToolResultReady
    | BatchFinished
)
_QuietEvent: TypeAlias = QueueChanged | StatusChanged | UsageChanged | ClipboardText | ThemeChanged
_AskEvent: TypeAlias = AskRequested | AskAnswered | AskWithdrawn
_SessionEvent: TypeAlias = ShellLineStarted | ShellLineFinished | Greeting | AnswerReplayed


@dataclass(frozen=True, slots=True)
class ShellLine:
    id: str
    command: str
    started: float


class UiState:
    """One per session. Attributes are for reading; ``apply`` alone changes them.

    ``expand_tabs`` False leaves the tabs of answers as they are, for output that is piped on.
    """

    def __init__(self, *, expand_tabs: bool = True) -> None:
        self.status: StatusInfo | None = None
        self.queue = ShownQueue()
        self.asks: tuple[Ask, ...] = ()
        """Open questions, cleaned, oldest first; the first is on screen."""
        self.shell_lines: tuple[ShellLine, ...] = ()
        self.busy = False
        """A turn of the main agent runs."""
        self._batches = OpenBatches()
        self._early = EarlyCalls()
        self._message = OpenMessage(expand_tabs=expand_tabs)
        self._round_trips = RoundTrips()
        self._subagents = OpenSubagents()
        self._prompts = ShownPrompts()

    @property
    def activity(self) -> Activity | None:
        """What the model's side is doing."""
        return self._message.activity

    @property
    def answer_open(self) -> bool:
        """Text of an answer has come, and more of it may."""
        return self._message.answer_open

    @property
    def text_at(self) -> float | None:
        """When the newest text of the open answer came; None when none is open."""
        return self._message.text_at

    @property
    def calls(self) -> tuple[LiveCall, ...]:
        """Calls whose block is not final, in start order; also finished ones that wait."""
        return self._batches.calls

    @property
    def coming_title(self) -> PanelTitle | None:
        """The title of the oldest panel of which no row is final yet."""
        return self._batches.coming_title

    def nested_calls(self, tool_use_id: str) -> tuple[LiveCall, ...]:
        """What runs at the same time inside a ``Task`` call."""
        return self._subagents.nested(tool_use_id)

    @property
    def early_calls(self) -> tuple[EarlyCall, ...]:
        """Calls of the message that is being written, which have started already."""
        return self._early.calls

    @property
    def asks_waiting(self) -> int:
        """Questions behind the one on screen."""
        shown = {ask.tool_use_id for ask in self.asks}
        asking = {call.id for call in self.calls if call.phase is CallPhase.ASKING}
        return max(len(self.asks) - 1, 0) + len((asking | self._subagents.asking) - shown)

    @property
    def animated(self) -> bool:
        """Something on screen changes with time alone."""
        running = (c for c in self.calls if c.phase is CallPhase.RUNNING and c.result is None)
        early = any(call.duration_ms is None for call in self.early_calls)
        model = self.activity is not None or self.answer_open
        return model or bool(self.shell_lines) or early or any(running)

    def apply(self, event: UiEvent, now: float) -> list[Block]:
        """Take an event at a monotonic time; the blocks that became final by it."""
        match event:
            case TurnStarted() | StepStarted() | InputsDelivered() | TurnEnded():
                return self._turn(event, now)
            case AskRequested() | AskAnswered() | AskWithdrawn():
                return self._ask(event)
            case (
                Notice()
                | UserEcho()
                | CommandOutput()
                | CommandTable()
                | PromptReplayed()
                | ResultExpanded()
            ):
                return [said_block(event)]
            case SubagentEvent():
                return self._subagents.apply(event, now)
            case (
                QueueChanged() | StatusChanged() | UsageChanged() | ClipboardText() | ThemeChanged()
            ):
                return self._quiet(event)
            case (
                ToolUseStartedEarly()
                | ToolUseEndedEarly()
                | BatchStarted()
                | ToolUseStarted()
                | ToolPhaseChanged()
                | ToolProgress()
                | ToolResultReady()
                | BatchFinished()
            ):
                return self._call(event, now)
            case MessageSuperseded():
                self._early.forget()
                return [*self._batches.abandon(), *self._message.apply(event, now)]
            case MessageEnded():
                self._round_trips = self._round_trips.after(event)
                return self._message.apply(event, now)
            case (
                TextDelta()
                | ThinkingDelta()
                | ToolUseAnnounced()
                | RetryWaiting()
                | CompactionStarted()
                | CompactionFinished()
            ):
                return self._message.apply(event, now)
            case _:
                return self._session(event, now)

    def _turn(self, event: _TurnEvent, now: float) -> list[Block]:
        match event:
            case TurnStarted():
                if not is_main(event.context_id):
                    return []
                self.busy = True
                self._prompts.begin_turn()
                return self._prompts.delivered(event.inputs, "")
            case StepStarted():
                self._early.forget()
                self._message.wait(now)
                return []
            case InputsDelivered():
                ended = self._message.end(now)
                point = delivered(event.point, event.step)
                return [*ended, *self._prompts.delivered(event.inputs, point)]
            case TurnEnded():
                return self._end_turn(event, now) if is_main(event.context_id) else []
            case _:
                assert_never(event)

    def _end_turn(self, event: TurnEnded, now: float) -> list[Block]:
        blocks = [*self._message.end(now), *self._batches.abandon()]
        self._message.rest()
        self._early.forget()
        self.busy = False
        self.asks = ()
        self._subagents.clear()
        self._prompts.end_turn(self.queue.items)
        if event.reason is not TurnEndReason.DONE or event.error:
            blocks.append(turn_end_block(event))
        return blocks

    def _call(self, event: _CallEvent, now: float) -> list[Block]:
        match event:
            case ToolUseStartedEarly() | ToolUseEndedEarly():
                self._early.apply(event, now)
            case BatchStarted():
                ended = self._message.end(now)
                self._message.rest()
                self._early.hand_over()
                self._batches.begin(event)
                return ended
            case ToolUseStarted():
                self._batches.start(event, now)
            case ToolPhaseChanged():
                began = self._early.began(event.tool_use_id, now)
                self._batches.change_phase(event, began)
            case ToolProgress():
                self._batches.progress(event)
            case ToolResultReady():
                return self._batches.finish(event)
            case BatchFinished():
                return self._batches.close(event, self._round_trips.mean_ms)
            case _:
                assert_never(event)
        return []

    def _ask(self, event: _AskEvent) -> list[Block]:
        others = tuple(ask for ask in self.asks if ask.id != event.ask.id)
        if isinstance(event, AskRequested):
            self.asks = (*others, cleaned_ask(event.ask))
            return []
        self.asks = others
        if isinstance(event, AskWithdrawn):
            return []
        text = one_line(receipt(event.ask, event.reply))
        if self._batches.answered(event.ask.tool_use_id, text):
            return []
        return [RemarkBlock(f"{reveal_line(event.ask.title)}: {text}")]

    def _quiet(self, event: _QuietEvent) -> list[Block]:
        match event:
            case QueueChanged():
                self.queue = shown_queue(event)
                self._prompts.waiting(self.queue.items, busy=self.busy)
            case StatusChanged():
                self.status = event.status
            case UsageChanged():
                # The session puts what belongs into the status row into StatusChanged.
                pass
            case ClipboardText() | ThemeChanged():
                # For the writer of the terminal, and for the presenter: no part of the transcript.
                pass
            case _:
                assert_never(event)
        return []

    def _session(self, event: _SessionEvent, now: float) -> list[Block]:
        match event:
            case ShellLineStarted():
                line = ShellLine(event.id, reveal_line(event.command), now)
                self.shell_lines = (*self.shell_lines, line)
                return []
            case ShellLineFinished():
                self.shell_lines = tuple(line for line in self.shell_lines if line.id != event.id)
                return [ShellBlock(readable(event.output), event.exit_code)]
            case Greeting():
                self.status = event.status
                return [greeting_block(event)]
            case AnswerReplayed():
                return self._message.replayed(event.text)
            case _:
                assert_never(event)
