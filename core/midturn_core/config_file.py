"""Reading and changing one TOML file; every complaint says the file, the line and what to do."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from midturn_core.config_keys import KEYS_BY_ID
from midturn_core.errors import ConfigError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

LARGEST_FILE = 1_000_000
"""Bytes. A configuration beyond it is a mistake, such as a wrong path."""

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

LONGEST_STATEMENT = 1_000
"""Lines. Places after a longer one are given as the file alone."""

KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A parsed file. ``lines`` has the line (from 1) where each key or table begins."""

    path: Path
    values: Mapping[str, object]
    lines: Mapping[KeyPath, int]

    def place(self, *key: str) -> str:
        """``file:line`` of a key, or of the nearest table around it."""
        for length in range(len(key), 0, -1):
            if line := self.lines.get(key[:length]):
                return f"{self.path}:{line}"
        return str(self.path)


def read_config_file(path: Path) -> ConfigFile:
    """Parse a file.

    Raises:
        FileNotFoundError: it is not there.
        ConfigError: it cannot be read or is no valid TOML.
    """
    text = _decoded(path, _bytes(path))
    return ConfigFile(path, _parsed(path, text), _key_lines(text))


def save_value(path: Path, section: str, key: str, value: str | bool | int | float) -> None:
    """Set one key in a file and keep everything else in it, comments included.

    The file is replaced in one step; a new one is readable by its owner only. A link stays a link.

    Raises:
        ConfigError: the key is unknown, or the file cannot be read, understood or written.
    """
    _save(path, section, key, lambda _: value)


def add_value(path: Path, section: str, key: str, value: str) -> None:
    """Put one more value at the end of a list in a file, unless it is in it already.

    Everything else is as with ``save_value``.

    Raises:
        ConfigError: the key is no list, or as ``save_value``.
    """

    def added(before: object) -> list[object]:
        if not isinstance(before, list | None):
            raise ConfigError(f"{path}: [{section}] {key} must be a list")
        values = cast("list[object]", before or [])
        return values if value in values else [*values, value]

    _save(path, section, key, added)


def _save(path: Path, section: str, key: str, change: Callable[[object], object]) -> None:
    """``change`` gets the value of the key, None without one, and gives the new one."""
    if f"{section}.{key}" not in KEYS_BY_ID:
        raise ConfigError(f"there is no configuration key [{section}] {key}")
    # Imported here: it costs start-up time and only saving needs it.
    import tomlkit

    text = _text_to_change(path)
    before = _parsed(path, text)
    table = before.get(section, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {section} must be a table: [{section}]")
    values = cast("dict[str, object]", table)
    value = change(values.get(key))
    document = tomlkit.parse(text)
    _set(document, section, key, value)
    changed = tomlkit.dumps(document)
    wanted = {**before, section: {**values, key: value}}
    if _parsed(path, changed) != wanted:
        raise ConfigError(f"{path}: [{section}] {key} cannot be set here; please edit the file")
    try:
        _replace(Path(os.path.realpath(path)), changed.encode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def _text_to_change(path: Path) -> str:
    try:
        return _decoded(path, _bytes(path))
    except FileNotFoundError:
        return ""


def _bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError(f"{path}: is a folder, but a file is expected")
        if not stat.S_ISREG(mode) and str(path) != os.devnull:
            raise ConfigError(f"{path}: is not a regular file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE:,} bytes")
    return data


def _decoded(path: Path, data: bytes) -> str:
    if data.startswith(b"\xef\xbb\xbf"):
        raise ConfigError(
            f"{path}:1:1: begins with a byte order mark; save the file as UTF-8 without BOM"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise ConfigError(
            f"{path}:{_line_and_column(before)}: is not UTF-8; save the file as UTF-8"
        ) from error
    if "\0" in text:
        position = _line_and_column(text[: text.index("\0")])
        raise ConfigError(f"{path}:{position}: has a NUL byte; remove it")
    return text


def _line_and_column(before: str) -> str:
    lines = before.split("\n")
    return f"{len(lines)}:{len(lines[-1]) + 1}"


def _parsed(path: Path, text: str) -> dict[str, object]:
    # Imported here: it costs start-up time and most starts have no file.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_complaint(path, text, str(error))) from error
    except (RecursionError, ValueError) as error:  # nested too deeply, or too long a number
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error


def _syntax_complaint(path: Path, text: str, message: str) -> str:
    lines = text.split("\n")
    line, column = len(lines), len(lines[-1]) + 1
    if found := _POSITION.search(message):
        message = message[: found.start()]
        if found[1]:
            line, column = int(found[1]), int(found[2])
    if message.startswith(("Cannot overwrite", "Cannot declare")):
        name = lines[line - 1].partition("=")[0].strip()
        return f"{path}:{line}: {name} is set a second time; keep one of them"
    return f"{path}:{line}:{column}: invalid TOML: {message[:1].lower()}{message[1:]}"


def _key_lines(text: str) -> dict[KeyPath, int]:
    """Where each key and table of a valid document begins first."""
    places: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement, values in _statements(text):
        paths = list(_paths(values))
        if statement.lstrip().startswith("[") and paths:
            table = paths[-1]
        else:
            paths = [table + path for path in paths]
        for path in paths:
            places.setdefault(path, number)
    return places


def _statements(text: str) -> Iterator[tuple[int, str, Mapping[str, object]]]:
    """Each statement with its line. One that spans lines is complete when it parses by itself."""
    import tomllib

    first, statement = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not statement:
            first = number
        statement += line + "\n"
        if number - first > LONGEST_STATEMENT:
            return
        try:
            values = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        yield first, statement, values
        statement = ""


def _paths(values: Mapping[str, object]) -> Iterator[KeyPath]:
    for name, value in values.items():
        yield (name,)
        inner = cast("list[object]", value)[-1:] if isinstance(value, list) else [value]
        if inner and isinstance(inner[0], dict):
            yield from ((name, *path) for path in _paths(cast("dict[str, object]", inner[0])))


def _set(document: TOMLDocument, section: str, key: str, value: object) -> None:
    import tomlkit
    from tomlkit.items import Array

    if section not in document:
        document[section] = tomlkit.table()
    table = cast("MutableMapping[str, object]", document[section])
    before = table.get(key)
    if isinstance(before, Array) and isinstance(value, list):
        # Only what is new, so that the comments and lines of the others stay.
        array = cast("MutableSequence[object]", before)
        array.extend(cast("list[object]", value)[len(array) :])
    else:
        table[key] = tomlkit.item(value)


def _replace(target: Path, data: bytes) -> None:
    # Imported here: it costs start-up time and only saving needs it.
    import tempfile

    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
