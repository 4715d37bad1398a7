from __future__ import annotations

import pytest

from midturn_core.model.messages import JsonObject, JsonValue
from midturn_core.tool import InvalidInputError
from midturn_tools._input import check_input, flag, integer, optional_integer, text, texts

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 10},
        "mode": {"type": "string", "enum": ["files", "lines"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "seconds": {"type": "number", "minimum": 0},
        "all": {"type": "boolean"},
        "names": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"status": {"type": "string", "enum": ["a", "b"]}},
                "required": ["status"],
            },
        },
    },
    "required": ["path"],
}


def problem(**fields: JsonValue) -> str:
    with pytest.raises(InvalidInputError) as caught:
        check_input({"path": "x"} | fields, SCHEMA)
    return str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 1},
        {"limit": "9"},
        {"limit": 2.0},
        {"limit": None},
        {"seconds": 0.5},
        {"all": False},
        {"names": []},
        {"items": [{"status": "a"}]},
        {"mode": "lines"},
    ],
)
def test_what_the_schema_allows_passes(fields: dict[str, JsonValue]) -> None:
    check_input({"path": "x"} | fields, SCHEMA)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 to 9, not 0"),
        ({"limit": 10}, "limit must be a whole number from 1 to 9, not 10"),
        ({"limit": 1.5}, "limit must be a whole number from 1 to 9, not 1.5"),
        ({"limit": "x"}, 'limit must be a whole number from 1 to 9, not "x"'),
        ({"limit": True}, "limit must be a whole number from 1 to 9, not true"),
        ({"seconds": -1}, "seconds must be a number of at least 0, not -1"),
        ({"seconds": float("nan")}, "seconds must be a number of at least 0, not NaN"),
        ({"all": "yes"}, 'all must be true or false, not "yes"'),
        ({"path": ""}, 'path must be a string from 1 to 10 characters, not ""'),
        ({"path": None}, "path is required: a string from 1 to 10 characters"),
        ({"path": 3}, "path must be a string from 1 to 10 characters, not 3"),
        ({"mode": "words"}, 'mode must be one of "files", "lines", not "words"'),
        ({"names": "x"}, 'names must be a list of at most 2 items, not "x"'),
        ({"names": ["a", "b", "c"]}, 'not ["a", "b", "c"]'),
        ({"names": [1]}, "names[0] must be a string, not 1"),
        ({"items": [dict[str, JsonValue]()]}, 'items[0].status is required: one of "a", "b"'),
        ({"items": [{"status": "c"}]}, 'items[0].status must be one of "a", "b", not "c"'),
        ({"limits": 3}, "unknown field limits (did you mean limit?); allowed: path, mode, limit"),
    ],
)
def test_a_refusal_names_field_value_and_what_is_allowed(
    fields: dict[str, JsonValue], sentence: str
) -> None:
    assert sentence in problem(**fields)


def test_every_wrong_field_is_named_at_once() -> None:
    assert problem(limit=0, all=1).count("must be") == 2


def test_a_long_value_is_shortened_and_a_lone_surrogate_never_reaches_the_model() -> None:
    assert len(problem(mode="x" * 10_000)) < 200
    problem(mode="\ud800").encode("utf-8")


def test_values_are_read_with_their_defaults() -> None:
    given: JsonObject = {"limit": "7", "all": None, "names": ["a"], "path": "p"}
    assert (integer(given, "limit", 1), integer(given, "gone", 5)) == (7, 5)
    assert (optional_integer(given, "limit"), optional_integer(given, "gone")) == (7, None)
    assert (flag(given, "all"), flag(given, "all", True)) == (False, True)
    assert (text(given, "path"), text(given, "gone", "d")) == ("p", "d")
    assert (texts(given, "names"), texts(given, "gone")) == (("a",), ())
