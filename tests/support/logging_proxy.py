"""A small HTTP proxy on loopback that remembers what it was asked for, and leads there or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class LoggingProxy:
    """Leads every host to loopback: ``ports`` says to which port there, by the port asked for."""

    ports: Mapping[int, int] = field(default_factory=dict[int, int])
    refuses: bool = False
    asked: list[str] = field(default_factory=list[str])
    """``GET http://host/path`` and ``CONNECT host:port`` as they came."""
    credentials: list[str] = field(default_factory=list[str])
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._lead(reader, writer)
        writer.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, lines = await self._head(reader)
        if self.refuses:
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return
        host = target.removeprefix("http://").partition("/")[0]
        port = int(host.rpartition(":")[2]) if ":" in host else 80
        there = await asyncio.open_connection("127.0.0.1", self.ports.get(port, port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
            return
        answers = asyncio.ensure_future(_copy(there[0], writer))
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                path = target.removeprefix(f"http://{host}") or "/"
                there[1].write("\r\n".join([f"{method} {path} HTTP/1.1", *lines]).encode("latin-1"))
                there[1].write(await reader.readexactly(_length(lines)))
                method, target, lines = await self._head(reader)
        there[1].close()
        await answers

    async def _head(self, reader: asyncio.StreamReader) -> tuple[str, str, list[str]]:
        """Method, target and header lines of the next request."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        self.asked.append(f"{method} {target}")
        self.credentials += [line for line in lines if line.lower().startswith("proxy-auth")]
        return method, target, lines


def _length(lines: list[str]) -> int:
    headers = (line.lower().partition(":") for line in lines)
    return next((int(value) for name, _, value in headers if name == "content-length"), 0)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()


@asynccontextmanager
async def proxying(
    ports: Mapping[int, int] | None = None, *, refuses: bool = False
) -> AsyncGenerator[LoggingProxy]:
    proxy = LoggingProxy(ports or {}, refuses)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()
