"""/queue, and /now, /next and /later: what waits, and when what is typed is delivered (D1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from midturn_cli.commands.arguments import age, due_in, unknown_word, whole_number
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.queue_changes import (
    change_tier,
    clear,
    discard,
    edit,
    hold,
    move,
    release,
    remove,
    restore,
    waiting,
    with_note,
)
from midturn_cli.commands.queue_log import show_log
from midturn_cli.commands.registry import split_command
from midturn_cli.delivery_words import BEING_EDITED
from midturn_cli.shell_line import shell_command
from midturn_core.config import QueueConfig
from midturn_core.queue.barriers import behind_command
from midturn_core.queue.types import QueuedInput, QueuedInputPriority

FOOTER = "/queue edit N changes one, rm N removes it, mv N M and now|next|later N move it"
BEHIND_COMMAND = "after the command before it"
WORDS = (
    "nothing, edit N, rm N, mv N M, now N, next N, later N, hold [N], release [N], clear",
    "log, restore [N], discard [N]",
)
_TWO_NUMBERS = "/queue mv needs two numbers of the list (example: /queue mv 3 1)"


def queue(use: Use) -> None:
    match use.words:
        case []:
            _show(use)
        case ["log"]:
            show_log(use)
        case ["rm", "all"] | ["clear"]:
            clear(use)
        case ["edit", number, *_]:
            edit(use, number)
        case ["mv", number, target]:
            move(use, number, target)
        case ["mv", *_]:
            raise CommandError(_TWO_NUMBERS)
        case [word, *numbers] if word in _NEEDS_NUMBER:
            _NEEDS_NUMBER[word](use, _one_number(word, numbers))
        case [word, *numbers] if word in _TAKES_NUMBER:
            _TAKES_NUMBER[word](use, _one_number(word, numbers) if numbers else "")
        case [word, *_]:
            raise _not_understood(word)
        case _:
            pass


_NEEDS_NUMBER: dict[str, Callable[[Use, str], None]] = {
    "rm": remove,
    "edit": edit,
    "now": lambda use, number: change_tier(use, "now", number),
    "next": lambda use, number: change_tier(use, "next", number),
    "later": lambda use, number: change_tier(use, "later", number),
}
_TAKES_NUMBER: dict[str, Callable[[Use, str], None]] = {
    "hold": hold,
    "release": release,
    "restore": restore,
    "discard": discard,
}


def _not_understood(word: str) -> CommandError:
    if word in ("log", "clear"):
        return CommandError(f"/queue {word} takes nothing after it")
    return unknown_word("/queue", word, WORDS, "/queue rm 2")


def _one_number(word: str, numbers: Sequence[str]) -> str:
    if len(numbers) != 1:
        or_all = ", or all" if word == "rm" else ""
        raise CommandError(
            f"/queue {word} needs one number of the list{or_all} (example: /queue {word} 2)"
        )
    return numbers[0]


def _show(use: Use) -> None:
    items = waiting(use)
    use.shown.queue = tuple(item.uuid for item in items)
    if items:
        _show_waiting(use, items)
    else:
        use.say("Nothing waits.")
    _show_expired(use)


def _show_waiting(use: Use, items: Sequence[QueuedInput]) -> None:
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
            with_note(item, unstored, stored.fails),
        )
        for number, item in enumerate(items, start=1)
    ]
    header = ("", "tier", "delivered", "age", "text")
    use.table("Waiting", header, rows, FOOTER)


def _show_expired(use: Use) -> None:
    items = use.engine.session_queue.expired.items()
    use.shown.expired = tuple(item.uuid for item in items)
    if items:
        rows = [
            (str(number), item.priority.name, age(item.enqueued_at), with_note(item))
            for number, item in enumerate(items, start=1)
        ]
        footer = "/queue restore N lets one wait again, /queue discard forgets them"
        use.table("Expired, not sent", ("", "tier", "age", "text"), rows, footer)


def delivery(item: QueuedInput, settings: QueueConfig, *, busy: bool) -> str:
    """When an input will be delivered, in words (D1, D5)."""
    if item.scheduled:
        return due_in(item)
    if item.being_edited:
        return BEING_EDITED
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
    items = [
        item
        for item in waiting(use)
        if item.priority is QueuedInputPriority.LATER and not item.scheduled
    ]
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
    "see and change what waits",
    "[edit N | rm N | mv N M | now N | next N | later N | hold [N] | release [N] | clear | log]",
    now=queue,
    forms=(
        Form("/queue", "see what waits: number, tier, when it is delivered, age and text"),
        Form("/queue edit N", "change number N of that list in the input line"),
        Form("/queue edit N TEXT", "give it this text"),
        Form("/queue rm N", "remove it"),
        Form("/queue mv N M", "put it in the place of number M of the same tier"),
        Form("/queue now N", "make it NOW; so do next and later"),
        Form("/queue hold", "keep everything back; with N only that one"),
        Form("/queue release", "let go what is held; with N only that one"),
        Form("/queue clear", "remove all of it (so does /queue rm all)"),
        Form("/queue log", "see what became of all that waited in this session"),
        Form("/queue restore", "let what has expired wait again; with N only that one"),
        Form("/queue discard", "forget what has expired; with N only that one"),
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
