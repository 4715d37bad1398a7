"""How a session at the terminal behaves, and whom it tells."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from midturn_cli.terminal.notifier import NotifyOptions

if TYPE_CHECKING:
    from midturn_core.config import KeysConfig, QueueConfig


def _do_nothing() -> None:
    pass


def _ignore(_: str) -> None:
    pass


async def _wait_for_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class TerminalOptions:
    """How the terminal behaves."""

    workspace: Path
    key_map: KeysConfig
    queue: QueueConfig
    """What Enter means while busy, and when each tier is delivered."""
    history_path: Path | None = None
    """None keeps the input history in memory."""
    keys: Literal["emacs", "vi"] = "emacs"
    notify: NotifyOptions = NotifyOptions()
    title: bool = False
    """Show the state in the window's title."""
    stash: str = ""
    """A draft that an earlier session put aside."""
    after_first_paint: Callable[[], None] = _do_nothing
    """Called once, when the input line takes keys and the presenter exists."""
    draft_changed: Callable[[str], None] = _ignore
    """Given the text of the draft whenever it has changed."""
    before_last_paint: Callable[[], Awaitable[None]] = _wait_for_nothing
    """Awaited when the input line is gone; what it emits still becomes part of the transcript."""
    clock: Callable[[], float] = time.monotonic
