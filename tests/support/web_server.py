"""A small web server on loopback that remembers who came, and stand-ins for DNS and the network."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import httpcore

from midturn_core.config import WebConfig
from midturn_tools._web_page import FetchError
from midturn_tools.http import HttpFetcher, Network
from midturn_tools.url_guard import SsrfGuard, SsrfGuardConfig
from midturn_tools.web_fetch import WebFetchTool
from tests.support.services import require


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    sni: str | None


Handler: TypeAlias = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebServer:
    """What it answers is set with ``pages`` (whole answers by path) or ``handler``."""

    pages: dict[str, bytes] = field(default_factory=dict[str, bytes])
    handler: Handler | None = None
    requests: list[Seen] = field(default_factory=list[Seen])
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has come in."""
    port: int = 0
    server_names: list[str | None] = field(default_factory=list[str | None])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                while True:
                    await self._answer(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            self.gone.set()
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {key.lower(): value for key, _, value in (x.partition(": ") for x in lines if x)}
        sni = self.server_names[-1] if self.server_names else None
        seen = Seen(first.split(" ")[1], headers, sni)
        self.requests.append(seen)
        self.arrived.set()
        if self.handler is not None:
            await self.handler(seen, writer)
        else:
            writer.write(self.pages.get(seen.path, answer(b"no such page", status=404)))
        await writer.drain()


def answer(
    body: bytes, content_type: str = "text/plain; charset=utf-8", status: int = 200, **more: str
) -> bytes:
    """A whole answer; ``more`` are further headers, written with underscores."""
    headers = {
        "content-length": str(len(body)),
        **({"content-type": content_type} if content_type else {}),
    }
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Reason\r\n{lines}\r\n".encode("latin-1") + body


def redirect(location: str, status: int = 302) -> bytes:
    return answer(b"", status=status, location=location)


@asynccontextmanager
async def serving(
    pages: Mapping[str, bytes] | None = None,
    handler: Handler | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[WebServer]:
    site = WebServer(dict(pages or {}), handler)
    if tls is not None:

        def note(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
            site.server_names.append(name)

        tls.sni_callback = note
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()


@dataclass
class Names:
    """A resolver that answers from a script: per name a list of answers, the last one repeats."""

    answers: Mapping[str, Sequence[Sequence[str]]]
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        times = self.asked.count(host)
        self.asked.append(host)
        if host not in self.answers:
            raise FetchError(f"The host name {host} could not be resolved.")
        script = self.answers[host]
        return tuple(script[min(times, len(script) - 1)])


@dataclass
class Detour(httpcore.AsyncNetworkBackend):
    """Notes where a connection was meant to go, and leads it to a loopback server instead."""

    ports: Mapping[int, int]
    """From the port that was meant to the one of a loopback server."""
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    dead: frozenset[str] = frozenset()
    """Addresses that refuse the connection."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.dialled.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("refused")
        backend = Network().backend
        return await backend.connect_tcp(
            "127.0.0.1", self.ports[port], timeout, local_address, socket_options
        )


def tool_on(network: Network, config: WebConfig | None = None) -> WebFetchTool:
    """A WebFetch tool over a network of stand-ins."""
    config = config or WebConfig()
    guard = SsrfGuard(SsrfGuardConfig.of(config))
    return WebFetchTool(config, HttpFetcher(guard, network).fetch)


@dataclass(frozen=True)
class Certificate:
    """A throw-away certificate, and who trusts it."""

    file: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


def make_certificate(folder: Path, names: Sequence[str]) -> Certificate:
    """A certificate for ``names`` (``DNS:host`` or ``IP:address``), made by openssl."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    words = [
        *(require("openssl"), "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
        *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=midturn test"),
        *("-addext", f"subjectAltName={','.join(names)}"),
        *("-keyout", str(made.key), "-out", str(made.file)),
    ]
    subprocess.run(words, check=True, capture_output=True)
    return made
