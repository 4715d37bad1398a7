"""Keeping what a command has changed for later sessions, in the user's configuration file."""

from __future__ import annotations

from collections.abc import Iterable

from midturn_cli.commands.command import CommandError, Use
from midturn_core.config_loader import Layer, save_value
from midturn_core.errors import ConfigError

SAVE = "--save"


def save_setting(use: Use, section: str, key: str, value: str | bool | int | float) -> None:
    """Write one key and say so.

    Raises:
        CommandError: the file cannot be read, understood or written.
    """
    file = use.engine.launch.loaded.file
    try:
        save_value(file, section, key, value)
    except ConfigError as error:
        problem = f"It holds for this session, but was not saved to {file}: {error}"
        raise CommandError(problem) from error
    use.say(f"Saved to {file} for later sessions.{overridden(use, [f'{section}.{key}'])}")


def overridden(use: Use, keys: Iterable[str]) -> str:
    """Which of the saved ``section.key`` the environment or a flag of this start wins over."""
    origins = use.engine.launch.loaded.origins
    over = [
        str(origin)
        for key in keys
        for origin in origins[key]
        if origin.layer in (Layer.ENVIRONMENT, Layer.FLAG)
    ]
    return f" As long as you start with {', '.join(over)}, that wins over it." if over else ""
