"""/expand: a tool result whole, of which the screen has shown the summary or the end."""

from __future__ import annotations

from midturn_cli.commands.arguments import whole_number
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.ui_events import ResultExpanded


def expand(use: Use) -> None:
    number = 1
    if use.arguments:
        number = whole_number(use.arguments, "the number after /expand", "/expand 2")
    kept = use.engine.finished.newest_first
    if not kept:
        raise CommandError("There is nothing to expand: no tool has finished in this session yet")
    if number > len(kept):
        raise CommandError(
            f"There is no result number {number}: counted from the newest {len(kept)} are kept"
        )
    chosen = kept[number - 1]
    use.engine.emit(ResultExpanded(chosen.title, chosen.result, number))


EXPAND = Command(
    "expand",
    "see a tool result whole",
    "[N]",
    now=expand,
    forms=(
        Form("/expand", "see the newest result whole, a cut diff included"),
        Form("/expand N", "see the N-th newest result"),
    ),
)
