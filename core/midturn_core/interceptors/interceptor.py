"""``ToolInterceptor``: what may look at a call before its tool runs, and at its result after (D30).

For authors. Within one call everything has a fixed order: validate, ``before`` of each
interceptor in the order of registration, validate again, permission on the final input, slot,
tool, slot given back, ``after`` of each in reverse order. Between the calls of a parallel batch
nothing has: the same function runs for several calls at once, and ``after`` runs as they complete
(S1.34, S1.37). So:

- State of your own (a counter, "the previous tool", a list) needs a lock (S1.36). A function that
  keeps none needs nothing.
- What you write (an audit log, metrics, a notification) comes in the order of completion. Write
  ``sort_key`` and ``batch_id`` along, or sort what you collect by them. Never print: the screen
  has one writer (S1.38).
- A plain function may block; it runs on a thread of the interceptors' own, never on the workers
  of the tools (S1.41). A coroutine function runs on the loop and must not block.
- Whoever waits for you stops waiting after ``time_limit``, or when the call is cut: a coroutine
  is then cancelled, and ``signal`` trips for a function on a thread.
- A ``before`` that raises, takes too long or answers nonsense denies its call: a check that is
  broken must not let anything pass. An ``after`` that does is logged and the result stands, so
  do not rely on ``after`` to keep a secret from the model; deny the call instead.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from midturn_core.ids import AgentRuntimeId
from midturn_core.interceptors.threads import InterceptorThreads
from midturn_core.interrupt import Signal
from midturn_core.model.messages import JsonObject, ToolUse, ToolUseResult
from midturn_core.queue.rewake import NO_REWAKE, RewakeService

DEFAULT_TIME_LIMIT = 60.0
"""Seconds for one ``before`` or ``after``."""


@dataclass(frozen=True, slots=True)
class InterceptedCall:
    """What an interceptor is told. Its own copy: to change it changes nothing (S1.35)."""

    context_id: AgentRuntimeId
    batch_id: str
    step: int
    tool_index: int
    """0-based place in the batch."""
    count: int
    tool_use: ToolUse
    """With the input as the interceptors before left it; in ``after``, as the tool got it."""
    attributes: Mapping[str, object]
    signal: Signal
    """Trips when nobody waits for this interceptor any more."""
    rewake: RewakeService = NO_REWAKE
    """Schedules an input for an agent at a time to come (S1.40)."""

    @property
    def sort_key(self) -> tuple[int, int]:
        """The place of the call in its turn, whenever it completes."""
        return self.step, self.tool_index


@dataclass(frozen=True, slots=True)
class Proceed:
    """The call may go on to the permission stage, whose rules stay in force: an interceptor can
    narrow what is permitted, never widen it.

    ``tool_input`` takes the place of the input; None leaves it. ``ask`` is why a person must be
    asked even where a rule or the mode would allow the call.
    """

    tool_input: JsonObject | None = None
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """The tool does not run; ``reason`` is told to the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class Amend:
    """What the model gets in place of the result's content (None leaves it), and a ``note`` that
    follows it. The outcome of a call cannot be changed.
    """

    content: str | None = None
    note: str = ""


BeforeAnswer: TypeAlias = Proceed | Deny | None
"""None lets the call pass as it is."""
AfterAnswer: TypeAlias = Amend | None

Before: TypeAlias = Callable[[InterceptedCall], BeforeAnswer | Awaitable[BeforeAnswer]]
After: TypeAlias = Callable[[InterceptedCall, ToolUseResult], AfterAnswer | Awaitable[AfterAnswer]]


@dataclass(frozen=True, slots=True)
class ToolInterceptor:
    """Two functions under one name; the module's docstring is their contract.

    ``after`` sees the calls whose tool came to its own end, well or badly. One that was cut or
    ran out of time has its result shown at once, and a denied call has no tool to come after.
    """

    name: str
    """Shown to the model and in the log."""
    before: Before | None = None
    after: After | None = None
    time_limit: float = DEFAULT_TIME_LIMIT
    """Seconds that either may take."""


class ToolInterceptors:
    """The interceptors of one session, shared by all its agents. Thread-safe.

    Copy-on-write (S1.35): a call that has begun keeps those that were registered then.

    Args:
        rewake: what their calls offer for inputs at a time to come.
    """

    def __init__(self, *interceptors: ToolInterceptor, rewake: RewakeService = NO_REWAKE) -> None:
        self.rewake = rewake
        self._lock = threading.Lock()
        self._current = interceptors
        self.threads = InterceptorThreads()

    @property
    def current(self) -> tuple[ToolInterceptor, ...]:
        """In the order of registration; a copy that never changes."""
        return self._current

    def add(self, interceptor: ToolInterceptor) -> Callable[[], None]:
        """Use it from the next call on; returns what takes it away again."""
        with self._lock:
            self._current = (*self._current, interceptor)

        def remove() -> None:
            with self._lock:
                self._current = tuple(one for one in self._current if one is not interceptor)

        return remove

    def close(self) -> None:
        """End the threads; one that is busy ends after what it does."""
        self.threads.close()
