"""A TCP proxy that can lose the answer to a chosen request and break the connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from types import TracebackType


def _nothing() -> None:
    return None


class LossyProxy:
    """Passes everything on, until it is told to lose something."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._lock = threading.Lock()
        self._word = b""
        self._times = 0
        self._requests: list[bytes] = []
        self._then: Callable[[], None] = _nothing
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> LossyProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()

    def lose_answers_to(
        self, word: bytes, times: int = 1, then: Callable[[], None] = _nothing
    ) -> None:
        """The next requests that contain ``word`` are carried out; their answers never come.

        ``then`` runs before the client notices. A script that the server did not know was not
        carried out and does not count.
        """
        with self._lock:
            self._word, self._times, self._then = word, times, then

    def repeat(self, word: bytes) -> None:
        """Send the last request that contains ``word`` once more, as a slow network may."""
        request = next(each for each in reversed(self._requests) if word in each)
        with socket.create_connection(("127.0.0.1", self._target)) as late:
            late.sendall(request)
            late.recv(1 << 20)

    @property
    def still_to_lose(self) -> int:
        return self._times

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """One request, one answer: the clients of these tests never send two at once."""
        with _both_closed(client, server):
            while request := client.recv(1 << 20):
                self._requests.append(request)
                server.sendall(request)
                answer = server.recv(1 << 20)
                if not answer.startswith(b"-NOSCRIPT") and self._loses(request):
                    return
                client.sendall(answer)

    def _loses(self, request: bytes) -> bool:
        with self._lock:
            if self._times and self._word in request:
                self._times -= 1
                self._then()
                return True
            return False


@contextlib.contextmanager
def _both_closed(*sockets: socket.socket) -> Generator[None]:
    try:
        with contextlib.suppress(OSError):
            yield
    finally:
        for each in sockets:
            each.close()
