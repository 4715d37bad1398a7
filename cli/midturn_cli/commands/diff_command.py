"""/diff: what has changed in the folder since the last commit."""

from __future__ import annotations

from midturn_cli.commands.arguments import no_arguments
from midturn_cli.commands.command import Command, CommandError, Use
from midturn_cli.fence import fenced
from midturn_core.interrupt import Signal
from midturn_tools.folder_changes import FolderChanges, NoRepositoryError, find_folder_changes

MAX_LINES = 400
MAX_NAMES = 50


async def diff(use: Use) -> None:
    no_arguments(use, "/diff")
    try:
        changes = await find_folder_changes(use.engine.workspace, Signal())
    except NoRepositoryError as error:
        raise CommandError(f"/diff needs git: {error}") from error
    if not changes.diff and not changes.untracked:
        use.say("Nothing has changed since the last commit.")
        return
    if changes.diff:
        use.say(_as_markdown(changes), markdown=True)
    if changes.untracked:
        names = changes.untracked[:MAX_NAMES]
        more = len(changes.untracked) - len(names)
        footer = f"{more} more" if more else ""
        use.table("New files, not yet in git", ("path",), [(name,) for name in names], footer)


def _as_markdown(changes: FolderChanges) -> str:
    lines = changes.diff.rstrip("\n").split("\n")
    shown = lines[:MAX_LINES]
    left_out = len(lines) - len(shown)
    note = f"\n\n{left_out} more lines: `!git diff` shows them." if left_out else ""
    return fenced("\n".join(shown), "diff") + note


DIFF = Command("diff", "see what has changed in the folder", beside=diff)
