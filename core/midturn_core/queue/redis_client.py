"""The only module that sees redis-py: one server, its scripts, and what its failures mean."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TimeoutError,
)
from redis.retry import Retry

from midturn_core.errors import QueueStoreError

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 3.0
_RECONNECT_SECONDS = 1.0
_STOP_SECONDS = 5.0
_WAKE_SECONDS = 0.05

Argument: TypeAlias = str | bytes | int | float


class _Script(Protocol):
    def __call__(self, keys: Sequence[str], args: Sequence[Argument]) -> object: ...


class _Connection(Protocol):
    def disconnect(self) -> None: ...


class _PubSub(Protocol):
    @property
    def connection(self) -> _Connection | None: ...

    def subscribe(self, *channels: str) -> object: ...

    def get_message(
        self, ignore_subscribe_messages: bool = False, timeout: float | None = 0.0
    ) -> dict[str, object] | None: ...

    def close(self) -> None: ...


class _Redis(Protocol):
    """The few methods that are used; redis-py types them for its two clients at once."""

    def register_script(self, script: str) -> _Script: ...

    def execute_command(self, *words: Argument) -> object: ...

    def pubsub(self) -> _PubSub: ...

    def close(self) -> None: ...


def connect(url: str, reply_seconds: float) -> RedisClient:
    """A client for ``redis://``, ``rediss://`` (TLS) or ``unix://``; it connects at first use.

    Args:
        url: may hold user and password, which no message shows.
        reply_seconds: how long a connection may stay silent before it counts as broken.

    Raises:
        QueueStoreError: the address cannot be understood.
    """
    # The library leaves its keyword arguments without a type.
    from_url = cast(Callable[..., redis.Redis], redis.Redis.from_url)  # pyright: ignore[reportUnknownMemberType]
    try:
        client = from_url(
            url,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=reply_seconds,
            # The client would repeat any command by itself; which may be repeated is decided here.
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise QueueStoreError(
            "its address cannot be understood",
            where="Redis",
            way_out="write it as redis://host:port/number, rediss://... for TLS, or unix:///path",
        ) from error
    return RedisClient(cast(_Redis, client), _shown(client))


class RedisClient:
    """Runs scripts and commands, each once more over a new connection when one breaks.

    What it is given must therefore be right when the server carries it out twice.
    """

    def __init__(self, client: _Redis, where: str) -> None:
        self._client = client
        self._where = where
        self._scripts: dict[str, _Script] = {}

    def script(self, text: str, keys: Sequence[str], args: Sequence[Argument]) -> object:
        """Run a Lua script by its hash; a server that does not know it is sent the text.

        Raises:
            QueueStoreError: the server cannot be reached or refuses.
        """
        script = self._scripts.get(text)
        if script is None:
            script = self._scripts[text] = self._client.register_script(text)
        return self._twice(lambda: script(keys, args))

    def command(self, *words: Argument) -> object:
        """Run one command.

        Raises:
            QueueStoreError: the server cannot be reached or refuses.
        """
        return self._twice(lambda: self._client.execute_command(*words))

    def run_id(self) -> str:
        """Another one after each start of the server; empty where the user may not ask for it.

        Raises:
            QueueStoreError: the server cannot be reached.
        """
        try:
            told = self.command("INFO", "server")
        except QueueStoreError as error:
            if isinstance(error.__cause__, NoPermissionError):
                return ""
            raise
        # The client makes a table of the answer.
        return str(cast("dict[str, object]", told).get("run_id", ""))

    def listen(
        self,
        channel: str,
        receive: Callable[[bytes], None],
        missed: Callable[[], None] = lambda: None,
    ) -> Callable[[], None]:
        """Pass on what is published, on a thread of its own; returns what ends it. ``missed`` is
        called when the connection is lost, and when it is there again.

        Raises:
            QueueStoreError: the server cannot be reached or refuses.
        """
        listening = _Listening(self._client, channel, receive, missed)
        self._twice(listening.open)
        listening.start()
        return listening.stop

    def damaged(self) -> QueueStoreError:
        """The error for an answer that makes no sense."""
        return QueueStoreError(
            "it holds an input that cannot be read",
            where=self._where,
            way_out="name another namespace",
        )

    def close(self) -> None:
        self._client.close()

    def _twice(self, action: Callable[[], object]) -> object:
        try:
            try:
                return action()
            except (AuthenticationError, BusyLoadingError):
                raise
            except (ConnectionError, TimeoutError):
                return action()
        except RedisError as error:
            problem, way_out = _explained(error)
            raise QueueStoreError(problem, where=self._where, way_out=way_out) from error


class _Listening:
    """One subscription, renewed when its connection breaks; what is published meanwhile is lost.

    The thread sleeps until the server says something: a peer that is silently gone is found out by
    the keepalive of TCP, which the client has on by itself.
    """

    def __init__(
        self,
        client: _Redis,
        channel: str,
        receive: Callable[[bytes], None],
        missed: Callable[[], None],
    ) -> None:
        self._client = client
        self._channel = channel
        self._receive = receive
        self._missed = missed
        self._pubsub: _PubSub | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queue-listen", daemon=True)

    def open(self) -> None:
        """Subscribe, and wait for the server's word that it has."""
        pubsub = self._client.pubsub()
        try:
            pubsub.subscribe(self._channel)
            pubsub.get_message(timeout=CONNECT_SECONDS)
        except BaseException:
            pubsub.close()
            raise
        self._pubsub = pubsub

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it, whether the server answers or not. Idempotent, and allowed to the receiver itself."""
        self._stopped.set()
        if threading.current_thread() is self._thread:
            return
        until = time.monotonic() + _STOP_SECONDS
        # Once is not enough: between two messages it connects anew by itself.
        while self._thread.is_alive() and time.monotonic() < until:
            self._wake()
            self._thread.join(_WAKE_SECONDS)

    def _wake(self) -> None:
        """Nothing but the end of the connection ends the wait for a message."""
        connection = None if self._pubsub is None else self._pubsub.connection
        if connection is not None:
            # An isolation wall: the other thread may be closing it just now.
            with contextlib.suppress(Exception):
                connection.disconnect()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._next()
            # An isolation wall: while the queue is watched nothing may end the thread, and when a
            # connection is closed beneath it the client raises all kinds of errors.
            except Exception:
                self._lost()
        self._hang_up()

    def _lost(self) -> None:
        if self._pubsub is not None and not self._stopped.is_set():
            # Once, however long it stays away; whoever uses the queue next tells the user.
            _log.warning("lost the connection that tells of changes", exc_info=True)
            self._hang_up()
            self._missed()
        self._stopped.wait(_RECONNECT_SECONDS)

    def _next(self) -> None:
        if self._pubsub is None:
            self.open()
            self._missed()
            return
        match self._pubsub.get_message(ignore_subscribe_messages=True, timeout=None):
            case {"type": "message", "data": bytes(data)} if not self._stopped.is_set():
                self._receive(data)
            case _:
                pass

    def _hang_up(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            # An isolation wall: it may be closed already, and then there is nothing to be done.
            with contextlib.suppress(Exception):
                pubsub.close()


def _shown(client: redis.Redis) -> str:
    """The address without user, password and options."""
    options = cast(dict[str, object], client.connection_pool.connection_kwargs)
    path = options.get("path")
    if path is not None:
        return f"Redis at {path}"
    database = options.get("db") or 0
    return f"Redis at {options.get('host', 'localhost')}:{options.get('port', 6379)}/{database}"


def _explained(error: RedisError) -> tuple[str, str]:
    """What is wrong, and the way out."""
    text = str(error)
    match error:
        case AuthenticationError() | NoPermissionError():
            return "it refuses the user or the password", "correct them in queue.url"
        case BusyLoadingError():
            return "it is still reading its data", "try again in a moment"
        case TimeoutError():
            return "it does not answer", "check the server and the network"
        case ConnectionError():
            return "it cannot be reached", "start the server, or correct queue.url"
        case OutOfMemoryError():
            return "its memory is full", "raise its maxmemory or remove keys"
        case ReadOnlyError():
            return "it is a read-only replica", "name the primary server in queue.url"
        case _ if text.startswith(("NOAUTH", "WRONGPASS")):
            return "it wants a user and a password", "put them into queue.url"
        case _ if text.startswith("MISCONF"):
            return "it cannot write to its disk", "make room on the server's disk"
        case _:
            return text, "check the server"
