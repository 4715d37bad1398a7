"""The layers of the configuration: built-in, user file, environment, flags; the later wins.

The project's folder is never read. An unknown key is a warning; everything else that cannot be
used stops the start with a ``ConfigError`` that says where it is and what is allowed (D43).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias, cast

from midturn_core import paths
from midturn_core.config import Config
from midturn_core.config_file import ConfigFile, add_value, read_config_file, save_value
from midturn_core.config_keys import (
    CONFIG_KEYS,
    ENVIRONMENT_PREFIX,
    KEYS_BY_ID,
    SECTIONS,
    ConfigKey,
)
from midturn_core.config_values import KeyValue, RuleParser, check_value
from midturn_core.errors import ConfigError

__all__ = [
    "CREDENTIAL_VARIABLES",
    "ConfigSource",
    "FlagSetting",
    "Layer",
    "LoadedConfig",
    "Origin",
    "add_value",
    "load_config",
    "save_value",
]

CREDENTIAL_VARIABLES: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "api_key",
    "ANTHROPIC_AUTH_TOKEN": "auth_token",
}
"""Variables for secrets, and the field of ``ModelConfig`` they fill. No file holds them."""


class Layer(Enum):
    """Where a value comes from, lowest first."""

    BUILT_IN = "built-in"
    USER_FILE = "user file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """A layer, and the place in it: ``file:line``, the variable or the flag."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.layer.value


@dataclass(frozen=True, slots=True)
class FlagSetting:
    """A flag that sets a configuration key (``section.key``); ``words`` as the user wrote them."""

    key: str
    flag: str
    words: str


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """What is read: ``file`` None takes the user's file if there is one, a named one must exist."""

    environ: Mapping[str, str]
    file: Path | None = None
    flags: Sequence[FlagSetting] = ()


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The configuration, and for each ``section.key`` what set it (several for rules)."""

    config: Config
    origins: Mapping[str, tuple[Origin, ...]]
    file: Path
    """The user file, whether or not it exists: where ``save_value`` goes."""
    file_read: bool = False
    warnings: tuple[str, ...] = ()
    rule_origins: Mapping[str, tuple[Origin, ...]] = field(
        default_factory=dict[str, tuple[Origin, ...]]
    )
    """For each key whose values add up, what set each of its values, in their order."""


@dataclass(frozen=True, slots=True)
class _Setting:
    key: ConfigKey
    value: object
    origin: Origin


def load_config(source: ConfigSource, parse_rule: RuleParser | None = None) -> LoadedConfig:
    """Read all layers.

    ``parse_rule`` checks permission rules; None takes the parser of ``permission.rules``.

    Raises:
        ConfigError: something cannot be used; it names everything of that kind at once, except
            in a file that cannot be read or is no valid TOML.
    """
    path = source.file or paths.config_file(source.environ)
    file = _user_file(source, path)
    problems = list(_misplaced_tables(file))
    settings = (
        *_file_settings(file),
        *_variable_settings(source.environ),
        *_flag_settings(source.flags),
    )
    merged = _merge(_checked(settings, parse_rule or _parse_rule, problems))
    config = _build(merged, _credentials(source.environ), problems)
    if problems:
        raise ConfigError(*dict.fromkeys(problems))
    return LoadedConfig(
        config=config,
        origins=merged.origins,
        file=path,
        file_read=file is not None,
        warnings=(*_file_warnings(file), *_variable_warnings(source.environ)),
        rule_origins=merged.rule_origins,
    )


def _user_file(source: ConfigSource, path: Path) -> ConfigFile | None:
    try:
        return read_config_file(path)
    except FileNotFoundError as error:
        if source.file is not None:
            raise ConfigError(f"{path}: there is no such configuration file") from error
        return None


def _misplaced_tables(file: ConfigFile | None) -> Iterator[str]:
    for section in SECTIONS:
        if file is not None and not isinstance(file.values.get(section, {}), dict):
            yield f"{file.place(section)}: {section} must be a table: [{section}]"


def _file_settings(file: ConfigFile | None) -> Iterator[_Setting]:
    if file is None:
        return
    for section in SECTIONS:
        table = file.values.get(section, {})
        if not isinstance(table, dict):
            continue
        for name, value in cast("dict[str, object]", table).items():
            if key := KEYS_BY_ID.get(f"{section}.{name}"):
                yield _Setting(key, value, Origin(Layer.USER_FILE, file.place(section, name)))


def _variable_settings(environ: Mapping[str, str]) -> Iterator[_Setting]:
    """An empty variable counts as unset."""
    for key in CONFIG_KEYS:
        for variable in filter(None, (key.other_variable, key.variable)):
            if words := environ.get(variable, "").strip():
                value = key.kind.read(words)
                yield _Setting(key, value, Origin(Layer.ENVIRONMENT, variable))


def _flag_settings(flags: Iterable[FlagSetting]) -> Iterator[_Setting]:
    for setting in flags:
        key = KEYS_BY_ID[setting.key]
        value = [setting.words] if key.adds_up else key.kind.read(setting.words)
        yield _Setting(key, value, Origin(Layer.FLAG, setting.flag))


_Origins: TypeAlias = dict[str, tuple[Origin, ...]]


@dataclass(frozen=True, slots=True)
class _CheckedSetting:
    """``value`` None: it cannot be used."""

    key: ConfigKey
    value: KeyValue | None
    origin: Origin


def _checked(
    settings: Iterable[_Setting], parse_rule: RuleParser, problems: list[str]
) -> Iterator[_CheckedSetting]:
    for setting in settings:
        key, origin = setting.key, setting.origin
        try:
            yield _CheckedSetting(key, check_value(key.kind, setting.value, parse_rule), origin)
        except ValueError as error:
            problems += (_complaint(key, origin, line) for line in str(error).split("\n"))
            yield _CheckedSetting(key, None, origin)


@dataclass(frozen=True, slots=True)
class _Merged:
    """The values of all layers, what set each key, and what set each single rule."""

    values: dict[str, KeyValue]
    origins: _Origins
    rule_origins: _Origins
    unusable: set[str]
    """The sections with a value that cannot be used."""


def _merge(settings: Iterable[_CheckedSetting]) -> _Merged:
    built_in: tuple[Origin, ...] = (Origin(Layer.BUILT_IN),)
    merged = _Merged({}, dict.fromkeys(KEYS_BY_ID, built_in), {}, set())
    values, origins, each = merged.values, merged.origins, merged.rule_origins
    for setting in settings:
        key, value, origin = setting.key, setting.value, setting.origin
        before = values.get(key.id)
        if value is None:
            merged.unusable.add(key.section)
            continue
        if key.adds_up and isinstance(value, tuple):
            each[key.id] = (*each.get(key.id, ()), *(origin for _ in value))
        if key.adds_up and isinstance(before, tuple) and isinstance(value, tuple):
            values[key.id] = before + value
            origins[key.id] = tuple(dict.fromkeys((*origins[key.id], origin)))
        else:
            values[key.id] = value
            origins[key.id] = (origin,)
    return merged


def _complaint(key: ConfigKey, origin: Origin, problem: str) -> str:
    """``config.toml:3: [parallel] enabled must be ...``, or ``--max-steps must be ...``."""
    if origin.layer is Layer.USER_FILE:
        return f"{origin}: [{key.section}] {key.name} {problem}"
    return f"{origin} {problem}"


def _build(merged: _Merged, credentials: Mapping[str, str], problems: list[str]) -> Config:
    """A section of which a value cannot be used stays as built in: what else is wrong there
    may come of that.
    """
    built_in = Config()
    sections: dict[str, Any] = {}  # the table has checked the type of every value
    for section in SECTIONS:
        sections[section] = getattr(built_in, section)
        if section in merged.unusable:
            continue
        chosen = {
            key.name: merged.values[key.id]
            for key in CONFIG_KEYS
            if key.section == section and key.id in merged.values
        }
        try:
            sections[section] = replace(sections[section], **chosen)
        except ValueError as error:
            problems += _conflicts(section, error, merged.origins)
    sections["model"] = replace(sections["model"], **credentials)
    return Config(**sections)


def _conflicts(section: str, error: ValueError, origins: _Origins) -> Iterator[str]:
    """Good values that do not fit together; each line begins with a key's name."""
    for line in str(error).split("\n"):
        key = KEYS_BY_ID[f"{section}.{line.partition(' ')[0]}"]
        yield f"{origins[key.id][-1]}: [{section}] {line}"


def _credentials(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environ.get(variable, "").strip() for variable, name in CREDENTIAL_VARIABLES.items()
    }


def _file_warnings(file: ConfigFile | None) -> Iterator[str]:
    if file is None:
        return
    for section, table in file.values.items():
        if section not in SECTIONS:
            yield _unknown(file.place(section), f"key {section}", section, SECTIONS)
            continue
        names = [key.name for key in CONFIG_KEYS if key.section == section]
        for name in cast("dict[str, object]", table):
            if name in names:
                continue
            place = file.place(section, name)
            if name in CREDENTIAL_VARIABLES.values():
                variable = next(v for v, field in CREDENTIAL_VARIABLES.items() if field == name)
                yield f"{place}: [{section}] {name} is not read from a file; set {variable} instead"
            else:
                yield _unknown(place, f"key [{section}] {name}", name, names)


def _variable_warnings(environ: Mapping[str, str]) -> Iterator[str]:
    """Only for near misses: other programs may use names with our prefix."""
    known = [key.variable for key in CONFIG_KEYS]
    for variable in environ:
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in known:
            nearest = _nearest(variable, known)
            if nearest:
                yield f"unknown variable {variable}; the nearest is {nearest}"


def _unknown(place: str, what: str, name: str, known: Sequence[str]) -> str:
    nearest = _nearest(name, known)
    hint = f"; the nearest is {nearest}" if nearest else f"; known are {', '.join(known)}"
    return f"{place}: unknown {what}{hint}"


def _nearest(name: str, known: Sequence[str]) -> str:
    # Imported here: it costs start-up time and only a mistake needs it.
    import difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), "")


def _parse_rule(text: str) -> object:
    # Imported here: it costs start-up time and many configurations hold no rule.
    from midturn_core.permission.rules import parse_rule

    return parse_rule(text)
