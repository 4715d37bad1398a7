"""``midturn send``: text for a session from another terminal, a script or another machine."""

from __future__ import annotations

import os
import sys

from midturn_cli.launch import given_text, load, with_piped_text
from midturn_cli.leftovers import way_back
from midturn_cli.options import EXIT_FAILED, Arguments, UsageError
from midturn_cli.outside_queue import OutsideQueue, outside_queue
from midturn_core.config import QueueConfig
from midturn_core.errors import QueueError
from midturn_core.queue.outside import outside_tags
from midturn_core.queue.types import KIND_KEY, QueuedInput, QueuedInputPriority

_EMPTY = 'send needs a text: midturn send "..." or text on standard input'
_TIERS = ("now", "next", "later")
_WAY_OUT = (
    "a session takes it from outside only where [queue] remote_commands = true; a word before it "
    "makes it text for the model"
)


def run(arguments: Arguments) -> int:
    """Store the text for the session and wake it; returns the exit code: 1 when it was not stored.

    Raises:
        UsageError: it is not clear what to send, or to whom, or it may not be sent.
        MidturnError: there is no such session, or its queue cannot be reached.
    """
    config = load(arguments, os.environ).config.queue
    tier = _tier(arguments)
    text = with_piped_text(given_text(arguments), _EMPTY)
    kind = _kind(text, config)
    tags = {KIND_KEY: kind, **outside_tags(arguments.text("sender") or "")}
    try:
        with outside_queue(arguments, config) as queue:
            queue.manager.enqueue(QueuedInput(text, queue.target.context_id, tier, metadata=tags))
            queue.wake()
            sys.stdout.write(f"{_receipt(queue, tier, config)}\n")
    except QueueError as error:
        sys.stderr.write(f"midturn: not sent: {error}\n")
        return EXIT_FAILED
    return 0


def _tier(arguments: Arguments) -> QueuedInputPriority:
    given = [tier for tier in _TIERS if arguments.is_on(tier)]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} cannot be used together")
    return QueuedInputPriority[given[0].upper()] if given else QueuedInputPriority.NEXT


def _kind(text: str, config: QueueConfig) -> str:
    """The same rule as for what is typed; most texts need none of it, so it is loaded late."""
    if not text.lstrip().startswith(("/", "!")):
        return "prompt"
    from midturn_cli.commands.all_commands import all_commands
    from midturn_cli.commands.line_kinds import line_kind, line_problem
    from midturn_cli.commands.registry import CommandRegistry
    from midturn_core.controller import LineKind

    registry = CommandRegistry(all_commands())
    if problem := line_problem(registry, text):
        raise UsageError(problem)
    kind = line_kind(registry, text)
    if kind is not LineKind.PROMPT and not config.remote_commands:
        what = "a ! line" if kind is LineKind.SHELL else "a slash command"
        raise UsageError(f"{text.split()[0]} begins {what}, and {_WAY_OUT}")
    return kind.value


def _receipt(queue: OutsideQueue, tier: QueuedInputPriority, config: QueueConfig) -> str:
    target = queue.target
    if target.running is not None:
        return f"Sent to {target.id} as {tier.name}; it is {target.running.state.value}."
    elsewhere = " on this machine" if config.backend == "redis" else ""
    return (
        f"Kept for {target.id} as {tier.name}; it does not run{elsewhere}, and offers the text when "
        f"it goes on: {way_back(target.id)}"
    )
