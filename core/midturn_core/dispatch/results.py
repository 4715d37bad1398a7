"""The results a call gets without a tool's own answer, in words that tell the model the truth."""

from __future__ import annotations

from dataclasses import replace

from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import Outcome, ToolDetail, ToolUse, ToolUseResult


def failed(use: ToolUse, message: str, outcome: Outcome = Outcome.FAILED) -> ToolUseResult:
    """``Error: <message>`` (D32)."""
    return ToolUseResult(use.id, use.name, outcome, f"Error: {message}")


def raised(use: ToolUse, error: BaseException) -> ToolUseResult:
    """An exception nobody foresaw (S1.24)."""
    text = str(error).strip()
    kind = type(error).__name__
    return failed(use, f"{kind}: {text}" if text else f"Unknown error ({kind})")


def skipped(use: ToolUse, reason: CancelReason) -> ToolUseResult:
    return ToolUseResult(use.id, use.name, Outcome.SKIPPED, f"skipped: {reason.value}")


def over_batch_size(use: ToolUse, limit: int) -> ToolUseResult:
    """D33."""
    message = f"at most {limit} calls run in one response; this one was not run, ask for it again"
    return failed(use, message, Outcome.SKIPPED)


def call_timed_out(use: ToolUse, limit: float) -> ToolUseResult:
    message = f"Tool execution timeout: the call was not done after {limit:g} s"
    return failed(use, message, Outcome.TIMED_OUT)


def batch_timed_out(use: ToolUse, limit: float, started: bool) -> ToolUseResult:
    state = "the call was not done" if started else "the call had not started"
    message = f"Tool execution timeout: {state} when the batch reached its limit of {limit:g} s"
    return failed(use, message, Outcome.TIMED_OUT)


def stopped(
    use: ToolUse, seconds: float, reason: CancelReason | None, partial: str = ""
) -> ToolUseResult:
    """It had started and was cut; ``partial`` is what it had by then."""
    cause = f": {reason.value}" if reason is not None else ""
    text = f"stopped after {seconds:.1f} s{cause}; the result may be incomplete"
    content = f"{text}\n\n{partial}" if partial else text
    return ToolUseResult(use.id, use.name, Outcome.STOPPED, content)


def abandoned(use: ToolUse, seconds: float, reason: CancelReason) -> ToolUseResult:
    """It did not stop when it had to; nothing more is known of it."""
    text = (
        f"given up after {seconds:.1f} s: {reason.value}; the call did not stop and may still be "
        "running, so its effect is unknown"
    )
    return ToolUseResult(use.id, use.name, Outcome.STOPPED, text)


def shown(result: ToolUseResult, summary: str, detail: ToolDetail | None) -> ToolUseResult:
    """The same result with what the screen shows of it."""
    return replace(result, summary=summary, detail=detail)
