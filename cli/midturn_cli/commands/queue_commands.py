"""/queue, and /now, /next and /later: what waits, and when what is typed is delivered (D1)."""

from __future__ import annotations

from functools import partial
from typing import assert_never

from midturn_cli.commands.arguments import age, due_in, unknown_word, whole_number
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.registry import split_command
from midturn_cli.render.words import queue_notes
from midturn_cli.shell_line import shell_command
from midturn_core.config import QueueConfig
from midturn_core.queue.barriers import behind_command
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

BEHIND_COMMAND = "after the command before it"
WORDS = ("nothing", "rm N", "clear", "release")


def queue(use: Use) -> None:
    match use.words:
        case []:
            _show(use)
        case ["rm", "all"] | ["clear"]:
            _clear(use)
        case ["rm", number]:
            _remove(use, number)
        case ["rm", *_]:
            raise CommandError(
                "/queue rm needs one number of the list, or all (example: /queue rm 2)"
            )
        case ["release"]:
            _release(use)
        case [word, *_]:
            raise unknown_word("/queue", word, WORDS, "/queue rm 2")
        case _:
            pass


def _waiting(use: Use) -> list[QueuedInput]:
    return use.engine.queue.snapshot(use.engine.context_id)


def _show(use: Use) -> None:
    items = _waiting(use)
    use.shown.queue = tuple(item.uuid for item in items)
    if not items:
        use.say("Nothing waits.")
        return
    settings, busy = use.engine.config.queue, use.controller.busy
    barred = behind_command(items)
    stored = use.engine.session_queue
    unstored = stored.unstored if stored.fails else frozenset[str]()
    rows = [
        (
            str(number),
            item.priority.name,
            BEHIND_COMMAND if busy and item.uuid in barred else delivery(item, settings, busy=busy),
            age(item.enqueued_at),
            _with_note(item, unstored, stored.fails),
        )
        for number, item in enumerate(items, start=1)
    ]
    header = ("", "tier", "delivered", "age", "text")
    use.table("Waiting", header, rows, "/queue rm N removes one, /queue clear all of them")


def _with_note(
    item: QueuedInput, unstored: frozenset[str] = frozenset(), fails: bool = False
) -> str:
    return " · ".join((item.input_text, *queue_notes(item, unstored, fails)))


def delivery(item: QueuedInput, settings: QueueConfig, *, busy: bool) -> str:
    """When an input will be delivered, in words (D1, D5)."""
    if item.scheduled:
        return due_in(item)
    if item.held:
        return "held (/queue release)"
    by_hand = item.priority is QueuedInputPriority.LATER and settings.later == "manual"
    if by_hand:
        return "on /later run"
    if not busy:
        return "goes next"
    if not item.is_prompt:
        return "after this turn"
    match item.priority:
        case QueuedInputPriority.NOW:
            return "at once" if settings.now_hastens else "first after this step"
        case QueuedInputPriority.NEXT:
            return "after this step" if settings.next_delivery == "step" else "when the turn ends"
        case QueuedInputPriority.LATER:
            return "after this turn"
        case _:
            assert_never(item.priority)


def _remove(use: Use, word: str) -> None:
    number = whole_number(word, "the number after /queue rm", "/queue rm 2")
    known = use.shown.queue or tuple(item.uuid for item in _waiting(use))
    if number > len(known):
        listed = f"the list ends at {len(known)}" if known else "nothing waits"
        raise CommandError(f"There is no number {number}: {listed}; /queue shows it anew")
    removed = use.engine.queue.remove(known[number - 1])
    if removed is None:
        raise CommandError(f"Number {number} of the list waits no more; /queue shows what does")
    use.say(f"Removed, never sent: {removed.input_text}")


def _clear(use: Use) -> None:
    removed = use.engine.queue.clear(use.engine.context_id)
    use.shown.queue = ()
    if not removed:
        use.say("Nothing waits.")
        return
    rows = [(item.priority.name, _with_note(item)) for item in removed]
    use.table("Removed, never sent", ("tier", "text"), rows)


def _release(use: Use) -> None:
    held = sum(item.held and not item.scheduled for item in _waiting(use))
    if not held:
        raise CommandError("Nothing is held; /queue shows what waits")
    use.controller.release_held()
    use.say(f"Released: {held} held input{'' if held == 1 else 's'}.")


def send(use: Use, priority: QueuedInputPriority) -> None:
    """Submit the text with a tier; ``check_text`` has looked at it."""
    if problem := use.controller.submit(
        use.arguments, priority, pasted=True, attachments=use.attachments
    ):
        raise CommandError(problem)


def later(use: Use) -> None:
    match use.words:
        case ["run"]:
            _run_later(use, None)
        case ["run", number] if number.isdecimal():
            _run_later(use, whole_number(number, "the number after /later run", "/later run 2"))
        case _:
            send(use, QueuedInputPriority.LATER)


def _run_later(use: Use, most: int | None) -> None:
    items = [item for item in _waiting(use) if item.priority is QueuedInputPriority.LATER]
    chosen = items[:most]
    if not chosen:
        raise CommandError("No LATER input waits; /later TEXT adds one")
    for item in chosen:
        use.engine.queue.release(item.uuid)
    when = " after what runs now" if use.controller.busy else ""
    use.say(f"{len(chosen)} of {len(items)} LATER inputs go{when}, each as a turn of its own.")
    use.controller.run_later(len(chosen))


def check_text(command: str, text: str) -> str:
    """Why a text cannot be sent to the model; the line then stays in the input."""
    if not text:
        return f"/{command} needs the text to send (example: /{command} look at the tests too)"
    split = split_command(text)
    if split is not None:
        return (
            f"/{command} sends text to the model, and /{split[0]} looks like a command: enter it "
            "by itself, or put a word before it"
        )
    if shell_command(text):
        return f"/{command} sends text to the model: enter the ! line by itself"
    return ""


QUEUE = Command(
    "queue",
    "see, remove or release what waits",
    "[rm N | clear | release]",
    now=queue,
    forms=(
        Form("/queue", "see what waits: number, tier, when it is delivered, age and text"),
        Form("/queue rm N", "remove number N of that list"),
        Form("/queue clear", "remove all of it (so does /queue rm all)"),
        Form("/queue release", "let go what was held after an interrupt or a failed turn"),
    ),
)
NOW = Command(
    "now",
    "send text that redirects at once",
    "TEXT",
    now=partial(send, priority=QueuedInputPriority.NOW),
    check=partial(check_text, "now"),
    echo=False,
)
NEXT = Command(
    "next",
    "send text for the next step",
    "TEXT",
    now=partial(send, priority=QueuedInputPriority.NEXT),
    check=partial(check_text, "next"),
    echo=False,
)
LATER = Command(
    "later",
    "send text for after this turn",
    "TEXT | run [N]",
    now=later,
    check=partial(check_text, "later"),
    echo=False,
    forms=(
        Form("/later TEXT", "send a text after this turn"),
        Form("/later run", 'let all LATER inputs go, where queue.later = "manual" keeps them'),
        Form("/later run N", "let the first N of them go"),
    ),
)
