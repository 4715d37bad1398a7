"""/why: how a batch of tool uses ran, what decided that, and what its calls took (S1.51)."""

from __future__ import annotations

from midturn_cli.batch_history import PastBatch
from midturn_cli.commands.arguments import nth_newest
from midturn_cli.commands.command import Command, Form, Use
from midturn_cli.render.cells import cut
from midturn_cli.render.words import duration, sign
from midturn_core.dispatch.gate import explain
from midturn_core.dispatch.speedup import would_take_ms
from midturn_core.dispatch.types import BatchReport, CallReport
from midturn_core.model.messages import Outcome

MAX_LABEL = 32
BAR_CELLS = 10
BAR, REST = "━", "·"


def why(use: Use) -> None:
    kept = use.engine.batch_history.newest_first
    number, batch = nth_newest(use, "/why", "batch", kept)
    use.say(explain(batch.verdict))
    whose = "" if batch.agent == "main" else f" of {batch.agent}"
    title = f"Batch {batch.number} of this session, step {batch.step}{whose}: {_size(batch)}"
    header = ("", "call", "result", "began", "took", "")
    use.table(title, header, _rows(batch), _footer(batch, number, len(kept)))


def bar(began: float, took: float, whole: float) -> str:
    """When in its batch a call ran, over ``BAR_CELLS`` cells; at least one is filled."""
    if whole <= 0:
        return BAR * BAR_CELLS
    first = min(int(began / whole * BAR_CELLS), BAR_CELLS - 1)
    last = min(max(round((began + took) / whole * BAR_CELLS), first + 1), BAR_CELLS)
    return REST * first + BAR * (last - first) + REST * (BAR_CELLS - last)


def _size(batch: PastBatch) -> str:
    count = len(batch.names)
    calls = "1 call" if count == 1 else f"{count} calls"
    return calls if batch.report else f"{calls}, still running"


def _rows(batch: PastBatch) -> list[tuple[str, ...]]:
    reports = {call.index: call for call in batch.report.calls} if batch.report else {}
    ran = [call for call in reports.values() if call.started is not None]
    origin = min((call.started or 0.0 for call in ran), default=0.0)
    end = max((call.ended or call.started or 0.0 for call in ran), default=origin)
    rows: list[tuple[str, ...]] = []
    for index, (name, title) in enumerate(zip(batch.names, batch.titles, strict=True)):
        label = cut(f"{name}: {title}" if title else name, MAX_LABEL)
        timing = _timing(reports.get(index), origin, end)
        rows.append((f"{index + 1}/{len(batch.names)}", label, *timing))
    return rows


def _timing(call: CallReport | None, origin: float, end: float) -> tuple[str, ...]:
    """Outcome, beginning, length and bar of one call."""
    if call is None:
        return ("…", "", "", "")
    word = "" if call.outcome is Outcome.SUCCEEDED else f" {call.outcome.value}"
    word += ", retried" if call.retried else ""
    outcome = f"{sign(call.outcome)}{word}"
    if call.started is None or call.ended is None:
        return (outcome, "never ran", "", "")
    early = " early" if call.early else ""
    began, took = call.started - origin, call.ended - call.started
    return (
        outcome,
        f"+{duration(began * 1000)}{early}",
        duration(call.duration_ms),
        bar(began, took, end - origin),
    )


def _footer(batch: PastBatch, number: int, kept: int) -> str:
    parts = [_both_ways(batch.report)] if batch.report else []
    if number < kept:
        parts.append(f"/why {number + 1} explains the batch before")
    return " · ".join(parts)


def _both_ways(report: BatchReport) -> str:
    together = duration(would_take_ms(report))
    one_by_one = f"one after another {duration(report.sequential_ms)}"
    passes = report.verdict.parallel or report.verdict.would_pass
    both = f"{one_by_one}, together {together}" if passes else one_by_one
    early = f"; {duration(report.overlap_ms)} before the answer was complete"
    return f"took {duration(report.wall_ms)}: {both}{early if report.overlap_ms else ''}"


WHY = Command(
    "why",
    "see why calls ran together, or not",
    "[N]",
    now=why,
    forms=(
        Form("/why", "explain the newest batch: what decided, what to change, each call's time"),
        Form("/why N", "explain the N-th newest batch of this session"),
    ),
)
