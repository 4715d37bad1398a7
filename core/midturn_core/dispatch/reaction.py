"""What a reason to stop means for a running call (D1, D28, D36). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from midturn_core.interrupt import CancelReason
from midturn_core.tool import InterruptBehavior


class Reaction(Enum):
    CONTINUE = "continue"
    """It runs to its end as if nothing had happened."""
    ASK = "ask"
    """Its signal trips; it stops by itself, when it likes."""
    WIND_DOWN = "wind_down"
    """Its signal trips; it is cancelled when it does not stop soon."""
    LET_FINISH = "let_finish"
    """It may end by itself within the join limit, then it is abandoned."""
    CANCEL = "cancel"
    """It is cancelled at once."""


@dataclass(frozen=True, slots=True)
class StopLimits:
    """Seconds. ``join`` is how long a call that must stop is waited for (D28), ``grace`` how
    long it may take to obey its signal (and to hand over what it has) before it is cancelled.
    """

    join: float = 5.0
    grace: float = 2.0


@dataclass(frozen=True, slots=True)
class StopPlan:
    """When a call that must stop is cancelled, and when it is no longer waited for; both on the
    loop's clock."""

    reason: CancelReason
    cancel_at: float
    give_up_at: float


def react(reason: CancelReason, safe: bool, interrupt: InterruptBehavior) -> Reaction:
    """``safe`` says that the tool is CONCURRENT_SAFE. A running SEQUENTIAL tool is never cut by
    a message of the user (D1).
    """
    match reason:
        case CancelReason.USER_MESSAGE | CancelReason.FAIL_FAST:
            asks = safe and interrupt is InterruptBehavior.COOPERATIVE
            return Reaction.ASK if asks else Reaction.CONTINUE
        case (
            CancelReason.INTERRUPT
            | CancelReason.CALL_CANCELLED
            | CancelReason.SHUTDOWN
            | CancelReason.SUPERSEDED
        ):
            return _end(interrupt)
        case CancelReason.TIMEOUT:
            return Reaction.CANCEL
        case _:
            assert_never(reason)


def _end(interrupt: InterruptBehavior) -> Reaction:
    match interrupt:
        case InterruptBehavior.COOPERATIVE | InterruptBehavior.EXTERNALLY_TERMINATED:
            # A tool with a child ends the child when its signal trips and returns its output.
            return Reaction.WIND_DOWN
        case InterruptBehavior.NON_INTERRUPTIBLE:
            return Reaction.LET_FINISH
        case InterruptBehavior.THREAD_INTERRUPT:
            return Reaction.CANCEL
        case _:
            assert_never(interrupt)


def plan_stop(
    reaction: Reaction, reason: CancelReason, now: float, limits: StopLimits
) -> StopPlan | None:
    """None when the call goes on."""
    give_up = now + limits.join
    match reaction:
        case Reaction.CONTINUE | Reaction.ASK:
            return None
        case Reaction.CANCEL:
            return StopPlan(reason, now, give_up)
        case Reaction.WIND_DOWN:
            return StopPlan(reason, now + min(limits.grace, limits.join), give_up)
        case Reaction.LET_FINISH:
            return StopPlan(reason, give_up, give_up)
        case _:
            assert_never(reaction)
