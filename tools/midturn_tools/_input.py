"""Checks a tool's input against the part of JSON schema that our tools emit, and reads from it.

Known keywords: ``type``, ``properties``, ``required``, ``enum``, ``minimum``, ``maximum``,
``minLength``, ``maxLength``, ``items``, ``minItems``, ``maxItems``. Fields that a schema does not
name are refused. ``null`` means "not given". A whole number written as text (``"20"``) counts as
a number, so values are read with ``text``, ``integer`` and ``flag``, never by a bare index.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping

from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.tool import InvalidInputError

_SHOWN_VALUE = 60
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_TYPE_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def check_input(tool_input: JsonObject, schema: JsonObject) -> None:
    """Check the input of a call.

    Raises:
        InvalidInputError: names every wrong field, what was given and what is allowed.
    """
    problems = list(_object_problems(tool_input, schema, ""))
    if problems:
        raise InvalidInputError("; ".join(problems))


def text(tool_input: JsonObject, key: str, default: str = "") -> str:
    value = tool_input.get(key)
    return value if isinstance(value, str) else default


def integer(tool_input: JsonObject, key: str, default: int) -> int:
    value = _as_number(tool_input.get(key))
    return default if value is None else int(value)


def optional_integer(tool_input: JsonObject, key: str) -> int | None:
    value = _as_number(tool_input.get(key))
    return None if value is None else int(value)


def flag(tool_input: JsonObject, key: str, default: bool = False) -> bool:
    value = tool_input.get(key)
    return value if isinstance(value, bool) else default


def texts(tool_input: JsonObject, key: str) -> tuple[str, ...]:
    """The strings of a list field; empty when it was not given."""
    value = tool_input.get(key)
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _object_problems(
    value: Mapping[str, JsonValue], schema: JsonObject, where: str
) -> Iterator[str]:
    fields = _mapping(schema.get("properties"))
    for key in _strings(schema.get("required")):
        if value.get(key) is None:
            yield f"{where}{key} is required: {_allowed(_mapping(fields.get(key)))}"
    for key, given in value.items():
        if key not in fields:
            yield _unknown(key, tuple(fields), where)
        elif given is not None:
            yield from _value_problems(given, _mapping(fields[key]), f"{where}{key}")


def _value_problems(value: JsonValue, schema: JsonObject, name: str) -> Iterator[str]:
    if not _fits(value, schema):
        yield f"{name} must be {_allowed(schema)}, not {_shown(value)}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _value_problems(item, _mapping(schema.get("items")), f"{name}[{index}]")
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, f"{name}.")


def _fits(value: JsonValue, schema: JsonObject) -> bool:
    kind = schema.get("type")
    match kind:
        case "string":
            ok = isinstance(value, str) and _in_range(len(value), schema, "Length")
        case "integer" | "number":
            number = _as_number(value)
            whole = kind == "number" or (number is not None and number == int(number))
            ok = number is not None and whole and _in_range(number, schema, "imum")
        case "boolean":
            ok = isinstance(value, bool)
        case "array":
            ok = isinstance(value, list) and _in_range(len(value), schema, "Items")
        case "object":
            ok = isinstance(value, dict)
        case _:
            ok = True
    choices = schema.get("enum")
    return ok and (not isinstance(choices, list) or value in choices)


def _as_number(value: JsonValue) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, int | float) else None


def _in_range(number: float, schema: JsonObject, suffix: str) -> bool:
    low, high = _bound(schema, f"min{suffix}"), _bound(schema, f"max{suffix}")
    return (low is None or number >= low) and (high is None or number <= high)


def _bound(schema: JsonObject, keyword: str) -> float | int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int | float) else None


def _allowed(schema: JsonObject) -> str:
    """What the schema takes, in words."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(json.dumps(choice) for choice in choices)
    kind = schema.get("type")
    words = _TYPE_WORDS.get(kind, "a value") if isinstance(kind, str) else "a value"
    for suffix, unit in (("imum", ""), ("Length", " characters"), ("Items", " items")):
        words += _limits(_bound(schema, f"min{suffix}"), _bound(schema, f"max{suffix}"), unit)
    return words


def _limits(low: float | int | None, high: float | int | None, unit: str) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low}{unit}"
    if low is None:
        return f" of at most {high}{unit}"
    return f" from {low} to {high}{unit}"


def _unknown(key: str, known: tuple[str, ...], where: str) -> str:
    near = difflib.get_close_matches(key, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown field {where}{_shorten(key)}{hint}; allowed: {', '.join(known)}"


def _shown(value: JsonValue) -> str:
    return _shorten(json.dumps(value, ensure_ascii=False))


def _shorten(shown: str) -> str:
    """Short, and free of lone surrogates, which no request to the model may hold."""
    short = shown if len(shown) <= _SHOWN_VALUE else f"{shown[:_SHOWN_VALUE]}…"
    return short.encode("utf-8", "replace").decode()


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _strings(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
