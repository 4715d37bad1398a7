"""What a fetch brings back, before it is turned into text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


class FetchError(Exception):
    """A page could not be fetched. ``str(error)`` is one sentence."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer of a server."""

    url: str
    """Where it came from, after redirects."""
    status: int
    reason: str
    content_type: str
    """The header as sent; empty when there was none."""
    body: bytes
    size: int
    """Bytes of the whole body as far as known; more than ``len(body)`` when it was not read."""
    cut: bool = False
    """The body goes on beyond what was read."""
    may_be_kept: bool = True
    retry_after: float | None = None
    """Seconds after which the server wants to be asked again; None: it did not say."""
    tries: int = 1
    """How often it was asked for; this is the last answer."""

    @property
    def media_type(self) -> str:
        # Sent twice, the header comes as "text/html, text/html".
        return self.content_type.partition(";")[0].partition(",")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class RedirectElsewhere:
    """The page is on another host, for which permission has to be asked first."""

    url: str
    target: str
    target_host: str


Answer: TypeAlias = Page | RedirectElsewhere
