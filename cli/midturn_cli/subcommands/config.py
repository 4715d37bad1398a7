"""``midturn config``: the effective values, each with what set it; valid TOML, secrets masked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from midturn_cli.launch import load
from midturn_cli.options import Arguments
from midturn_core.config import ModelPrice
from midturn_core.config_keys import CONFIG_KEYS, SECTIONS, ConfigKey
from midturn_core.config_loader import CREDENTIAL_VARIABLES, LoadedConfig


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One key: its value as TOML (empty when it is unset) and the places that set it."""

    key: ConfigKey
    value: str
    origin: str


def run(arguments: Arguments) -> int:
    """Print everything; returns the exit code.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    loaded = load(arguments, os.environ)
    sys.stdout.write("".join(f"{line}\n" for line in config_lines(loaded)))
    for warning in loaded.warnings:
        sys.stderr.write(f"midturn: {warning}\n")
    return 0


def config_rows(loaded: LoadedConfig) -> tuple[ConfigRow, ...]:
    """Every key in the table's order, without secrets."""
    return tuple(
        ConfigRow(key, _toml(_value(loaded, key)), _origin(loaded, key)) for key in CONFIG_KEYS
    )


def config_lines(loaded: LoadedConfig) -> Iterator[str]:
    yield f"# user file: {loaded.file}{'' if loaded.file_read else ' (not there)'}"
    rows = config_rows(loaded)
    for section in SECTIONS:
        yield ""
        yield f"[{section}]"
        lines = [_assignment(row) for row in rows if row.key.section == section]
        width = min(_WIDEST, max(len(line) for line, _ in lines))
        yield from (f"{line:<{width}}  # {origin}" for line, origin in lines)
    yield ""
    for variable, field in CREDENTIAL_VARIABLES.items():
        state = "set, not shown" if getattr(loaded.config.model, field) else "not set"
        yield f"# {variable}: {state}"


_WIDEST = 44


def _assignment(row: ConfigRow) -> tuple[str, str]:
    if row.value:
        return f"{row.key.name} = {row.value}", row.origin
    return f"# {row.key.name} is unset", row.origin


def _value(loaded: LoadedConfig, key: ConfigKey) -> object:
    value = getattr(getattr(loaded.config, key.section), key.name)
    return _without_password(value) if key.id in ("model.base_url", "queue.url") else value


def _origin(loaded: LoadedConfig, key: ConfigKey) -> str:
    return ", ".join(
        f"{origin.layer.value}: {origin.place}" if origin.place else origin.layer.value
        for origin in loaded.origins[key.id]
    )


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"***@{host}")) if at and user else address


def _toml(value: object) -> str:
    # Imported here: it costs start-up time and other commands do not need it.
    import tomlkit

    if value is None:
        return ""
    if isinstance(value, tuple):
        return str(tomlkit.item(list(cast("tuple[str, ...]", value))).as_string())
    if isinstance(value, dict):
        return _price_table(cast("dict[str, ModelPrice]", value))
    return str(tomlkit.item(value).as_string())


def _price_table(prices: Mapping[str, ModelPrice]) -> str:
    entries = (
        f"{_toml(model)} = {{ "
        + ", ".join(f"{name} = {amount}" for name, amount in asdict(price).items())
        + " }"
        for model, price in prices.items()
    )
    return f"{{ {', '.join(entries)} }}" if prices else "{}"
