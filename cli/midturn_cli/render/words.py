"""The words and signs for durations, outcomes, tiers and ends; shared by screen and plain mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from midturn_cli.delivery_words import (
    BEHIND_EDITED,
    BEING_EDITED,
    LATER_WORDS,
    NEXT_WORDS,
    NOW_WITHOUT_HASTE,
)
from midturn_cli.render.blocks import LiveCall, PanelFooter, PanelTitle, TurnEndBlock
from midturn_cli.render.clean import one_line
from midturn_core.config import QueueConfig
from midturn_core.dispatch.speedup import round_trips_spared, saved_ms
from midturn_core.dispatch.types import BatchReport, GateVerdict, SequentialCause
from midturn_core.events import CallPhase, DeliveryPoint, TurnEndReason
from midturn_core.model.messages import Outcome
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.queue.attachments import attachments_note
from midturn_core.queue.outside import sender_note
from midturn_core.queue.types import ORIGIN_KEY, REMINDER, QueuedInput, QueuedInputPriority

STORING = "…"
"""Stands in the row of a queued input until the store has it."""
NOT_STORED = "not stored"
"""Stands there while the store cannot be used."""
_WORTH_ADVICE_MS = 100.0
"""A gain that somebody would notice; below it a footer tells what happened, and advises nothing."""
_STOPS_WHEN_ASKED = frozenset({"Grep", "Glob", "WebFetch", "AskUser"})


def duration(milliseconds: float) -> str:
    """``45ms``, ``3.1s`` or ``2m05s``."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f}ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}m{seconds:02d}s"


def took(milliseconds: float) -> str:
    """`` (45ms)`` after a call; nothing after one that never ran, which has no duration."""
    return f" ({duration(milliseconds)})" if milliseconds else ""


def told_already(outcome: Outcome, error: str, receipt: str) -> bool:
    """``skipped: …``, ``stopped after …`` and ``denied: …`` need no word for the outcome beside
    them.
    """
    return error.startswith(outcome.value) or receipt.startswith(outcome.value)


def plural(count: int, one: str, many: str = "") -> str:
    """``1 call``, ``3 calls``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {many or one + 's'}"


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
    return f"Tool Execution ({block.count} calls, one after another)"


def panel_footer(block: PanelFooter) -> tuple[str, str]:
    """Totals, and what the other way would have taken or why there was none (S3.12, S3.13, D34)."""
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
    how = " (parallel)" if report.verdict.parallel else ""
    return f"Total: {', '.join(parts)} in {duration(report.wall_ms)}{how}", _other_way(report)


def _other_way(report: BatchReport) -> str:
    if report.verdict.parallel:
        saved = duration(saved_ms(report))
        return f"Sequential would have taken: {duration(report.sequential_ms)} (saved {saved})"
    at_stake = report.wall_ms - report.parallel_ms >= _WORTH_ADVICE_MS
    if not report.verdict.would_pass:
        advice = " · /why" if at_stake else ""
        return f"One by one: {_brief_cause(report.verdict)}{advice}"
    took, together = duration(report.wall_ms), duration(report.parallel_ms)
    if took == together:
        return f"Parallel would have taken as long: {together}"
    advice = ": /parallel on" if at_stake else ""
    return f"Parallel would have taken {together}, not {took}{advice}"


def _brief_cause(verdict: GateVerdict) -> str:
    """What decided (S1.51), in a few words; /why has the sentence."""
    if verdict.cause is SequentialCause.DISABLED and verdict.next_cause is not None:
        other = _brief_cause(replace(verdict, cause=verdict.next_cause))
        return f"parallel execution is off, and {other}"
    call = f"{one_line(verdict.tool_name)} (call {(verdict.call_index or 0) + 1})"
    match verdict.cause:
        case SequentialCause.SEQUENTIAL_TOOL:
            return f"{call} runs alone"
        case SequentialCause.INTERRUPT_BEHAVIOR:
            return f"{call} can only be stopped from outside"
        case SequentialCause.UNKNOWN_TOOL:
            return f"there is no tool {call}"
        case SequentialCause.CLOSED:
            return "the dispatcher is closed"
        case SequentialCause.DISABLED:
            return "parallel execution is off"
        case SequentialCause.SINGLE_CALL | None:
            return "one call only"
        case _:
            assert_never(verdict.cause)


def panel_remarks(block: PanelFooter) -> list[str]:
    """What a batch saved besides: by its early start (D24), and requests to the model (S4.2)."""
    overlap = block.report.overlap_ms
    early = f"{duration(overlap)} of it ran while the answer was still coming" if overlap else ""
    return [remark for remark in (early, _spared_requests(block)) if remark]


def _spared_requests(block: PanelFooter) -> str:
    spared = round_trips_spared(block.report)
    if not block.report.verdict.parallel or block.round_trip_ms <= 0 or spared < 1:
        return ""
    about = duration(spared * block.round_trip_ms)
    return f"{plural(spared, 'model request')} spared: about {about} more (estimate)"


def turn_end(block: TurnEndBlock) -> str:
    steps = "1 step" if block.steps == 1 else f"{block.steps} steps"
    after = f" after {duration(block.duration_ms)}, {steps}"
    match block.reason:
        case TurnEndReason.DONE:
            text = f"Done{after}"
        case TurnEndReason.INTERRUPTED:
            text = f"Interrupted{after}"
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
        case AskAnswer.TURN:
            return f"allowed this turn: {ask.session_rule}".removesuffix(": ")
        case AskAnswer.SESSION:
            return f"allowed this session: {ask.session_rule}".removesuffix(": ")
        case AskAnswer.ALWAYS:
            return f"always allowed: {ask.session_rule}".removesuffix(": ")
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
        case DeliveryPoint.BEFORE_ANSWER:
            return "before the answer"
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
    behind_edited: bool = False
    """It stands behind what is being edited."""
    way_out: str = " — Esc stops it"
    """What is said of a call that a NOW waits for."""


def waits_until(item: QueuedInput, running: Sequence[LiveCall], waiting: Waiting) -> str:
    """When a queued input will be delivered (D1, D5), in words."""
    if kept := _kept_back(item, waiting):
        return kept
    settings = waiting.settings
    if not waiting.busy:
        return "goes next"
    if not item.is_prompt:
        return "after this turn"
    match item.priority:
        case QueuedInputPriority.NOW:
            if not settings.now_hastens:
                return NOW_WITHOUT_HASTE
            blocking = next((call for call in running if _blocks_now(call)), None)
            return f"waits for {blocking.call.name}{waiting.way_out}" if blocking else "at once"
        case QueuedInputPriority.NEXT:
            if waiting.barred:
                return "after the command before it"
            return NEXT_WORDS[settings.next_delivery]
        case QueuedInputPriority.LATER:
            return LATER_WORDS["idle"]
        case _:
            assert_never(item.priority)


def queue_notes(item: QueuedInput, unstored: frozenset[str], fails: bool) -> list[str]:
    """What else there is to say of a waiting input: whether the store has it, who sent it, and
    what goes with it.
    """
    missing = item.uuid in unstored
    notes = (
        (NOT_STORED if fails else STORING) if missing else "",
        one_line(sender_note(item)),
        attachments_note(item),
    )
    return [note for note in notes if note]


def _kept_back(item: QueuedInput, waiting: Waiting) -> str:
    """What must happen before it goes, whatever its tier; empty for nothing."""
    if item.being_edited:
        return BEING_EDITED
    if item.held:
        return "held — Enter on an empty line sends it"
    if _goes_by_hand(item, waiting.settings):
        return LATER_WORDS["manual"]
    return BEHIND_EDITED if waiting.behind_edited else ""


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


def origin_words(item: QueuedInput) -> str:
    """Where an input came from, unless somebody typed it. Times are local, and absolute: they stay
    true in the scrollback.
    """
    if item.metadata.get(ORIGIN_KEY) == REMINDER:
        return f"reminder set {item.enqueued_at.astimezone():%d %b %H:%M}"
    return one_line(sender_note(item))


def queue_words(queue: Sequence[QueuedInput]) -> str:
    """How many wait in each tier. It looks at all of them: too much for every frame."""
    # What is edited counts as what it is again when it is left.
    counts = Counter(
        item.priority.name if not item.held or item.bars_others else "held" for item in queue
    )
    order = (*(tier.name for tier in QueuedInputPriority), "held")
    words = [f"{counts[name]} {name}" for name in order if counts[name]]
    return f"queue {' '.join(words)}" if words else ""
