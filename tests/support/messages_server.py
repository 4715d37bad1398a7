"""A loopback server that speaks the Messages API: scripted answers, strict rules, every fault.

    with MessagesServer(
        Reply(Says("I look. "), Calls("Read", {"file_path": "a.txt"})),
        Reply(Says("It says hello.")),
    ) as server:
        run_midturn(env=server.environment())
    assert server.requests[1].results[0]["content"] == "hello"

It runs in a thread of its own, so it serves tests, coroutines and child processes alike. Each valid
request takes the next answer of the script; a function among them makes its answer from the
request. A request that breaks a rule of the service gets the service's 400, takes nothing from the
script, and is listed in ``violations``; so is one that comes after the script's end.
"""

from __future__ import annotations

import asyncio
import threading

from tests.support.messages_connection import (
    ClientConnection,
    RecordedRequest,
    ScriptItem,
    ServerOptions,
    ServerState,
)
from tests.support.messages_script import DEADLINE, Gate

KEY = "test-key-0123456789"


class MessagesServer:
    """See the module. Use as a context manager."""

    def __init__(self, *script: ScriptItem, options: ServerOptions | None = None) -> None:
        self._options = options or ServerOptions()
        self._state = ServerState(list(script))
        self._stop = Gate("the stop of the server")
        self._ready = Gate("the start of the server")
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="messages-server", daemon=True)

    def __enter__(self) -> MessagesServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.open()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the server did not stop"

    @property
    def url(self) -> str:
        """The base URL for a client."""
        scheme = "https" if self._options.tls else "http"
        host = "localhost" if self._options.tls else "127.0.0.1"
        return f"{scheme}://{host}:{self._port}{self._options.prefix}"

    def environment(self) -> dict[str, str]:
        """The variables that lead a ``midturn`` process here."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self._options.key or KEY,
            "NO_PROXY": "127.0.0.1,localhost",
        }

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, refused ones included."""
        with self._state.changed:
            return list(self._state.requests)

    @property
    def violations(self) -> list[str]:
        """What was refused for breaking a rule, in the service's words."""
        with self._state.changed:
            return list(self._state.violations)

    def add(self, *script: ScriptItem) -> None:
        """Append to the script."""
        with self._state.changed:
            self._state.script.extend(script)

    def always(self, item: ScriptItem) -> None:
        """What is answered once the script is used up."""
        with self._state.changed:
            self._state.always = item

    def wait_for_requests(self, count: int) -> list[RecordedRequest]:
        """Block until ``count`` requests have come.

        Raises:
            AssertionError: they did not come in time.
        """
        state = self._state
        with state.changed:
            if not state.changed.wait_for(lambda: len(state.requests) >= count, DEADLINE):
                raise AssertionError(f"{len(state.requests)} of {count} requests came")
            return list(state.requests)

    async def requests_arrived(self, count: int) -> list[RecordedRequest]:
        """Like ``wait_for_requests``, for a coroutine."""
        return await asyncio.to_thread(self.wait_for_requests, count)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._state.connections += 1
            connection = ClientConnection(self._state, self._options, reader, writer)
            task = asyncio.ensure_future(connection.serve())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=self._options.tls)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.open()
        await self._stop.until_open()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
