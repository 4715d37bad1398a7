"""/expand: a tool result whole, of which the screen has shown the summary or the end."""

from __future__ import annotations

from midturn_cli.commands.arguments import nth_newest
from midturn_cli.commands.command import Command, Form, Use
from midturn_cli.ui_events import ResultExpanded


def expand(use: Use) -> None:
    kept = use.engine.finished.newest_first
    number, chosen = nth_newest(use, "/expand", "result", kept)
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
