"""/clear, /resume and /exit: which conversation is open."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

from midturn_cli.commands.arguments import MAX_DIGITS, age, quoted, sentence, takes_nothing
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_core.errors import SessionError
from midturn_core.session.store import SessionSummary

LISTED = 20
LONGEST_ID = 100


async def clear(use: Use) -> None:
    if not len(use.engine.conversation):
        raise CommandError("There is nothing to clear: the history is empty")
    kept_id = use.engine.clear_history()
    waiting = use.engine.queue.size(use.engine.context_id)
    kept = f" What waits in the queue stays ({waiting})." if waiting else ""
    use.say(
        "The conversation starts anew; the model knows nothing of what was before."
        f"{kept} The old one is kept, this opens it:\n/resume {kept_id}"
    )


async def list_sessions(use: Use) -> None:
    """Of this folder, the newest first, without the one that is open; damaged ones are marked."""
    summaries = await _others(use)
    use.shown.sessions = tuple(summary.id for summary in summaries)
    if not summaries:
        use.say("There is no other session of this folder.")
        return
    rows = [
        (str(number), _age(summary), summary.id, _first_prompt(summary))
        for number, summary in enumerate(summaries[:LISTED], start=1)
    ]
    more = len(summaries) - len(rows)
    footer = "/resume N opens one" + (f"; {more} older ones by their ID" if more else "")
    use.table("Sessions of this folder", ("", "age", "ID", "first prompt"), rows, footer)


async def open_session(use: Use) -> None:
    chosen = await _chosen(use)
    if chosen.id == use.engine.session.id:
        raise CommandError("That is the session that is open now")
    # Looked at while this session is still open: if that one cannot be opened, it stays.
    await asyncio.to_thread(use.engine.store.check, chosen)
    # Nothing more may start here; what waits is reported when this session closes.
    use.engine.queue.hold(use.engine.context_id)
    use.host.reopen(chosen.id)


async def _chosen(use: Use) -> SessionSummary:
    """What a number of the list, an id or the beginning of an id stands for."""
    word = use.arguments
    if word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS:
        ids = use.shown.sessions or tuple(summary.id for summary in await _others(use))
        number = int(word)
        if not 1 <= number <= len(ids):
            ends = f"the list ends at {len(ids)}; /resume shows them"
            why = ends if ids else "there is no other session of this folder"
            raise CommandError(f"There is no session number {number}: {why}")
        word = ids[number - 1]
    if len(word) > LONGEST_ID:
        raise CommandError(f"There is no session {quoted(word)}; /resume shows them")
    try:
        summary = await asyncio.to_thread(use.engine.store.find, word)
    except SessionError as error:
        raise CommandError(sentence(str(error))) from error
    if summary.damaged:
        raise CommandError(f"The session {summary.id} cannot be read; its file is {summary.path}")
    return summary


async def _others(use: Use) -> list[SessionSummary]:
    engine = use.engine
    summaries = await asyncio.to_thread(engine.store.list, engine.workspace)
    return [s for s in summaries if s.id != engine.session.id]


def _age(summary: SessionSummary) -> str:
    return age(datetime.fromtimestamp(summary.modified, UTC))


def _first_prompt(summary: SessionSummary) -> str:
    if summary.damaged:
        return "(damaged: cannot be read)"
    lost = "" if summary.workspace else "(damaged: its folder is not known) "
    text = lost + " ".join(summary.first_prompt.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def leave(use: Use) -> None:
    use.host.request_exit()


CLEAR = Command(
    "clear",
    "start a new conversation",
    own_turn=clear,
    check=partial(takes_nothing, "/clear"),
)
RESUME = Command(
    "resume",
    "see or open earlier sessions",
    "[N | ID]",
    beside=list_sessions,
    own_turn=open_session,
    forms=(
        Form("/resume", "see the earlier sessions of this folder, the newest first"),
        Form("/resume N", "open number N of that list"),
        Form("/resume ID", "open the session with this ID, or this beginning of one"),
    ),
)
EXIT = Command(
    "exit",
    "leave Midturn",
    now=leave,
    aliases=("quit",),
    check=partial(takes_nothing, "/exit"),
)
