"""Which inputs leave together, and what may not overtake what: commands (D3), and what is being
edited. Pure functions of what waits, in delivery order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from midturn_core.queue.types import QueuedInput, QueuedInputPriority


def behind_command(waiting: Iterable[QueuedInput]) -> frozenset[str]:
    """The uuids of the NEXT prompts that a command bars. ``waiting`` is in delivery order; held
    inputs bar nothing.
    """
    # No LATER input is barred, and none bars: in delivery order they are the end of what counts.
    ahead = itertools.takewhile(lambda item: item.priority <= QueuedInputPriority.NEXT, waiting)
    free = (item for item in ahead if not item.held)
    rest = itertools.dropwhile(lambda item: item.is_prompt, free)
    return frozenset(
        item.uuid for item in rest if item.is_prompt and item.priority is QueuedInputPriority.NEXT
    )


def behind_edited(waiting: Iterable[QueuedInput]) -> frozenset[str]:
    """The uuids of what waits until somebody has done with an input before it, so that the order
    stays what the screen shows. ``waiting`` is in delivery order, held inputs included. NOW inputs
    wait for nobody.
    """
    rest = itertools.dropwhile(lambda item: not item.bars_others, waiting)
    return frozenset(
        item.uuid for item in rest if not item.held and item.priority is not QueuedInputPriority.NOW
    )


def may_go(waiting: Sequence[QueuedInput]) -> list[QueuedInput]:
    """What is neither held nor behind what is being edited, in the same order."""
    barred = behind_edited(waiting)
    return [item for item in waiting if not item.held and item.uuid not in barred]


def leading_prompts(items: Iterable[QueuedInput]) -> list[QueuedInput]:
    """Those before the first command."""
    return list(itertools.takewhile(lambda item: item.is_prompt, items))


def at_step_boundary(free: Sequence[QueuedInput]) -> list[QueuedInput]:
    """Every NOW prompt, and the NEXT prompts before the first command, of what may go (D2, D3)."""
    barred = behind_command(free)
    return [item for item in free if item.is_prompt and item.uuid not in barred]


def next_turn(free: Sequence[QueuedInput], *, one: bool) -> list[QueuedInput]:
    """Neighbouring NOW and NEXT prompts together, a command by itself, and when neither waits, one
    LATER input, of what may go (D1, D4). ``one`` gives each prompt a turn of its own.
    """
    steering = (item for item in free if item.priority <= QueuedInputPriority.NEXT)
    together = leading_prompts(steering)
    return list(free[:1]) if one or not together else together
