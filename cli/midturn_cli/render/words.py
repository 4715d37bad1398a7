"""The words and signs for durations, outcomes, tiers and ends; shared by screen and plain mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from midturn_cli.delivery_words import LATER_WORDS, NEXT_WORDS, NOW_WITHOUT_HASTE
from midturn_cli.render.blocks import LiveCall, PanelFooter, PanelTitle, TurnEndBlock
from midturn_core.config import QueueConfig
from midturn_core.dispatch.types import GateVerdict, SequentialCause
from midturn_core.events import CallPhase, DeliveryPoint, TurnEndReason
from midturn_core.model.messages import Outcome
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

_STOPS_WHEN_ASKED = frozenset({"Grep", "Glob", "WebFetch", "AskUser"})


def duration(milliseconds: float) -> str:
    """``45ms``, ``3.1s`` or ``2m05s``."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}m{seconds:02d}s"


def elapsed(seconds: float) -> str:
    """A running time, coarse enough to be read."""
    return duration(max(seconds, 0.0) * 1000) if seconds >= 1 else f"{max(seconds, 0.0):.1f}s"


def sign(outcome: Outcome) -> str:
    match outcome:
        case Outcome.SUCCEEDED:
            return "✓"
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.DENIED:
            return "✗"
        case Outcome.STOPPED | Outcome.SKIPPED:
            return "–"
        case _:
            assert_never(outcome)


def panel_title(block: PanelTitle) -> str:
    if block.verdict.partly:
        return (
            f"Parallel Tool Execution ({block.count} calls, in {len(block.verdict.segments)} parts)"
        )
    if block.verdict.parallel:
        return f"Parallel Tool Execution ({block.count} calls)"
    return f"Tool Execution ({block.count} calls, {_sequential_reason(block.verdict)})"


def _sequential_reason(verdict: GateVerdict) -> str:
    match verdict.cause:
        case SequentialCause.SEQUENTIAL_TOOL | SequentialCause.INTERRUPT_BEHAVIOR:
            return f"one after another: {verdict.tool_name or 'one of them'} runs alone"
        case SequentialCause.UNKNOWN_TOOL:
            return f"one after another: there is no tool {verdict.tool_name}".rstrip()
        case SequentialCause.CLOSED:
            return "one after another: the pool is closed"
        case SequentialCause.DISABLED | SequentialCause.SINGLE_CALL | None:
            return "one after another"
        case _:
            assert_never(verdict.cause)


def panel_footer(block: PanelFooter) -> tuple[str, str]:
    """Totals, and what the calls would have taken one after another (S3.12, S3.13, D34)."""
    report = block.report
    total = len(report.calls)
    parts = [f"{report.count(Outcome.SUCCEEDED)}/{total} succeeded"]
    for words, outcomes in (
        ("failed", (Outcome.FAILED, Outcome.TIMED_OUT)),
        ("denied", (Outcome.DENIED,)),
        ("stopped", (Outcome.STOPPED,)),
        ("skipped", (Outcome.SKIPPED,)),
    ):
        if count := report.count(*outcomes):
            parts.append(f"{count} {words}")
    how = "parallel" if report.verdict.parallel else "sequential"
    saved = max(report.sequential_ms - report.wall_ms, 0.0) if report.verdict.parallel else 0.0
    return (
        f"Total: {', '.join(parts)} in {duration(report.wall_ms)} ({how})",
        f"Sequential would have taken: {duration(report.sequential_ms)} (saved {duration(saved)})",
    )


def what_if(block: PanelFooter) -> str:
    """What the same batch would have taken in parallel; empty when it could not have (D20)."""
    report = block.report
    verdict = report.verdict
    if verdict.parallel or not verdict.would_pass:
        return ""
    return (
        f"took {duration(report.wall_ms)}; in parallel it would have taken "
        f"{duration(report.parallel_ms)}: /parallel on"
    )


def turn_end(block: TurnEndBlock) -> str:
    steps = "1 step" if block.steps == 1 else f"{block.steps} steps"
    after = f" after {duration(block.duration_ms)}, {steps}"
    match block.reason:
        case TurnEndReason.DONE:
            text = f"Done{after}"
        case TurnEndReason.INTERRUPTED:
            text = f"Cancelled{after}"
        case TurnEndReason.FAILED:
            text = f"Failed{after}"
        case TurnEndReason.STEP_LIMIT:
            text = f"Stopped at the limit of {steps}; go on with another message"
        case TurnEndReason.STALLED:
            text = f"Stopped{after}: every call of the last six steps failed"
        case TurnEndReason.REFUSED:
            text = f"The model declined to answer{after}"
        case _:
            assert_never(block.reason)
    text = f"{text}: {block.error}" if block.error else text
    return f"{text} → {block.way_out}" if block.way_out else text


def receipt(ask: Ask, reply: AskReply) -> str:
    """What a person answered, in the past tense."""
    match reply.answer:
        case AskAnswer.ONCE:
            return "allowed once"
        case AskAnswer.SESSION:
            return f"allowed this session: {ask.session_rule}".removesuffix(": ")
        case AskAnswer.NO:
            return "denied"
        case AskAnswer.NO_WITH_REASON:
            return f"denied: {reply.reason}".removesuffix(": ")
        case _:
            assert_never(reply.answer)


def delivered(point: DeliveryPoint, step: int) -> str:
    match point:
        case DeliveryPoint.STEP_BOUNDARY:
            return f"after step {step}"
        case DeliveryPoint.STREAM_CUT:
            return "cut the answer"
        case DeliveryPoint.TURN_END:
            return "the turn goes on"
        case DeliveryPoint.OWN_TURN:
            return "its own turn"
        case _:
            assert_never(point)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What decides when a queued input is delivered, besides its tier."""

    busy: bool
    barred: bool = False
    """It stands behind a command."""
    settings: QueueConfig = QueueConfig()


def waits_until(item: QueuedInput, running: Sequence[LiveCall], waiting: Waiting) -> str:
    """When a queued input will be delivered (D1, D5), in words."""
    settings = waiting.settings
    if item.held:
        return "held — Enter on an empty line sends it"
    if _goes_by_hand(item, settings):
        return LATER_WORDS["manual"]
    if not waiting.busy:
        return "goes next"
    if not item.is_prompt:
        return "after this turn"
    match item.priority:
        case QueuedInputPriority.NOW:
            if not settings.now_hastens:
                return NOW_WITHOUT_HASTE
            blocking = next((call for call in running if _blocks_now(call)), None)
            return f"waits for {blocking.call.name} — Esc stops it" if blocking else "at once"
        case QueuedInputPriority.NEXT:
            if waiting.barred:
                return "after the command before it"
            return NEXT_WORDS[settings.next_delivery]
        case QueuedInputPriority.LATER:
            return LATER_WORDS["idle"]
        case _:
            assert_never(item.priority)


def _goes_by_hand(item: QueuedInput, settings: QueueConfig) -> bool:
    return item.priority is QueuedInputPriority.LATER and settings.later == "manual"


def _blocks_now(call: LiveCall) -> bool:
    return (
        call.phase is CallPhase.RUNNING
        and call.result is None
        and call.call.name not in _STOPS_WHEN_ASKED
    )


def tokens(count: int) -> str:
    if count < 1_000:
        return f"{count} tok"
    if count < 999_500:
        return f"{count / 1_000:.0f}k tok" if count >= 9_950 else f"{count / 1_000:.1f}k tok"
    return f"{count / 1_000_000:.1f}M tok"
