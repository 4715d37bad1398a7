"""How a queued input is written into a store, so that every text comes back as it was."""

from __future__ import annotations

import json
from datetime import datetime
from typing import cast
from urllib.parse import quote, unquote

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.types import QueuedInput, QueuedInputPriority


class RecordError(Exception):
    """What a store returned is not what was written."""


def to_record(item: QueuedInput) -> bytes:
    fields = {
        "text": item.input_text,
        "session": item.context_id.session,
        "agent": item.context_id.agent,
        "priority": int(item.priority),
        "uuid": item.uuid,
        "source": item.source_agent_id,
        "enqueued_at": item.enqueued_at.isoformat(),
        "metadata": dict(item.metadata),
    }
    return to_json(fields)


def from_record(record: bytes) -> QueuedInput:
    """The input that was written.

    Raises:
        RecordError: it is no record.
    """
    try:
        return _input(from_json(record))
    except ValueError as error:
        raise RecordError(str(error)) from error


def _input(value: object) -> QueuedInput:
    if not isinstance(value, dict):
        raise ValueError("not a queued input")
    fields = cast(dict[str, object], value)
    match fields:
        case {
            "text": str(text),
            "session": str(session),
            "agent": str(agent),
            "priority": int(priority),
            "uuid": str(uuid),
            "source": (str() | None) as source,
            "enqueued_at": str(enqueued_at),
            "metadata": metadata,
        }:
            return QueuedInput(
                text,
                AgentRuntimeId(session, agent),
                QueuedInputPriority(priority),
                uuid,
                source,
                datetime.fromisoformat(enqueued_at),
                _tags(metadata),
            )
        case _:
            raise ValueError("not a queued input")


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("not a map of tags")
    return {str(key): str(tag) for key, tag in cast(dict[object, object], value).items()}


def to_json(value: object) -> bytes:
    """Lone surrogates, which a terminal or a paste can contain, pass as they are."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_json(content: bytes) -> object:
    return json.loads(content.decode("utf-8", "surrogatepass"))


def tags_from_json(content: bytes) -> dict[str, str]:
    """The metadata that was written.

    Raises:
        ValueError: it is none.
    """
    return _tags(from_json(content))


def context_key(context_id: AgentRuntimeId) -> str:
    """A name of the context in plain ASCII, without braces, different for different contexts."""
    return f"{name_key(context_id.session)}/{name_key(context_id.agent)}"


def context_from_key(key: str) -> AgentRuntimeId:
    """The context that ``context_key`` made this of.

    Raises:
        RecordError: it is none.
    """
    session, slash, agent = key.partition("/")
    if not slash:
        raise RecordError(f"{key!r} names no context")
    return AgentRuntimeId(unquote(session), unquote(agent))


def name_key(name: str) -> str:
    """Any text as plain ASCII, without braces and slashes; a UUID stays as it is."""
    return quote(name, safe="", errors="surrogatepass")
