"""From arguments to a ``Launch``: everything the REPL or print mode needs to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

from midturn_cli.options import OPTIONS, Arguments, Command, UsageError
from midturn_core.config import Config
from midturn_core.config_loader import ConfigSource, FlagSetting, LoadedConfig, load_config
from midturn_core.version import VERSION

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]

MAX_STEPS = 100
"""Steps of a turn without ``--max-steps``, and its largest value (D33)."""

EMPTY_PRINT = '--print needs a prompt: midturn -p "..." or text on standard input'

LARGEST_INPUT = 10_000_000
"""Bytes of piped text that are taken as part of a prompt."""


class SessionStart(Enum):
    """Which session to begin with."""

    NEW = "new"
    LATEST = "latest"
    CHOOSE = "choose"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of Midturn. ``prompt`` empty: the person types the first one.

    ``session_id`` is set for ``SessionStart.NAMED`` alone; the id may not exist.
    """

    loaded: LoadedConfig
    workspace: Path
    prompt: str = ""
    demo: bool = False
    print_mode: bool = False
    output_format: OutputFormat = "text"
    session: SessionStart = SessionStart.NEW
    session_id: str = ""
    max_steps: int = MAX_STEPS

    @property
    def config(self) -> Config:
        return self.loaded.config


def run(arguments: Arguments) -> int:
    """Open the REPL, or run one turn in print mode; returns the exit code.

    Raises:
        UsageError, ConfigError: it cannot start.
    """
    if arguments.is_on("version"):
        sys.stdout.write(f"midturn {VERSION}\n")
        return 0
    if sys.platform == "win32":
        raise UsageError("Midturn needs Linux or macOS; on Windows run it inside WSL")
    launch = prepare(arguments, os.environ)
    # Imported here: each way needs its own half of the program, and the start is to be short.
    if launch.print_mode:
        from midturn_cli import print_mode

        return print_mode.run(launch)
    from midturn_cli import repl

    return repl.run(launch)


def prepare(arguments: Arguments, environ: Mapping[str, str]) -> Launch:
    """Read the configuration and piped text, and check what the options say together.

    Raises:
        UsageError, ConfigError: it cannot start.
    """
    print_mode = arguments.is_on("print")
    output_format = _output_format(arguments, print_mode)
    session, session_id = _session(arguments)
    max_steps = _max_steps(arguments)
    loaded = load(arguments, environ)
    prompt = given_text(arguments)
    return Launch(
        loaded=loaded,
        workspace=workspace(),
        prompt=with_piped_text(prompt) if print_mode else prompt,
        demo=arguments.command is Command.DEMO,
        print_mode=print_mode,
        output_format=output_format,
        session=session,
        session_id=session_id,
        max_steps=max_steps,
    )


def load(arguments: Arguments, environ: Mapping[str, str]) -> LoadedConfig:
    """The configuration with the flags of a command line on top.

    Raises:
        ConfigError: something in it cannot be used.
    """
    return load_config(config_source(arguments, environ))


def config_source(arguments: Arguments, environ: Mapping[str, str]) -> ConfigSource:
    file = arguments.text("config")
    if file == "":
        raise UsageError("--config needs a path")
    return ConfigSource(
        environ,
        Path(os.path.abspath(os.path.expanduser(file))) if file else None,
        tuple(_flag_settings(arguments)),
    )


def workspace() -> Path:
    """The folder Midturn works in: where it was started, resolved once.

    Raises:
        UsageError: it was deleted or cannot be read.
    """
    try:
        return Path.cwd().resolve()
    except OSError as error:
        raise UsageError("the current folder is not there any more; go to another one") from error


def given_text(arguments: Arguments) -> str:
    """The text of the command line. Bytes that are not UTF-8 arrive as surrogates, which no request
    can hold.
    """
    return arguments.prompt.encode(errors="surrogateescape").decode(errors="replace")


def with_piped_text(prompt: str, empty: str = EMPTY_PRINT) -> str:
    """A prompt and what is piped in, joined once (MB-1204); ``empty`` is what to say without both.

    Raises:
        UsageError: both are empty, or the input is too large.
    """
    piped = _piped_text()
    joined = "\n\n".join(part for part in (prompt.strip(), piped.strip("\n")) if part.strip())
    if not joined:
        raise UsageError(empty)
    return joined


def _piped_text() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    try:
        data = sys.stdin.buffer.read(LARGEST_INPUT + 1)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_INPUT:
        raise UsageError(f"standard input is larger than {LARGEST_INPUT:,} bytes")
    return data.decode("utf-8", errors="replace")


def _flag_settings(arguments: Arguments) -> list[FlagSetting]:
    settings: list[FlagSetting] = []
    for option in OPTIONS:
        value = arguments.values.get(option.field)
        if not option.key or value is None:
            continue
        if isinstance(value, bool):
            flag = option.flag if value else option.off_name
            settings.append(FlagSetting(option.key, flag, str(value).lower()))
        else:
            words = value if isinstance(value, tuple) else (value,)
            settings += [FlagSetting(option.key, option.flag, word) for word in words]
    return settings


def _output_format(arguments: Arguments, print_mode: bool) -> OutputFormat:
    match arguments.text("output_format"):
        case None:
            return "text"
        case "text" | "json" | "stream-json" as known:
            if not print_mode:
                raise UsageError("--output-format needs --print")
            return known
        case other:
            raise UsageError(f'--output-format must be text, json or stream-json, not "{other}"')


def _session(arguments: Arguments) -> tuple[SessionStart, str]:
    resume = arguments.text("resume")
    if resume is not None and arguments.is_on("continue"):
        raise UsageError("--continue and --resume cannot be used together; give one of them")
    if resume is None:
        return (SessionStart.LATEST if arguments.is_on("continue") else SessionStart.NEW), ""
    if resume:
        return SessionStart.NAMED, resume
    if arguments.is_on("print"):
        raise UsageError("--resume needs the ID of a session with --print; nobody can choose there")
    return SessionStart.CHOOSE, ""


def _max_steps(arguments: Arguments) -> int:
    words = arguments.text("max_steps")
    if words is None:
        return MAX_STEPS
    if words.isascii() and words.isdecimal() and len(words) < 4 and 1 <= int(words) <= MAX_STEPS:
        return int(words)
    raise UsageError(f'--max-steps must be a whole number from 1 to {MAX_STEPS}, not "{words}"')
