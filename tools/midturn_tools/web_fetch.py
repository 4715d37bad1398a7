"""WebFetch: reads one page of the web as text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from midturn_core.config import WebConfig
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject
from midturn_core.permission.access import HostAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._input import check_input, flag, integer, text
from midturn_tools._polite_fetch import Fetch, PoliteFetcher
from midturn_tools._web_address import (
    MAX_URL,
    AddressRefusedError,
    WebAddress,
    parse_web_address,
)
from midturn_tools._web_cache import KEEP_SECONDS, Found, WebCache
from midturn_tools._web_markdown import to_markdown
from midturn_tools._web_page import FetchError, Page, RedirectElsewhere
from midturn_tools._web_proxy import environment_proxies, no_proxies
from midturn_tools._web_text import describe_binary, read_text
from midturn_tools.url_guard import SsrfGuard, SsrfGuardConfig

MAX_CHARACTERS = 40_000
_LINE_SEARCH = 2_000
_ERROR_CHARACTERS = 2_000
_TIME_LIMIT_MARGIN = 5.0
"""The fetch ends itself, with a clear sentence; the dispatcher's limit stands behind that."""

_DESCRIPTION = f"""Fetches one page with GET and returns its text. HTML comes as Markdown without \
navigation, scripts and styles (with raw: as it was sent); other text (JSON, plain text, source \
code, ...) as it is; anything else (pictures, PDF, archives) as a short note of type and size. \
Scripts of a page are not run.

http stays http, https stays https. Redirects on the same host are followed, at most 5; one to \
another host is not: the result names the new address.
A result has at most {MAX_CHARACTERS:,} characters; when there are more, it names the offset at \
which they go on. At most 5 MB of a page are read.
Pages are kept for {KEEP_SECONDS / 60:g} minutes; fresh fetches anew.
Addresses of this machine and of private networks are refused unless the user's configuration \
allows the host, and so are ports other than 80, 443, 8080 and 8443. No credentials or cookies of \
the user are sent."""

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "url": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_URL,
            "description": "The whole address, with http:// or https://.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "The first character of the text to show; 0 when not given.",
        },
        "raw": {"type": "boolean", "description": "HTML source instead of Markdown."},
        "fresh": {"type": "boolean", "description": "Do not use a kept page."},
    },
    "required": ["url"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Request:
    address: WebAddress
    offset: int
    raw: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """The text of a page, and what the reader must know about it."""

    text: str
    notes: tuple[str, ...] = ()


class WebFetchTool:
    """Fetches pages for the model.

    What a user should know: permission is asked per host, with the whole address. Private and
    local addresses are refused (``[web] ssrf_guard``) unless ``[web] allow_hosts`` names the
    host: ``"name"`` opens it on the ports 80, 443, 8080 and 8443, ``"name:port"`` on exactly
    that port. A redirect to another host is not followed but handed to the model, whose next
    call asks for that host. HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY are heeded unless
    ``[web] proxy`` is "none"; a proxy resolves names itself, so the guard then checks addresses as
    written and names as far as this machine can look them up. Certificates are checked against the authorities of
    httpx and of the system (SSL_CERT_FILE adds to them). One fetch takes at most
    ``[web] timeout`` seconds, reads at most 5 MB, and shows 40,000 characters at a time; good
    answers are kept for 5 minutes, at most 32 MB together, for all contexts. Of one host at most
    ``[web] per_host`` pages are fetched at once; one that answers 429 or 503 is asked again when
    it wants to be, if the time limit allows that.

    Raises:
        ValueError: an entry of ``allow_hosts`` is no host.
    """

    name = "WebFetch"
    description = _DESCRIPTION
    input_schema = _SCHEMA

    def __init__(self, config: WebConfig, fetch: Fetch | None = None) -> None:
        """``fetch`` replaces the real network, for tests."""
        self._guard = SsrfGuard(SsrfGuardConfig.of(config))
        self._config = config
        self._fetch = fetch
        self._polite: PoliteFetcher | None = None
        self._polite_lock = threading.Lock()
        self._cache = WebCache()

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        # The S1.26 checklist:
        # (a) no side effects: a GET without credentials, which is idempotent by contract;
        # (b) shared mutable state: the cache with its fetches under way (locked, S1.55), the
        #     fetcher, made once under a lock, and its places per host, each on one loop; the rest
        #     is per call;
        # (c) COOPERATIVE, see below;
        # (d) hooks: their own duty, WebFetch adds nothing to what they see;
        # (e) no contention: calls for one address share one request, those for one host wait for
        #     a place, others do not meet.
        return ConcurrencyBehavior.CONCURRENT_SAFE

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.COOPERATIVE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return self._config.timeout + _TIME_LIMIT_MARGIN

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, _SCHEMA)
        url = text(tool_input, "url")
        try:
            # Refused here, before anyone is asked for a permission that would be of no use.
            self._guard.check(parse_web_address(url))
        except AddressRefusedError as error:
            raise InvalidInputError(f"url {_quoted(url)} cannot be fetched: {error}") from None

    def describe(self, tool_input: JsonObject) -> str:
        return text(tool_input, "url")

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[HostAccess]:
        address = parse_web_address(text(tool_input, "url"))
        return (HostAccess(address.url, address.host),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        request = _Request(
            address=parse_web_address(text(tool_input, "url")),
            offset=max(0, integer(tool_input, "offset", 0)),
            raw=flag(tool_input, "raw"),
            fresh=flag(tool_input, "fresh"),
        )
        loop = asyncio.get_running_loop()
        started = loop.time()
        work = asyncio.create_task(self._answer(request, context))
        stop = asyncio.create_task(context.signal.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            return _stopped(loop.time() - started, stop.result())
        finally:
            work.cancel()
            stop.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    async def _answer(self, request: _Request, context: ToolContext) -> ToolResult:
        polite = self._polite
        if polite is None:
            polite = await context.run_blocking(self._make_fetcher)
        try:
            found = await self._cache.get(
                request.address.url,
                partial(polite.fetch, request.address, context.progress),
                fresh=request.fresh,
            )
        except (AddressRefusedError, FetchError) as error:
            return ToolResult(error=str(error))
        return await context.run_blocking(partial(_result, request, found))

    def _make_fetcher(self) -> PoliteFetcher:
        from midturn_tools.http import HttpFetcher  # brings httpx: 0.1 s

        with self._polite_lock:
            if self._polite is None:
                by_environment = self._config.proxy == "environment"
                proxies = environment_proxies if by_environment else no_proxies
                fetch = self._fetch or HttpFetcher(self._guard, proxies=proxies).fetch
                self._polite = PoliteFetcher(fetch, self._config.timeout, self._config.per_host)
            return self._polite


def _stopped(seconds: float, reason: CancelReason) -> ToolResult:
    note = f"Stopped after {seconds:.1f} s: {reason.value}. Nothing was fetched."
    return ToolResult(note, summary="stopped", stopped=True)


def _quoted(url: str) -> str:
    return ascii(url if len(url) <= 200 else f"{url[:200]}...")


def _result(request: _Request, found: Found) -> ToolResult:
    answer = found.answer
    if isinstance(answer, RedirectElsewhere):
        output = (
            f"{answer.url} redirects to another host, which was not followed. "
            f"The page is at {answer.target}"
        )
        return ToolResult(output, summary=f"redirects to {answer.target_host}")
    if answer.status >= 400:
        return _error_result(answer)
    shown = _shown(answer, request.raw)
    if shown is None:
        note = f"[{answer.url} is no text: {describe_binary(answer)}. It is not shown.]"
        return ToolResult(note, summary=answer.media_type or "no text")
    return _window(request, found, answer, shown)


def _error_result(page: Page) -> ToolResult:
    status = f"{page.status} {page.reason}".strip()
    shown = _shown(page, raw=False)
    body = shown.text[:_ERROR_CHARACTERS].strip() if shown is not None else ""
    error = f"{page.url} answered {status}.{_asked_to_wait(page)}"
    error += f" Its text:\n{body}" if body else ""
    return ToolResult(error=error, summary=status)


def _asked_to_wait(page: Page) -> str:
    tried = f" It was asked {page.tries} times." if page.tries > 1 else ""
    if page.retry_after is None:
        return tried
    return f"{tried} It asks to wait {page.retry_after:g} s before the next try."


def _shown(page: Page, raw: bool) -> _Shown | None:
    """What there is to read; None for a page that is no text."""
    content = read_text(page)
    if content is None:
        return None
    if raw or not content.is_html:
        return _Shown(content.text, content.notes)
    markdown = to_markdown(content.text, page.url)
    title = f"Title: {markdown.title}\n\n" if markdown.title else ""
    plain = ("Its markup is too much for Markdown; these are its words.",)
    return _Shown(title + markdown.text, content.notes + (plain if markdown.is_plain else ()))


def _window(request: _Request, found: Found, page: Page, shown: _Shown) -> ToolResult:
    start, whole = request.offset, len(shown.text)
    end = _window_end(shown.text, start)
    notes = list(shown.notes)
    if whole == 0:
        notes.append("The page has no text. Scripts, which may build it, are not run.")
    elif start >= whole:
        notes.append(f"Offset {start} is past the end: the text has {whole:,} characters.")
    elif end < whole:
        notes.append(f"Characters {start:,}-{end:,} of {whole:,}. More follow at offset {end}.")
    elif start:
        notes.append(f"Characters {start:,}-{whole:,}, up to the end.")
    if page.cut:
        notes.append(
            f"The page is longer or broke off; only its first {page.size:,} bytes were read."
        )
    if page.status != 200:
        notes.append(f"It came with the status {page.status} {page.reason}".rstrip() + ".")
    if page.url != request.address.url:
        notes.append(f"The page was redirected to {page.url}.")
    if found.age >= 1:
        notes.append(f"Kept from a fetch {found.age:.0f} s ago; fresh fetches anew.")
    parts = [shown.text[start:end], "\n".join(f"[{note}]" for note in notes)]
    count = end - start if start < whole else 0
    summary = f"{count:,} characters" if count == whole else f"{count:,} of {whole:,} characters"
    return ToolResult("\n\n".join(part for part in parts if part), summary=summary)


def _window_end(whole: str, start: int) -> int:
    end = start + MAX_CHARACTERS
    if end >= len(whole):
        return len(whole)
    line_end = whole.rfind("\n", end - _LINE_SEARCH, end)
    return end if line_end < 0 else line_end + 1
