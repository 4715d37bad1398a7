"""The presenter behind isolation walls: what fails in it is one notice, and the screen goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from midturn_cli.terminal.notices import describe

if TYPE_CHECKING:
    from midturn_cli.ports import LiveRegion, Presenter
    from midturn_cli.ui_events import UiEvent


class WalledPresenter:
    """Never raises: ``tell`` is called with what failed, each time.

    All its ``except Exception`` are isolation walls: one event, block or region that cannot be
    shown must not end the session.
    """

    def __init__(self, presenter: Presenter, tell: Callable[[str], None]) -> None:
        self._presenter = presenter
        self._tell = tell
        self._plain: list[str] = []
        """Sentences for the user that the presenter could not take."""

    @property
    def has_committed(self) -> bool:
        try:
            return bool(self._plain) or self._presenter.has_committed
        except Exception as error:
            self._tell(f"The renderer failed ({describe(error)}).")
            return False

    @property
    def animated(self) -> bool:
        try:
            return self._presenter.animated
        except Exception as error:
            self._tell(f"The renderer failed ({describe(error)}).")
            return False

    def apply(self, event: UiEvent) -> None:
        try:
            self._presenter.apply(event)
        except Exception as error:
            self._plain.extend(_sentence_of(event))
            self._tell(f"An event could not be shown ({describe(error)}).")

    def drop_backlog(self, columns: int, rows: int) -> None:
        try:
            self._presenter.drop_backlog(columns, rows)
        except Exception as error:
            self._tell(f"A block could not be drawn ({describe(error)}).")

    def look(self, look: Callable[[Presenter], LiveRegion]) -> LiveRegion | None:
        """The live region that ``look`` asks for; None when it cannot be drawn."""
        try:
            return look(self._presenter)
        except Exception as error:
            self._tell(f"The live region could not be drawn ({describe(error)}).")
            return None

    def take_committed(self, columns: int, budget: int | None) -> str:
        """Whole lines for the transcript; empty when there are none, or none could be drawn."""
        plain = "".join(f"{line}\n" for line in self._plain)
        self._plain.clear()
        try:
            return plain + self._presenter.take_committed(columns, budget)
        except Exception as error:
            self._tell(f"A block could not be drawn ({describe(error)}).")
            return plain


def _sentence_of(event: UiEvent) -> list[str]:
    """What a notice that cannot be rendered says, fit to be written as it is."""
    # Imported here because this module is loaded long before the first event.
    from midturn_core.events import Notice

    if not isinstance(event, Notice):
        return []
    return ["".join(c if c.isprintable() else " " for c in event.text)]
