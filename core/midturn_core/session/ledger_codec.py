"""Entries of the ledger as JSON objects, and back.

They are records of the session's own log, of the type ``batch``: so they have its order, its
checksums and its durability, go where the log goes, and a release that does not know them ignores
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from midturn_core.dispatch.types import SequentialCause
from midturn_core.ids import AgentRuntimeId
from midturn_core.ledger.entries import LedgerBatch, LedgerCall, LedgerLimits
from midturn_core.model.messages import JsonObject, JsonValue, Outcome

Data: TypeAlias = dict[str, JsonValue]

BATCH_RECORD = "batch"


def batch_to_json(batch: LedgerBatch) -> Data:
    """The data of a ``batch`` record."""
    return {
        "batch": batch.batch_id,
        "context": batch.context_id,
        "step": batch.step,
        "run": batch.run,
        "limits": {
            "max_concurrency": batch.limits.max_concurrency,
            "per_batch_max": batch.limits.per_batch_max,
            "per_context_max": batch.limits.per_context_max,
        },
        "calls": [_call_to_json(call) for call in batch.calls],
        "segments": [[segment.start, segment.stop] for segment in batch.segments],
        "cause": batch.cause.value if batch.cause is not None else None,
        "deciding_call": batch.deciding_call,
    }


def batch_from_json(data: JsonObject) -> LedgerBatch:
    """Raises: ValueError: a field is missing or has the wrong type."""
    limits = _object(data, "limits")
    cause, deciding = data.get("cause"), data.get("deciding_call")
    return LedgerBatch(
        batch_id=_text(data, "batch"),
        context_id=str(AgentRuntimeId.parse(_text(data, "context"))),
        step=_number(data, "step"),
        run=_text(data, "run"),
        limits=LedgerLimits(
            _number(limits, "max_concurrency"),
            _number(limits, "per_batch_max"),
            _number(limits, "per_context_max"),
        ),
        calls=tuple(map(_call_from_json, _list(data, "calls"))),
        segments=tuple(map(_segment, _list(data, "segments"))),
        cause=SequentialCause(cause) if cause is not None else None,
        deciding_call=deciding if isinstance(deciding, int) else None,
    )


def _call_to_json(call: LedgerCall) -> Data:
    marks: Data = {name: True for name in _MARKS if getattr(call, name)}
    return {
        "id": call.tool_use_id,
        "name": call.name,
        "outcome": call.outcome.value,
        "sha256": call.result_hash,
        "started": call.started,
        "ended": call.ended,
        **marks,
    }


_MARKS = ("pooled", "early", "retried", "abandoned")
"""Written only where they hold."""


def _call_from_json(value: JsonValue) -> LedgerCall:
    data = _as_object(value, "a call")
    return LedgerCall(
        tool_use_id=_text(data, "id"),
        name=_text(data, "name"),
        outcome=Outcome(_text(data, "outcome")),
        result_hash=_text(data, "sha256"),
        started=_time(data, "started"),
        ended=_time(data, "ended"),
        pooled=data.get("pooled") is True,
        early=data.get("early") is True,
        retried=data.get("retried") is True,
        abandoned=data.get("abandoned") is True,
    )


def _segment(value: JsonValue) -> range:
    match value:
        case [int(start), int(stop)]:
            return range(start, stop)
        case _:
            raise ValueError("a segment is not two numbers")


def _text(data: JsonObject, key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value


def _number(data: JsonObject, key: str) -> int:
    value = data.get(key)
    if not isinstance(value, int):
        raise ValueError(f"{key} is not a whole number")
    return value


def _time(data: JsonObject, key: str) -> float | None:
    value = data.get(key)
    if value is not None and not isinstance(value, int | float):
        raise ValueError(f"{key} is not a time")
    return value


def _list(data: JsonObject, key: str) -> list[JsonValue]:
    value = data.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{key} is not a list")
    return value


def _object(data: JsonObject, key: str) -> JsonObject:
    return _as_object(data.get(key), key)


def _as_object(value: JsonValue, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return cast(Mapping[str, JsonValue], value)
