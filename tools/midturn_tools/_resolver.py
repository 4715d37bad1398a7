"""Looks a host name up without holding up the loop, a worker, or the end of the program."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from midturn_tools._web_page import FetchError

Resolve: TypeAlias = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""From host and port to addresses, best first."""


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """Every address of a name.

    A look-up cannot be cut short, and some take half a minute. It runs on a daemon thread of its
    own, so that a slow one delays neither other calls nor the exit.

    Raises:
        FetchError: the name has no address.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[str, ...]] = loop.create_future()

    def settle(addresses: tuple[str, ...], error: FetchError | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses)

    def look_up() -> None:
        addresses, error = _look_up(host, port)
        # The loop may have closed meanwhile; then nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, addresses, error)

    threading.Thread(target=look_up, name="web-resolver", daemon=True).start()
    return await answer


def _look_up(host: str, port: int) -> tuple[tuple[str, ...], FetchError | None]:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        detail = f" ({reason})" if reason else ""
        return (), FetchError(f"The host name {host} could not be resolved{detail}.")
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos)), None
