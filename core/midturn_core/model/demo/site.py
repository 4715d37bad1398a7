"""A few pages on loopback for the demo to fetch: nothing leaves the machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket

SLOW_SECONDS = 1.0
PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Demo page {number}</title>
<style>body {{ color: #333 }}</style><script>console.log("not for you")</script></head><body>
<nav><a href="/page/1">1</a> <a href="/page/2">2</a></nav><main><h1>Demo page {number}</h1>
<p>Midturn's demo serves this page to itself on loopback.</p>
<table><tr><th>key</th><th>meaning while a turn runs</th></tr>
<tr><td>Enter</td><td>NEXT: steer at the next step</td></tr>
<tr><td>Tab</td><td>choose NOW or LATER for the draft</td></tr></table>
</main><footer>the end</footer></body></html>
"""


class DemoSite:
    """Binds a free port at once and serves from the first ``start`` on."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self._server: asyncio.Server | None = None

    @property
    def host(self) -> str:
        """``127.0.0.1:PORT``, the entry for ``allow_hosts``."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        self._socket.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            request = await reader.readuntil(b"\r\n\r\n")
            path = request.split(b" ", 2)[1].decode("ascii", errors="replace")
            if path.startswith("/slow/"):
                await asyncio.sleep(SLOW_SECONDS)
            body = PAGE.format(number=path.rsplit("/", 1)[-1][:20] or "0").encode()
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                # Asked for again, a slow page is to be slow again.
                "Cache-Control: no-store\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
