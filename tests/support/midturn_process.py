"""Running the real command of this tree in a process of its own, without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0
"""Seconds; generous, since it only ends a test that hangs."""


def midturn_environment(**more: str) -> dict[str, str]:
    """The environment of the test, with this tree's packages in front."""
    folders = os.pathsep.join(str(ROOT / name) for name in ("cli", "core", "tools"))
    return {**os.environ, "PYTHONPATH": folders, **more}


def run_midturn(
    *arguments: str | bytes,
    stdin: bytes = b"",
    environ: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return run_python(["-m", "midturn_cli.main", *arguments], stdin, environ, cwd)


def run_python(
    arguments: Sequence[str | bytes],
    stdin: bytes = b"",
    environ: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        env=environ if environ is not None else midturn_environment(),
        cwd=cwd,
        timeout=DEADLINE,
        check=False,
    )
