"""What a tool is: the protocol, its context, its result, and the registry (S1.25, S1.42)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from midturn_core.dispatch.slots import Permits
from midturn_core.ids import AgentRuntimeId
from midturn_core.interrupt import Signal
from midturn_core.model.client import ToolDefinition
from midturn_core.model.messages import JsonObject, ToolDetail
from midturn_core.permission.access import Access
from midturn_core.read_files import ReadFiles

T = TypeVar("T")

DEFAULT_TIME_LIMIT = 30.0
"""Seconds for one CONCURRENT_SAFE call (D22)."""


class ConcurrencyBehavior(Enum):
    """Whether calls of a tool may run beside others (S1.42). The default is SEQUENTIAL."""

    SEQUENTIAL = "sequential"
    CONCURRENT_SAFE = "concurrent_safe"


class InterruptBehavior(Enum):
    """How a running call reacts to a cancellation (S1.20)."""

    NON_INTERRUPTIBLE = "non_interruptible"
    COOPERATIVE = "cooperative"
    THREAD_INTERRUPT = "thread_interrupt"
    EXTERNALLY_TERMINATED = "externally_terminated"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returns.

    ``output`` goes to the model (None counts as an empty string, D32). ``error`` set means that
    the call failed; it is one clear sentence for the model and ``output`` is then ignored.
    ``summary`` (a few words: lines read, matches, exit code) and ``detail`` are for the screen.
    ``stopped`` says that the call was cut by its signal and ``output`` may be incomplete.
    """

    output: str | None = ""
    error: str | None = None
    summary: str = ""
    detail: ToolDetail | None = None
    stopped: bool = False


class BlockingRunner(Protocol):
    """Runs a blocking function on the worker that belongs to this call's slot (D29)."""

    async def __call__(self, function: Callable[[], T]) -> T: ...


def _withholds_nothing(_path: Path, _searched: Sequence[Access]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call may know and use. Immutable; the one shared mutable value is ``read_files``,
    which is thread-safe (S1.29-S1.32).
    """

    context_id: AgentRuntimeId
    workspace: Path
    """Where the user started, resolved. Relative paths are relative to it."""
    read_files: ReadFiles
    signal: Signal
    """Trips when this call should stop. COOPERATIVE tools look at it."""
    run_blocking: BlockingRunner
    progress: Callable[[str], None]
    """Tell the screen a few words or the newest output line; safe on any thread."""
    tool_use_id: str = ""
    withholds: Callable[[Path, Sequence[Access]], bool] = _withholds_nothing
    """Whether a search of what the second names must pass over a file (resolved): the permission
    for the call itself is about the searched folder alone."""
    accesses: Sequence[Access] = ()
    """What the permission for this call was decided on (``access`` of the final input). A tool
    opens exactly these; empty: it was not asked, and paths are resolved anew.
    """
    attributes: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


class InvalidInputError(ValueError):
    """The input of a call is not what the tool takes; the text tells the model what is."""


class Tool(Protocol):
    """A capability of the agent.

    ``validate`` comes first and raises ``InvalidInputError``; ``describe``, ``access`` and
    ``run`` may rely on a validated input. ``run`` is a coroutine on the loop: whatever blocks
    goes through ``context.run_blocking``; whatever burns CPU goes into native code or a child
    process (D29). It returns a result for every failure it can foresee; an exception becomes an
    error result.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str:
        """For the model; must not imply an order between tools (S4.12)."""
        ...

    @property
    def input_schema(self) -> JsonObject: ...

    def get_concurrency_behavior(self) -> ConcurrencyBehavior: ...

    def get_interrupt_behavior(self) -> InterruptBehavior: ...

    def time_limit(self, tool_input: JsonObject) -> float | None:
        """Seconds this call may take; None takes the configured limit per call (D22).

        A tool that is not CONCURRENT_SAFE declares its own here.
        """
        ...

    def validate(self, tool_input: JsonObject) -> None: ...

    def describe(self, tool_input: JsonObject) -> str:
        """The argument that matters, on one line, for banners and questions."""
        ...

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[Access]:
        """Everything the call would touch, for the permission policy; empty: nothing."""
        ...

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult: ...


@runtime_checkable
class PreviewingTool(Protocol):
    """A tool that can show what a call would change before it is permitted."""

    def preview(self, tool_input: JsonObject, accesses: Sequence[Access]) -> ToolDetail | None:
        """For the question about a validated call. Blocking: it may read what is to change."""
        ...


@runtime_checkable
class ForeseeingTool(Protocol):
    """A tool that can tell before a question that a call would fail whatever is answered."""

    def foreseen_error(self, tool_input: JsonObject, context: ToolContext) -> str | None:
        """The error that a validated call would end with as things are now; None: none is seen.

        Blocking, and changes nothing. The call looks again when it runs: things may have changed.
        """
        ...


@runtime_checkable
class PerCallConcurrency(Protocol):
    """A SEQUENTIAL tool of which some calls may run beside others (D35).

    Such a call is stopped by the signal of its context, a terminator token of its own, and not
    through the thread it runs on (S1.53). It holds no slot of the pool, so that what it starts can
    take slots there; each call of the tool holds one of its ``places`` instead.
    """

    @property
    def places(self) -> Permits: ...

    def concurrency_of(self, tool_input: JsonObject) -> ConcurrencyBehavior:
        """Of one call, whose input need not be valid."""
        ...

    def why_alone(self, tool_input: JsonObject) -> str:
        """Why a call must run alone and what to change, as the end of a sentence that begins with
        the call.
        """
        ...


class ToolRegistry:
    """The tools of one agent by exact name, in the order they are offered to the model."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name}")
            self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool, or None for an unknown or mistyped name."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(
            ToolDefinition(tool.name, tool.description, tool.input_schema)
            for tool in self._tools.values()
        )
