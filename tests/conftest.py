"""Every test has a home of its own, and an environment that says nothing about the machine's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.messages_fixtures import every_request_is_valid, messages_server
from tests.support.redis_server import redis_server

# The fixtures of the whole suite; pytest finds the imported ones by name.
__all__ = ["every_request_is_valid", "home", "messages_server", "redis_server"]

# A busy machine is no defect: no limit on an example's time, none on making it.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

_PREFIXES = ("MIDTURN_", "ANTHROPIC_", "XDG_", "GIT_")
_NAMES = frozenset(
    {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM"}
    | {"EDITOR", "VISUAL", "PAGER", "TMUX", "STY", "BASH_ENV", "ENV", "RIPGREP_CONFIG_PATH"}
    | {"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"}
    | {"PYTHONPATH", "PYTHONSTARTUP", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
    | {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder that HOME and the XDG variables point to."""
    folder = tmp_path_factory.mktemp("home")
    for name in tuple(os.environ):
        if name.startswith(_PREFIXES) or name in _NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / ".local" / "share"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return folder
