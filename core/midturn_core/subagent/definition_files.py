"""Subagent types as Markdown files in the user's configuration folder.

Front matter says what the type is, the text below it is what its system prompt says. A file that
cannot be used costs its type alone, with a sentence about it. No project folder is looked at: what
lies there is not trusted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from midturn_core.front_matter import Entry, FrontMatter, FrontMatterError, read_front_matter
from midturn_core.session.log import read_regular
from midturn_core.subagent.types import (
    DEFAULT_MAX_STEPS,
    MAX_STEPS_LIMIT,
    READ_ONLY_TOOLS,
    TASK_TOOL,
    SubagentType,
    SubagentTypes,
)

FOLDER = "agents"
MAX_BYTES = 65_536
KEYS = ("name", "description", "tools", "model", "max_steps", "read_only")
MCP_PREFIX = "mcp__"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class DefinedTypes:
    types: SubagentTypes
    warnings: tuple[str, ...]
    """One sentence per thing that is wrong: the file, the line, what, and how to fix it."""


def read_definitions(folder: Path, tool_names: Collection[str]) -> DefinedTypes:
    """The built-in types and those of the ``*.md`` files in ``folder``, in order of file names."""
    defined: dict[str, SubagentType] = {}
    warnings: list[str] = []
    for path in _files(folder, warnings):
        try:
            kind, doubts = _read(path, tool_names)
        except FrontMatterError as error:
            warnings.append(f"{path}:{error.line}: {error}; the subagent type is left out")
            continue
        except OSError as error:
            warnings.append(f"{path}: {error.strerror}; the subagent type is left out")
            continue
        warnings += [f"{path}:{doubt.line}: {doubt}" for doubt in doubts]
        if kind.name in defined:
            other = defined[kind.name].source
            warnings.append(f"{path}: {other} defines {kind.name} too; this one is left out")
            continue
        defined[kind.name] = kind
    return DefinedTypes(SubagentTypes(defined.values()), tuple(warnings))


def _files(folder: Path, warnings: list[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except FileNotFoundError:
        return []
    except OSError as error:
        warnings.append(f"{folder}: {error.strerror}; no subagent types are read from it")
        return []


def _read(path: Path, tool_names: Collection[str]) -> tuple[SubagentType, list[FrontMatterError]]:
    data = read_regular(path, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FrontMatterError(1, f"the file is larger than {MAX_BYTES:,} bytes")
    try:
        matter = read_front_matter(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FrontMatterError(line, "it is not UTF-8; save it as UTF-8") from error
    doubts = [
        FrontMatterError(entry.line, f"unknown key {key} is ignored{_nearest(key, KEYS)}")
        for key, entry in matter.entries.items()
        if key not in KEYS
    ]
    return _kind(matter, tool_names, path), doubts


def _kind(matter: FrontMatter, tool_names: Collection[str], path: Path) -> SubagentType:
    name = _required(matter, "name")
    if not _NAME.fullmatch(name):
        line = matter.entries["name"].line
        raise FrontMatterError(line, f"name is {name!r}, but must be like code-reviewer")
    if not matter.body:
        raise FrontMatterError(1, "write below the front matter what the subagent is to know")
    read_only = _switch(matter, "read_only")
    model = _text(matter, "model")
    return SubagentType(
        name=name,
        description=" ".join(_required(matter, "description").split()),
        instructions=matter.body,
        tools=_tools(matter, tool_names, read_only),
        read_only=read_only,
        model="" if model == "inherit" else model,
        max_steps=_steps(matter),
        source=str(path),
    )


def _text(matter: FrontMatter, key: str) -> str:
    entry = matter.entries.get(key)
    if entry is None:
        return ""
    if not isinstance(entry.value, str):
        raise FrontMatterError(entry.line, f"{key} is a list, but must be one text")
    return entry.value.strip()


def _required(matter: FrontMatter, key: str) -> str:
    text = _text(matter, key)
    if not text:
        entry = matter.entries.get(key)
        raise FrontMatterError(entry.line if entry else 1, f"{key} is missing; write {key}: ...")
    return text


def _switch(matter: FrontMatter, key: str) -> bool:
    text = _text(matter, key)
    if text not in ("", "true", "false"):
        line = matter.entries[key].line
        raise FrontMatterError(line, f"{key} is {text!r}, but must be true or false")
    return text == "true"


def _steps(matter: FrontMatter) -> int:
    text = _text(matter, "max_steps")
    if not text:
        return DEFAULT_MAX_STEPS
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= MAX_STEPS_LIMIT:
        raise FrontMatterError(
            matter.entries["max_steps"].line,
            f"max_steps is {text!r}, but must be a whole number from 1 to {MAX_STEPS_LIMIT}",
        )
    return int(text)


def _tools(matter: FrontMatter, known: Collection[str], read_only: bool) -> tuple[str, ...]:
    entry = matter.entries.get("tools")
    if entry is None:
        return ()
    names = _names(entry)
    if not names:
        raise FrontMatterError(entry.line, "tools is empty; leave it out for all tools")
    for name in names:
        if name == TASK_TOOL:
            raise FrontMatterError(entry.line, "subagents start no subagents; take Task out")
        if name not in known and not name.startswith(MCP_PREFIX):
            hint = _nearest(name, known)
            raise FrontMatterError(
                entry.line, f"there is no tool {name!r}{hint}; /tools lists them"
            )
        if read_only and name not in READ_ONLY_TOOLS:
            may = ", ".join(READ_ONLY_TOOLS)
            raise FrontMatterError(entry.line, f"{name} does not only read; read_only allows {may}")
    return names


def _names(entry: Entry) -> tuple[str, ...]:
    if isinstance(entry.value, tuple):
        return entry.value
    return tuple(name.strip() for name in entry.value.split(",") if name.strip())


def _nearest(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""
