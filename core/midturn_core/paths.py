"""Where Midturn keeps its own files: configuration, state, sessions.

An absolute ``XDG_CONFIG_HOME`` or ``XDG_STATE_HOME`` is honoured everywhere; without one the
platform's own folder is used. The project's folder is never among them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

APP_NAME = "midturn"


def config_folder(environ: Mapping[str, str]) -> Path:
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def config_file(environ: Mapping[str, str]) -> Path:
    """The user's configuration file; it need not exist."""
    return config_folder(environ) / "config.toml"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Logs, input history and sessions."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def sessions_folder(environ: Mapping[str, str], *, demo: bool = False) -> Path:
    """Those of the demo are apart: a real model must not go on with what a script said."""
    return state_folder(environ) / ("demo-sessions" if demo else "sessions")


def queue_file(environ: Mapping[str, str]) -> Path:
    """Where inputs wait when ``[queue] path`` is empty: one file for all sessions."""
    return state_folder(environ) / "queue.db"


def running_folder(environ: Mapping[str, str]) -> Path:
    """Where each running session says that it runs."""
    return state_folder(environ) / "run"


def log_file(environ: Mapping[str, str]) -> Path:
    """Where the log goes when ``[log] file`` is empty."""
    return state_folder(environ) / "midturn.log"


def home_folder(environ: Mapping[str, str]) -> Path:
    """The user's home, from ``environ`` alone where the platform has it there."""
    home = environ.get("HOME" if os.name == "posix" else "USERPROFILE", "")
    return Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~"))


def _folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    named = environ.get(variable, "")
    if os.path.isabs(named):
        return Path(named) / APP_NAME
    if sys.platform in ("darwin", "win32"):
        return _platform_folder(variable)
    return home_folder(environ) / below_home / APP_NAME


def _platform_folder(variable: str) -> Path:
    # Imported here: it costs start-up time and Linux does not need it.
    import platformdirs

    if variable == "XDG_CONFIG_HOME":
        return platformdirs.user_config_path(APP_NAME, appauthor=False)
    return platformdirs.user_state_path(APP_NAME, appauthor=False)
