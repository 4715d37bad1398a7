"""A loopback web site whose pages come when the test lets them; it counts who waits at once."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.messages_script import DEADLINE, Gate


class GatedSite:
    """Pages ``/0``, ``/1`` and so on. Page N answers ``this is page N`` once its gate is open."""

    def __init__(self, pages: int) -> None:
        self.gates = [Gate(f"the opening of page {number}") for number in range(pages)]
        self.most_at_once = 0
        """How many requests have been waiting at the same time."""
        self.at_once = 0
        self.asked_for: list[int] = []
        """The pages in the order in which requests for them came."""
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def host(self) -> str:
        """With the port, as ``allow_hosts`` wants it."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def url(self, number: int) -> str:
        return f"http://{self.host}/{number}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.open_all()
        self._server.shutdown()
        self._thread.join(DEADLINE)
        self._server.server_close()

    def open_all(self) -> None:
        for gate in self.gates:
            gate.open()

    def wait_for_arrivals(self, count: int) -> list[int]:
        """Wait until so many pages have been asked for; which.

        Raises:
            AssertionError: they were not in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.asked_for) >= count, DEADLINE):
                raise AssertionError(f"{len(self.asked_for)} of {count} pages were asked for")
            return list(self.asked_for)

    def serve(self, number: int) -> str | None:
        """The text of a page when its gate is open; None where there is none."""
        if not 0 <= number < len(self.gates):
            return None
        with self._changed:
            self.asked_for.append(number)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self._changed.notify_all()
        try:
            self.gates[number].wait()
        finally:
            with self._changed:
                self.at_once -= 1
        return f"this is page {number}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the game."""


def _handler_of(site: GatedSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = site.serve(int(self.path.strip("/")))
            body = (text or "there is no such page").encode()
            self.send_response(404 if text is None else 200)
            self.send_header("content-type", "text/plain; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the test's output is not the place."""

    return Handler


@contextmanager
def gated_site(pages: int) -> Generator[GatedSite]:
    site = GatedSite(pages)
    site.start()
    try:
        yield site
    finally:
        site.stop()
