"""The way out to the web, and the only module that knows httpx. Import it lazily: 0.1 s.

A name is resolved once per connection, every address is checked, and the connection goes to an
address that was checked (S1.57). The URL is never rewritten, so the Host header, SNI and the
certificate check keep the name. A proxy resolves the name itself: what goes through one is checked
as far as this machine can look it up, and no further.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

import httpcore
import httpx

from midturn_core.version import VERSION
from midturn_tools._body_decoder import ACCEPTED, BodyDecoder
from midturn_tools._resolver import Resolve, resolve
from midturn_tools._retry_after import retry_after_seconds
from midturn_tools._web_address import (
    AddressRefusedError,
    WebAddress,
    join_web_address,
    literal_address,
)
from midturn_tools._web_page import Answer, FetchError, Page, RedirectElsewhere
from midturn_tools._web_proxy import Proxies, WebProxy, no_proxies
from midturn_tools._web_text import is_binary_type
from midturn_tools.url_guard import SsrfGuard

MAX_BODY = 5_000_000
"""Bytes of one page after decompression; also the most that is received."""
MAX_REDIRECTS = 5
CONNECT_SECONDS = 5.0
"""For one address of a host; then its next one is tried."""
LOOK_UP_SECONDS = 2.0
"""For the look-up of a name that a proxy is asked for; behind many of them there is none."""
_HEADERS = {
    "user-agent": f"Midturn/{VERSION}",
    "accept": "text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.8",
    "accept-encoding": ACCEPTED,
}
_SHORT_BODY = 64_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def system_trust() -> ssl.SSLContext:
    """The certificate authorities of httpx and those of this machine (SSL_CERT_FILE included)."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _sockets() -> httpcore.AsyncNetworkBackend:
    # httpcore declares a stand-in of another type for machines without anyio, which httpx needs.
    return cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())


@dataclass(frozen=True, slots=True)
class Network:
    """How names become addresses and addresses become connections."""

    resolve: Resolve = resolve
    backend: httpcore.AsyncNetworkBackend = field(default_factory=_sockets)
    trust: ssl.SSLContext = field(default_factory=system_trust)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to nothing but addresses that the guard has just checked."""

    def __init__(self, guard: SsrfGuard, network: Network) -> None:
        self._guard = guard
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """
        Raises:
            AddressRefusedError: an address of the host leads inside.
            FetchError: the host has no address.
            httpcore.ConnectError, httpcore.ConnectTimeout: no address could be reached.
        """
        failure: Exception = FetchError(f"The host name {host} has no address.")
        for address in await self._checked(host, port):
            try:
                return await self._network.backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise AddressRefusedError("sockets of this machine are not fetched")

    async def sleep(self, seconds: float) -> None:
        await self._network.backend.sleep(seconds)

    async def _checked(self, host: str, port: int) -> tuple[str, ...]:
        is_name = literal_address(host) is None
        addresses = await self._network.resolve(host, port) if is_name else (host,)
        self._guard.check_resolved(host, port, addresses)
        return addresses


class CheckedTransport(httpx.AsyncHTTPTransport):
    """httpx over a ``CheckedBackend``."""

    def __init__(self, guard: SsrfGuard, network: Network) -> None:
        super().__init__(verify=network.trust, trust_env=False)
        # httpx has no parameter for the backend. A test fails when this attribute goes away.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=network.trust, network_backend=CheckedBackend(guard, network)
        )


class _Clients(contextlib.AsyncExitStack):
    """The clients of one fetch: one that goes straight to the page, one for each proxy."""

    def __init__(self, guard: SsrfGuard, network: Network) -> None:
        super().__init__()
        self._guard = guard
        self._network = network
        self._open: dict[WebProxy | None, httpx.AsyncClient] = {}

    async def through(self, proxy: WebProxy | None) -> httpx.AsyncClient:
        if proxy not in self._open:
            client = httpx.AsyncClient(
                transport=self._transport(proxy),
                trust_env=False,
                follow_redirects=False,
                headers=_HEADERS,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            )
            self._open[proxy] = await self.enter_async_context(client)
        return self._open[proxy]

    def _transport(self, proxy: WebProxy | None) -> httpx.AsyncHTTPTransport:
        if proxy is None:
            return CheckedTransport(self._guard, self._network)
        trust = self._network.trust
        # httpcore takes a context for proxies that are reached with TLS only.
        own_trust = trust if proxy.url.lower().startswith("https:") else None
        by_proxy = httpx.Proxy(proxy.url, ssl_context=own_trust)
        return httpx.AsyncHTTPTransport(verify=trust, trust_env=False, proxy=by_proxy)


class HttpFetcher:
    """Fetches pages. Safe to share: every fetch has a client, cookies and connections of its own,
    so that nothing stays open after it and no two of them meet.
    """

    def __init__(
        self, guard: SsrfGuard, network: Network | None = None, proxies: Proxies = no_proxies
    ) -> None:
        self._guard = guard
        self._network = network or Network()
        self._proxies = proxies

    async def fetch(self, address: WebAddress) -> Answer:
        """GET a page. How long that may take is the caller's affair: cancelling it ends it.

        Raises:
            AddressRefusedError: the guard refused the address or the one of a redirect.
            FetchError: there was no usable answer.
        """
        self._guard.check(address)
        async with _Clients(self._guard, self._network) as clients:
            for _ in range(MAX_REDIRECTS + 1):
                step = await self._hop(clients, address)
                if not isinstance(step, WebAddress):
                    return step
                if step.host != address.host:
                    return RedirectElsewhere(address.url, step.url, step.host)
                address = step
        raise FetchError(f"{address.host} redirects more than {MAX_REDIRECTS} times.")

    async def _hop(self, clients: _Clients, address: WebAddress) -> Page | WebAddress:
        proxy = self._proxies(address)
        if proxy is not None:
            await self._check_name(address)
        try:
            return await self._step(await clients.through(proxy), address)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FetchError(_sentence(error, address, proxy)) from error

    async def _check_name(self, address: WebAddress) -> None:
        """Behind a proxy: a name that leads inside by this machine's own look-up is refused."""
        if literal_address(address.host) is not None:
            return
        with contextlib.suppress(FetchError, TimeoutError):
            async with asyncio.timeout(LOOK_UP_SECONDS):
                addresses = await self._network.resolve(address.host, address.port)
            self._guard.check_resolved(address.host, address.port, addresses)

    async def _step(self, client: httpx.AsyncClient, address: WebAddress) -> Page | WebAddress:
        async with client.stream("GET", _one_reading(address)) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                hop = self._next_hop(address, response.headers["location"])
                await _keep_connection(response)
                return hop
            return await _read(response, address)

    def _next_hop(self, address: WebAddress, location: str) -> WebAddress:
        try:
            hop = join_web_address(address, location)
            self._guard.check(hop)
        except AddressRefusedError as error:
            message = f"{address.url} redirects to an address that is not followed: {error}"
            raise AddressRefusedError(message) from None
        if address.scheme == "https" and hop.scheme == "http":
            raise AddressRefusedError(
                f"{address.url} redirects from https down to {hop.url}, which is not followed"
            )
        return hop


def _one_reading(address: WebAddress) -> httpx.URL:
    """httpx's reading of an address, which must name the same host and port as ours."""
    url = httpx.URL(address.url)
    port = url.port or (443 if url.scheme == "https" else 80)
    if (url.scheme, url.raw_host.decode("ascii"), port) != (
        address.scheme,
        address.host,
        address.port,
    ):
        raise AddressRefusedError(f"{address.url} can be read in two ways")
    return url


async def _keep_connection(response: httpx.Response) -> None:
    """Read a short body to its end, so that the next hop needs no new connection."""
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) <= _SHORT_BODY:
        async for _ in response.aiter_raw():
            pass


async def _read(response: httpx.Response, address: WebAddress) -> Page:
    content_type = response.headers.get("content-type", "")
    declared = response.headers.get("content-length", "")
    page = Page(
        url=address.url,
        status=response.status_code,
        reason=response.reason_phrase,
        content_type=content_type,
        body=b"",
        size=int(declared) if declared.isdecimal() else 0,
        may_be_kept="no-store" not in response.headers.get("cache-control", "").lower(),
        retry_after=retry_after_seconds(
            response.headers.get("retry-after", ""),
            response.headers.get("date", ""),
            datetime.now(UTC),
        ),
    )
    if page.size and is_binary_type(page.media_type):
        return page
    return await _read_body(response, page)


async def _read_body(response: httpx.Response, page: Page) -> Page:
    decoder = BodyDecoder(response.headers.get("content-encoding", ""))
    body = bytearray()
    received = 0
    async for data in response.aiter_raw():
        received += len(data)
        body += decoder.feed(data, MAX_BODY + 1 - len(body))
        if max(len(body), received) > MAX_BODY:
            break
    cut = max(len(body), received) > MAX_BODY or not decoder.is_complete
    kept = bytes(body[:MAX_BODY])
    return replace(page, body=kept, size=len(kept), cut=cut)


def _sentence(error: Exception, address: WebAddress, proxy: WebProxy | None) -> str:
    """What went wrong, for someone who does not know our libraries."""
    site = f"{address.host}:{address.port}"
    where = site if proxy is None else f"The proxy {proxy.shown}"
    if isinstance(error, httpx.ConnectTimeout):
        return f"{where} did not answer within {CONNECT_SECONDS:g} s."
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"The certificate of {site} is not valid: {cause.verify_message}."
        if isinstance(cause, ssl.SSLError):
            return f"No TLS connection to {site}: {cause.reason or 'it speaks something else'}."
        if isinstance(cause, ConnectionRefusedError):
            return f"{where} refused the connection; nothing listens there."
    match error:
        case httpx.ProxyError():
            return f"{where} did not lead to {site}: {error}."
        case httpx.ConnectError():
            return f"{where} could not be reached."
        case httpx.RemoteProtocolError():
            return f"{where} did not answer with a complete HTTP message: {error}."
        case httpx.InvalidURL():
            return f"{address.url} is not a valid address: {error}."
        case _:
            return f"The connection to {site} broke before the page was complete."


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
