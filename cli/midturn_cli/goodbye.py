"""What is said of inputs that were not sent when a session ends."""

from __future__ import annotations

from collections.abc import Sequence

from midturn_cli.render.clean import clean


def what_is_kept(undelivered: int, lost: Sequence[str]) -> list[str]:
    """What becomes of inputs that were not sent; those that no store has are written whole: they
    are nowhere else, and have to be taken from here.
    """
    if not lost:
        return ["They are kept, and offered when you go on with the session."]
    kept = undelivered - len(lost)
    them = "1 of them is" if kept == 1 else f"{kept} of them are"
    some = f"{them} kept, and offered when you go on with the session. " if kept else ""
    return [f"{some}Not stored, so here as they were typed:", *map(clean, lost)]
