"""The calls that are running, and the order in which their blocks become final.

Results come as the calls finish (S1.22); rows of a panel stay in call order (D27): a finished row
is held until all earlier ones are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from midturn_cli.render.blocks import (
    Block,
    CallBlock,
    CallInfo,
    CallResult,
    GroupPlace,
    LiveCall,
    PanelFooter,
    PanelTitle,
)
from midturn_cli.render.clean import clean, one_line, reveal_line
from midturn_core.dispatch.types import GateVerdict
from midturn_core.events import (
    BatchFinished,
    BatchStarted,
    CallPhase,
    ToolPhaseChanged,
    ToolProgress,
    ToolResultReady,
    ToolUseStarted,
)
from midturn_core.model.messages import (
    DiffDetail,
    Outcome,
    OutputDetail,
    TodoDetail,
    TodoItem,
    ToolDetail,
    ToolUseResult,
    TranscriptDetail,
)


@dataclass(slots=True)
class _Batch:
    count: int
    verdict: GateVerdict
    next_index: int = 0
    titled: bool = False
    labels: tuple[str, ...] = ()
    calls: dict[int, LiveCall] = field(default_factory=dict[int, LiveCall])


class OpenBatches:
    """Every batch between its start and its report, oldest first."""

    def __init__(self) -> None:
        self._batches: dict[str, _Batch] = {}
        self._place: dict[str, tuple[_Batch, int]] = {}

    @property
    def calls(self) -> tuple[LiveCall, ...]:
        """The calls that are not final, in start order."""
        return tuple(
            batch.calls[index] for batch in self._batches.values() for index in sorted(batch.calls)
        )

    @property
    def coming_title(self) -> PanelTitle | None:
        """The title of the oldest panel of which no row is final yet."""
        for batch in self._batches.values():
            if batch.count >= 2 and not batch.titled and batch.calls:
                return PanelTitle(batch.count, batch.verdict)
        return None

    def begin(self, event: BatchStarted) -> None:
        self._batches[event.batch_id] = _Batch(event.count, event.verdict)

    def start(self, event: ToolUseStarted, now: float) -> None:
        batch = self._batches.get(event.batch_id)
        if batch is None:
            batch = _Batch(event.count, GateVerdict(parallel=False))
            self._batches[event.batch_id] = batch
        info = CallInfo(
            one_line(event.tool_use.name), reveal_line(event.title), event.index, event.count
        )
        batch.calls[event.index] = LiveCall(event.tool_use.id, info, now)
        batch.labels = (*batch.labels, info.in_batch)
        self._place[event.tool_use.id] = (batch, event.index)

    def change_phase(self, event: ToolPhaseChanged, now: float) -> None:
        def changed(call: LiveCall) -> LiveCall:
            runs = event.phase is CallPhase.RUNNING
            return replace(call, phase=event.phase, started=now if runs else call.started)

        self._change(event.tool_use_id, changed)

    def progress(self, event: ToolProgress) -> None:
        newest = clean(event.note).strip().rpartition("\n")[2]
        self._change(event.tool_use_id, lambda call: replace(call, note=newest))

    def answered(self, tool_use_id: str, receipt: str) -> bool:
        """Keep what a person said about a call; False when that call is not open."""
        return self._change(tool_use_id, lambda call: replace(call, receipt=receipt))

    def finish(self, event: ToolResultReady) -> list[Block]:
        def finished(call: LiveCall) -> LiveCall:
            return replace(call, result=call_result(event.result, call.receipt))

        if not self._change(event.result.tool_use_id, finished):
            return []
        batch, _ = self._place[event.result.tool_use_id]
        blocks: list[Block] = []
        while (call := batch.calls.get(batch.next_index)) and call.result is not None:
            blocks += self._release(batch, call, call.result)
            batch.next_index += 1
        return blocks

    def close(self, event: BatchFinished, round_trip_ms: float = 0.0) -> list[Block]:
        """The rest of the rows and the footer; a single call has none."""
        batch = self._batches.pop(event.report.batch_id, None)
        if batch is None:
            return []
        blocks = self._flush(batch)
        if batch.count >= 2:
            blocks += self._title(batch)
            blocks.append(PanelFooter(event.report, round_trip_ms))
        return blocks

    def abandon(self) -> list[Block]:
        """The turn is over: what has finished is shown, what has not is forgotten."""
        blocks: list[Block] = []
        for batch in self._batches.values():
            blocks += self._flush(batch)
        self._batches.clear()
        return blocks

    def _change(self, tool_use_id: str, change: Callable[[LiveCall], LiveCall]) -> bool:
        place = self._place.get(tool_use_id)
        if place is None or place[1] not in place[0].calls:
            return False
        batch, index = place
        batch.calls[index] = change(batch.calls[index])
        return True

    def _flush(self, batch: _Batch) -> list[Block]:
        blocks: list[Block] = []
        for index in sorted(batch.calls):
            call = batch.calls[index]
            if call.result is not None:
                blocks += self._release(batch, call, call.result)
            else:
                self._forget(batch, call)
        return blocks

    def _release(self, batch: _Batch, call: LiveCall, result: CallResult) -> list[Block]:
        self._forget(batch, call)
        in_panel = batch.count >= 2
        title = self._title(batch) if in_panel else []
        return [*title, _row(batch, call.call, result)]

    def _forget(self, batch: _Batch, call: LiveCall) -> None:
        del batch.calls[call.call.index]
        self._place.pop(call.id, None)

    def _title(self, batch: _Batch) -> list[Block]:
        if batch.titled:
            return []
        batch.titled = True
        return [PanelTitle(batch.count, batch.verdict)]


def _row(batch: _Batch, call: CallInfo, result: CallResult) -> CallBlock:
    place = _group_place(batch.verdict, call.index)
    return CallBlock(call, result, batch.count >= 2, batch.labels, place)


def _group_place(verdict: GateVerdict, index: int) -> GroupPlace:
    part = next((part for part in verdict.segments if index in part), None)
    if not verdict.partly or part is None or len(part) == 1:
        return GroupPlace.ALONE
    if index == part[0]:
        return GroupPlace.FIRST
    return GroupPlace.LAST if index == part[-1] else GroupPlace.MIDDLE


def call_result(result: ToolUseResult, receipt: str = "") -> CallResult:
    """A result with its texts cleaned; the error is its first line.

    The person who denied a call is not told what that tells the model.
    """
    error = ""
    if result.is_error and not receipt.startswith(Outcome.DENIED.value):
        first, _, rest = clean(result.content).strip().partition("\n")
        # What a command wrote is shown below its row: nothing is left out then.
        more = rest.strip() and not isinstance(result.detail, OutputDetail)
        error = first.strip() + (" …" if more else "")
    return CallResult(
        result.outcome,
        result.duration_ms,
        one_line(result.summary),
        error,
        None if result.detail is None else clean_detail(result.detail),
        result.retried,
        receipt,
    )


def clean_diff(detail: DiffDetail, cleaned: Callable[[str], str] = clean) -> DiffDetail:
    return replace(detail, path=reveal_line(detail.path), unified=cleaned(detail.unified))


def clean_detail(detail: ToolDetail, cleaned: Callable[[str], str] = clean) -> ToolDetail:
    """The same detail with all of its texts cleaned; for questions pass ``reveal``."""
    match detail:
        case DiffDetail():
            return clean_diff(detail, cleaned)
        case OutputDetail():
            return replace(detail, tail=tuple(one_line(line) for line in detail.tail))
        case TodoDetail():
            items = (TodoItem(one_line(item.text), item.status) for item in detail.items)
            return TodoDetail(tuple(items))
        case TranscriptDetail(lines):
            return TranscriptDetail(tuple(cleaned(line) for line in lines))
