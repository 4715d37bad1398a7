"""Keeping what a command has changed for later sessions, in the user's configuration file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from midturn_cli.commands.command import Use
from midturn_cli.ui_events import CommandOutput
from midturn_core.config_loader import Layer, save_value
from midturn_core.errors import ConfigError

SAVE = "--save"


def save_setting(use: Use, section: str, key: str, value: str | bool | int | float) -> None:
    """Write one key, beside whatever runs, and say how that went."""
    file = use.engine.launch.loaded.file
    saved = f"Saved to {file} for later sessions.{overridden(use, [f'{section}.{key}'])}"
    start_saving(use, lambda: save_value(file, section, key, value), saved)


def start_saving(use: Use, write: Callable[[], None], saved: str, way_out: str = "") -> None:
    """Let ``write`` change the user's file, beside whatever runs; then say ``saved``, or why it was
    not and the ``way_out``. ``write`` may raise ConfigError.
    """

    def tell(error: ConfigError | None) -> None:
        if error is None:
            use.say(saved)
            return
        file = use.engine.launch.loaded.file
        problem = f"It holds for this session, but was not saved to {file}: {error}{way_out}"
        use.engine.emit(CommandOutput(problem, error=True))

    use.engine.config_writes.start(write, tell)


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
