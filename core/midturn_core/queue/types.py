"""What waits in the queue and how it is selected (S2.7, S2.8, D8)."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from types import MappingProxyType
from typing import Any, TypeAlias

from midturn_core.ids import AgentRuntimeId

HELD_KEY = "held"
"""Metadata tag of an item that is kept back until released (D5)."""
DUE_KEY = "due"
"""Metadata tag: the instant (ISO 8601) until which an item is held, to be let go then."""
ORIGIN_KEY = "origin"
"""Metadata tag: where an item came from, such as ``repl`` or ``reminder``."""
REMINDER = "reminder"
"""The origin of a scheduled item, unless it has one of its own."""
EDITING_KEY = "editing"
"""Metadata tag of an item that somebody edits at this moment. It is held too, whatever happens
meanwhile; the value says what it is again afterwards: ``free`` or ``held``.
"""
EXPIRED_KEY = "expired"
"""Metadata tag, in a store only, of an item that waited longer than it may (D11)."""
RELEASED_AT_KEY = "released-at"
"""Metadata tag: when an item was released, as an ISO time; its time to live begins anew there."""
KIND_KEY = "kind"
"""Metadata tag: ``prompt`` (default), ``command`` (a slash command) or ``shell`` (a ! line)."""


class QueuedInputPriority(IntEnum):
    """When an input is delivered (S2.8, D1). The order is fixed: it is compared and stored."""

    NOW = 0
    """Redirect at once: hastens the next step boundary."""
    NEXT = 1
    """Steer: delivered at the next step boundary. The default."""
    LATER = 2
    """After this turn, by itself."""


_FREE, _HELD = "free", "held"


def _frozen(metadata: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(metadata))


@dataclass(frozen=True, slots=True, eq=False)
class QueuedInput:
    """Something typed (or sent) for an agent. Immutable; two are equal when their uuid is.

    Raises:
        ValueError: the text is empty or only white space.
    """

    input_text: str
    context_id: AgentRuntimeId
    priority: QueuedInputPriority = QueuedInputPriority.NEXT
    uuid: str = field(default_factory=lambda: str(uuids.uuid4()))
    source_agent_id: str | None = None
    """The subagent it came from; None for the REPL."""
    enqueued_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Wall-clock, for display and ages only: order never depends on it."""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.input_text.strip():
            raise ValueError("a queued input needs text")
        object.__setattr__(self, "metadata", _frozen(self.metadata))

    @staticmethod
    def builder() -> QueuedInputBuilder:
        return QueuedInputBuilder()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueuedInput) and other.uuid == self.uuid

    def __hash__(self) -> int:
        return hash(self.uuid)

    @property
    def held(self) -> bool:
        return HELD_KEY in self.metadata

    @property
    def scheduled(self) -> bool:
        """Held until its due time, and then let go by itself."""
        return DUE_KEY in self.metadata

    @property
    def due(self) -> datetime | None:
        """When it is to be let go; None when it is not scheduled, or its tag cannot be read."""
        return _instant(self.metadata.get(DUE_KEY, ""))

    @property
    def being_edited(self) -> bool:
        return EDITING_KEY in self.metadata

    @property
    def bars_others(self) -> bool:
        """It is edited, and was on its way before: what is behind it may not overtake it."""
        return self.metadata.get(EDITING_KEY) == _FREE

    def as_held(self) -> QueuedInput:
        """The same input, kept back until released, and edited by nobody."""
        return replace(self, metadata={**_without(self, EDITING_KEY), HELD_KEY: "1"})

    @property
    def expired(self) -> bool:
        return EXPIRED_KEY in self.metadata

    def as_expired(self) -> QueuedInput:
        """The same input as the store keeps it once it has expired: nobody delivers it."""
        return replace(self, metadata={**self.metadata, HELD_KEY: "1", EXPIRED_KEY: "1"})

    def as_restored(self, at: datetime) -> QueuedInput:
        """An expired input as a new one, queued ``at`` that time."""
        tags = _without(self, HELD_KEY, EXPIRED_KEY, EDITING_KEY, RELEASED_AT_KEY)
        return replace(self, uuid=str(uuids.uuid4()), enqueued_at=at, metadata=tags)

    def as_free(self, since: datetime | None) -> QueuedInput:
        """The same input, on its way again; ``since`` begins its time to live anew."""
        tags = _without(self, HELD_KEY, DUE_KEY, EDITING_KEY)
        if since is not None:
            tags[RELEASED_AT_KEY] = since.isoformat()
        return replace(self, metadata=tags)

    def as_edited(self) -> QueuedInput:
        """The same input, kept back while somebody edits it."""
        after = _HELD if self.held else _FREE
        return replace(self, metadata={**self.metadata, HELD_KEY: "1", EDITING_KEY: after})

    def to_be(self, *, held: bool) -> QueuedInput:
        """The same input in the hands of who edits it, and held or free when they let go."""
        tags = self.metadata if held else _without(self, DUE_KEY)
        return replace(self, metadata={**tags, EDITING_KEY: _HELD if held else _FREE})

    def as_past_due(self) -> QueuedInput:
        """A scheduled input that stays held although its time has come."""
        return replace(self, metadata={**_without(self, DUE_KEY), HELD_KEY: "1"})

    @property
    def waits_since(self) -> datetime:
        """Since when it is on its way; what decides whether it has expired (D11)."""
        released = _instant(self.metadata.get(RELEASED_AT_KEY, ""))
        return self.enqueued_at if released is None else max(self.enqueued_at, released)

    @property
    def is_prompt(self) -> bool:
        """Text for the model: no slash command and no ! line."""
        return self.metadata.get(KIND_KEY, "prompt") == "prompt"


class QueuedInputBuilder:
    """Builds a ``QueuedInput`` step by step; what is not set has the default of its field (S2.7)."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._metadata: dict[str, str] = {}

    def input_text(self, text: str) -> QueuedInputBuilder:
        return self._set("input_text", text)

    def context_id(self, context_id: AgentRuntimeId) -> QueuedInputBuilder:
        return self._set("context_id", context_id)

    def priority(self, priority: QueuedInputPriority) -> QueuedInputBuilder:
        return self._set("priority", priority)

    def uuid(self, uuid: str) -> QueuedInputBuilder:
        return self._set("uuid", uuid)

    def source_agent_id(self, agent_id: str | None) -> QueuedInputBuilder:
        return self._set("source_agent_id", agent_id)

    def enqueued_at(self, instant: datetime) -> QueuedInputBuilder:
        return self._set("enqueued_at", instant)

    def metadata(self, key: str, value: str) -> QueuedInputBuilder:
        """Add one tag."""
        self._metadata[key] = value
        return self

    def build(self) -> QueuedInput:
        """
        Raises:
            ValueError: the text or the context is missing, or the text is empty.
        """
        missing = [name for name in ("input_text", "context_id") if name not in self._fields]
        if missing:
            raise ValueError(f"a queued input needs {' and '.join(missing)}")
        return QueuedInput(**self._fields, metadata=self._metadata)

    def _set(self, name: str, value: object) -> QueuedInputBuilder:
        self._fields[name] = value
        return self


def _without(item: QueuedInput, *keys: str) -> dict[str, str]:
    return {key: value for key, value in item.metadata.items() if key not in keys}


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


Predicate: TypeAlias = Callable[[QueuedInput], bool]


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """A selection that every backend can evaluate inside its atomic step; also a predicate.

    ``source_agent_id`` None selects any source. ``metadata`` selects items that carry all of
    these tags. ``uuids`` None selects any, a set only these.
    """

    context_id: AgentRuntimeId
    max_priority: QueuedInputPriority = QueuedInputPriority.LATER
    source_agent_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    exclude_held: bool = True
    prompts_only: bool = False
    uuids: frozenset[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", _frozen(self.metadata))

    @property
    def takes_all(self) -> bool:
        """Whether it selects everything of its context and tiers."""
        return not (
            self.exclude_held
            or self.prompts_only
            or self.metadata
            or self.source_agent_id is not None
            or self.uuids is not None
        )

    def __call__(self, item: QueuedInput) -> bool:
        return (
            item.context_id == self.context_id
            and item.priority <= self.max_priority
            and (self.source_agent_id is None or item.source_agent_id == self.source_agent_id)
            and all(item.metadata.get(key) == value for key, value in self.metadata.items())
            and not (self.exclude_held and item.held)
            and (item.is_prompt or not self.prompts_only)
            and (self.uuids is None or item.uuid in self.uuids)
        )
