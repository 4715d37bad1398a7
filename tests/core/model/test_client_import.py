"""The client costs nothing until it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import midturn_core

HEAVY = ("anthropic", "httpx2", "httpx", "pydantic", "opentelemetry", "mcp", "email.utils")

PROGRAM = """
import sys
import midturn_core.model.anthropic_client as module
from midturn_core.model.client_settings import ClientSettings
client = module.AnthropicClient(ClientSettings("a-model"))
print(*sys.modules)
"""


def test_importing_and_making_a_client_loads_nothing_heavy() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "midturn_core.model.wire" in loaded
    assert not loaded.intersection(HEAVY)


def test_the_sdk_is_imported_in_one_module_only() -> None:
    root = Path(midturn_core.__file__).parent
    importers = {
        path.name
        for path in root.rglob("*.py")
        if any(f"import {name}" in path.read_text() for name in ("anthropic\n", "httpx2\n"))
    }
    assert importers == {"anthropic_client.py"}
