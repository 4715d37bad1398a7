"""/remind: an input that is queued at its time (S1.40)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from midturn_cli.commands.arguments import due_in, quoted, whole_number
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.queue_commands import check_text
from midturn_cli.render.clean import beginning
from midturn_core.queue.attachments import attachment_tags
from midturn_core.queue.rewake import MAX_SPAN, After, At, Due, Wakeup
from midturn_core.queue.types import QueuedInput

UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
SPAN = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?", re.ASCII)
CLOCK = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
EXAMPLES = "/remind 10m look at the tests, /remind 1h30m TEXT, /remind at 14:30 TEXT"


def remind(use: Use) -> None:
    match use.words:
        case []:
            _show(use)
        case ["rm", number]:
            _remove(use, number)
        case ["rm", *_]:
            raise CommandError("/remind rm needs one number of the list (example: /remind rm 2)")
        case _:
            _schedule(use)


def check(arguments: str) -> str:
    """Why a line cannot be taken; empty when it can. Numbers after ``rm`` are looked at later."""
    if arguments.split()[:1] in ([], ["rm"]):
        return ""
    try:
        _, text = split_time(arguments, datetime.now().astimezone())
    except CommandError as error:
        return str(error)
    return check_text("remind", text)


def split_time(arguments: str, now: datetime) -> tuple[Due, str]:
    """When, and the text after it. A time of day is the next one: today's or tomorrow's.

    Raises:
        CommandError: it begins with no time.
    """
    word, _, rest = arguments.partition(" ")
    if word == "at":
        word, _, rest = rest.strip().partition(" ")
        return At(_next_time_of_day(word, now)), rest.strip()
    return After(_span(word)), rest.strip()


def _span(word: str) -> timedelta:
    found = SPAN.fullmatch(word)
    parts = found.groups(default="0") if found else ()
    span = timedelta(
        **{unit: int(count) for unit, count in zip(UNITS.values(), parts, strict=bool(parts))}
    )
    if not timedelta(0) < span <= MAX_SPAN:
        raise CommandError(
            f"/remind needs a time within {MAX_SPAN.days} days, not {quoted(word)} (examples: {EXAMPLES})"
        )
    return span


def _next_time_of_day(word: str, now: datetime) -> datetime:
    found = CLOCK.fullmatch(word)
    hour, minute = (int(part) for part in found.groups()) if found else (24, 0)
    if hour > 23 or minute > 59:
        raise CommandError(
            f"/remind at needs a time from 00:00 to 23:59, not {quoted(word)} "
            "(example: /remind at 14:30 TEXT)"
        )
    # Naive and then local, so that a change to summer time before then is counted.
    today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    instant = today.astimezone()
    return instant if instant > now else (today + timedelta(days=1)).astimezone()


def _pending(use: Use) -> list[QueuedInput]:
    return use.engine.session_queue.rewake.pending(use.engine.context_id)


def _show(use: Use) -> None:
    items = _pending(use)
    use.shown.reminders = tuple(item.uuid for item in items)
    if not items:
        use.say(f"No reminder is set ({EXAMPLES})")
        return
    rows = [
        (str(number), due_in(item), beginning(item.input_text))
        for number, item in enumerate(items, start=1)
    ]
    use.table("Reminders", ("", "due", "text"), rows, "/remind rm N removes one")


def _schedule(use: Use) -> None:
    due, text = split_time(use.arguments, datetime.now().astimezone())
    tags = attachment_tags(use.attachments)
    item = use.engine.session_queue.rewake.schedule(
        Wakeup(text, use.engine.context_id, tags=tags), due
    )
    if item is not None:
        use.say(f"Queued {due_in(item)}: {beginning(text)}")


def _remove(use: Use, word: str) -> None:
    number = whole_number(word, "the number after /remind rm", "/remind rm 2")
    known = use.shown.reminders or tuple(item.uuid for item in _pending(use))
    if number > len(known):
        ends = f"the list ends at {len(known)}; /remind shows them"
        raise CommandError(f"There is no reminder {number}: {ends if known else 'none is set'}")
    removed = use.engine.session_queue.rewake.cancel(known[number - 1])
    if removed is None:
        raise CommandError(f"Reminder {number} of the list is not set any more; /remind shows them")
    use.say(f"Removed, never sent: {beginning(removed.input_text)}")


REMIND = Command(
    "remind",
    "queue text at a time to come",
    "[10m TEXT | at 14:30 TEXT | rm N]",
    now=remind,
    check=check,
    forms=(
        Form("/remind", "see the reminders that are set"),
        Form("/remind 1h30m TEXT", "queue a text as LATER after so long (d, h, m, s)"),
        Form("/remind at 14:30 TEXT", "queue it at that time of day"),
        Form("/remind rm N", "remove number N of the list"),
    ),
)
