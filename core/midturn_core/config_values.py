"""What a configuration value may be: the kinds of values, each reading and checking its own.

Kinds without fields are plain classes: making a dataclass costs start-up time.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol, TypeAlias, TypeGuard, cast

from midturn_core.config import ModelPrice
from midturn_core.config_key_names import EXAMPLES, read_key

KeyValue: TypeAlias = str | bool | int | float | tuple[str, ...] | dict[str, ModelPrice]
RuleParser: TypeAlias = Callable[[str], object]
"""Reads one permission rule; raises ValueError with the reason when it cannot."""


class Kind(Protocol):
    """One kind of value. A variable's or flag's words go through ``read`` and then ``check``."""

    @property
    def allowed(self) -> str:
        """What a value may be, to follow "must be"."""
        ...

    def read(self, words: str) -> object:
        """The words of a variable or a flag as TOML would give them; bad ones unchanged."""
        ...

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        """A value as TOML gives it; None when it is not allowed.

        Raises:
            ValueError: it is not, and the text completes "<key> ..." with a closer reason.
        """
        ...


def check_value(kind: Kind, value: object, parse_rule: RuleParser) -> KeyValue:
    """A value as TOML gives it, checked.

    Raises:
        ValueError: each line completes "<key> ...", such as "must be true or false, not 3".
    """
    checked = kind.check(value, parse_rule)
    if checked is None:
        raise ValueError(f"must be {kind.allowed}, not {_shown(value)}")
    return checked


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text that is not empty; ``meaning`` is what it is in an error message."""

    meaning: str

    @property
    def allowed(self) -> str:
        return f"{self.meaning} in quotes"

    def read(self, words: str) -> object:
        return words

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return value if _is_line(value) and value.strip() else None


class WebAddress:
    """An ``http://`` or ``https://`` address, or empty."""

    allowed = "an http:// or https:// address in quotes, or empty"

    def read(self, words: str) -> object:
        return words

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return value if _is_line(value) and _is_web_address(value) else None


class RedisAddress:
    """A ``redis://``, ``rediss://`` (TLS) or ``unix://`` address, or empty."""

    allowed = "a redis://, rediss:// or unix:// address in quotes, or empty"

    def read(self, words: str) -> object:
        return words

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        if not _is_line(value):
            return None
        scheme, separator, rest = value.partition("://")
        reachable = scheme in ("redis", "rediss", "unix") and bool(separator and rest.strip("/"))
        return value if not value or (reachable and " " not in value) else None


class FilePath:
    """A path, or empty. In a file it says where it is; elsewhere it may be relative."""

    allowed = "a path in quotes, absolute or beginning with ~/, or empty"

    def read(self, words: str) -> object:
        return os.path.abspath(os.path.expanduser(words))

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        if not _is_line(value):
            return None
        expanded = os.path.expanduser(value)
        return expanded if not value or os.path.isabs(expanded) else None


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(f'"{option}"' for option in self.options)

    def read(self, words: str) -> object:
        return words

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return value if isinstance(value, str) and value in self.options else None


class Switch:
    allowed = "true or false"

    def read(self, words: str) -> object:
        return _SWITCH_WORDS.get(words.lower(), words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; ``maximum`` None is no limit."""

    minimum: int
    maximum: int | None = None

    @property
    def allowed(self) -> str:
        if self.maximum is None:
            return f"a whole number, at least {self.minimum}"
        return f"a whole number from {self.minimum} to {self.maximum}"

    def read(self, words: str) -> object:
        return _number(words, int)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if self.minimum <= value <= (self.maximum or value) else None


class Seconds:
    allowed = "a number of seconds, more than 0"

    def read(self, words: str) -> object:
        return _number(words, float)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return _amount(value) or None


class Rules:
    """Permission rules (D42). The rules of all layers add up."""

    allowed = "a list of rules in quotes"

    def read(self, words: str) -> object:
        return _list(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        rules = _lines(value)
        unreadable: list[str] = []
        for rule in rules or ():
            try:
                parse_rule(rule)
            except ValueError as error:
                unreadable.append(str(error))
        if unreadable:
            raise ValueError(
                "\n".join(f"has a rule that cannot be read: {why}" for why in unreadable)
            )
        return rules


class Hosts:
    """``host`` or ``host:port`` (D45)."""

    allowed = "a list of hosts in quotes, each host or host:port"

    def read(self, words: str) -> object:
        return _list(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        hosts = _lines(value)
        return hosts if hosts is not None and all(map(_is_host, hosts)) else None


class Encodings:
    """Names of text encodings."""

    allowed = 'a list of encodings in quotes, such as "cp949" or "latin-1"'

    def read(self, words: str) -> object:
        return _list(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        names = _lines(value)
        unknown = next((name for name in names or () if not _is_encoding(name)), None)
        if unknown is not None:
            raise ValueError(f"has an encoding that is not known: {unknown!r}")
        return names


class ProgramWords:
    """A program and its arguments, started without a shell."""

    allowed = "a list in quotes: a program and its arguments"

    def read(self, words: str) -> object:
        return _list(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        return _lines(value)


class KeyNames:
    """One key or several, each as ``config_key_names`` describes."""

    allowed = f"a key in quotes such as {EXAMPLES}, or a list of them"

    def read(self, words: str) -> object:
        return _list(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        keys = _lines([value] if isinstance(value, str) else value)
        return keys if keys is None else tuple(dict.fromkeys(map(read_key, keys)))


class Prices:
    """A table: model name to its price."""

    allowed = "a table: model name = { input = 5.0, output = 25.0 }"

    def read(self, words: str) -> object:
        return _toml(words)

    def check(self, value: object, parse_rule: RuleParser) -> KeyValue | None:
        if not isinstance(value, dict):
            return None
        entries = cast("dict[str, object]", value)
        return {model: _price(model, entry) for model, entry in entries.items()}


_SWITCH_WORDS = {
    word: value
    for value, words in ((True, "1 true yes on"), (False, "0 false no off"))
    for word in words.split()
}


def _is_line(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and (not value or value.isprintable())


def _is_web_address(text: str) -> bool:
    scheme, separator, rest = text.partition("://")
    reachable = scheme.lower() in ("http", "https") and bool(rest.strip("/"))
    return not text or (reachable and bool(separator) and " " not in text)


def _amount(value: object) -> float | None:
    """A finite number that is not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= sys.float_info.max else None


def _lines(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    lines = tuple(item for item in items if _is_line(item) and item)
    return lines if len(lines) == len(items) else None


def _is_host(text: str) -> bool:
    name, port = text, ""
    if text.startswith("["):
        name, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        name, _, port = text.partition(":")
    good_port = not port or (port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536)
    return bool(name) and good_port and not text.endswith(":") and not set(name) & set("/@ *")


def _is_encoding(name: str) -> bool:
    try:
        # Unlike a look-up, it refuses what turns no text into bytes, such as rot13.
        "".encode(codecs.lookup(name).name)
    except (LookupError, ValueError):
        return False
    return True


def _price(model: str, entry: object) -> ModelPrice:
    amounts = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    numbers = {name: _amount(amount) for name, amount in amounts.items()}
    known = {field.name for field in fields(ModelPrice)}
    good = {name: number for name, number in numbers.items() if number is not None}
    if len(good) < len(numbers) or not {"input", "output"} <= set(good) <= known:
        raise ValueError(
            f"has a price for {model!r} that cannot be read: it must be a table with the numbers "
            "input and output, and if wanted cache_read and cache_write"
        )
    return ModelPrice(**good)


def _list(words: str) -> object:
    """One item per line, or a TOML array."""
    if words.startswith("["):
        return _toml(words)
    return [line.strip() for line in words.splitlines() if line.strip()]


def _number(text: str, number: type[int] | type[float]) -> object:
    try:
        return number(text)
    except ValueError:
        return text


def _toml(text: str) -> object:
    # Imported here: it costs start-up time and few need it.
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + " ..."


_LONGEST_SHOWN = 60
