"""The queue as OpenTelemetry metrics: names, units, attributes, and nothing without an SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_core.queue.telemetry import sdk_is_installed

ROOT = Path(__file__).parents[3]
DEADLINE = 120.0


def run_probe(folder: Path, *on_path: Path) -> list[tuple[str, str, float, dict[str, str]]]:
    """What a session of the process ``tests/support/telemetry_probe.py`` records."""
    path = [ROOT, *(ROOT / name for name in ("cli", "core", "tools")), *on_path]
    environ = {
        **os.environ,
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    command = [sys.executable, "-m", "tests.support.telemetry_probe", str(folder)]
    done = subprocess.run(
        command, env=environ, cwd=folder, capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    return [tuple(record) for record in json.loads(done.stdout)]


@pytest.fixture
def stand_in_sdk(tmp_path: Path) -> Path:
    """A folder with a package of the name; what it does is done by the provider of the probe."""
    package = tmp_path / "site" / "opentelemetry" / "sdk"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return tmp_path / "site"


def test_a_session_records_what_enters_and_leaves_its_queue(
    tmp_path: Path, stand_in_sdk: Path
) -> None:
    *counted, (name, unit, age, tier) = run_probe(tmp_path, stand_in_sdk)
    later = {"priority": "LATER"}
    assert counted == [
        ("midturn.queue.enqueued", "{input}", 1, later),
        ("midturn.queue.enqueued", "{input}", 1, later),
        ("midturn.queue.removed", "{input}", 1, {**later, "reason": "cancelled"}),
        ("midturn.queue.drained", "{input}", 1, later),
    ]
    assert (name, unit, tier) == ("midturn.queue.age_on_drain", "s", later)
    assert 0 <= age < DEADLINE


def test_without_an_sdk_nothing_is_found_and_nothing_imported() -> None:
    script = (
        "import sys; from midturn_core.queue import telemetry;"
        "print(telemetry.sdk_is_installed(), [n for n in sys.modules if n.startswith('opentelemetry.')])"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "core")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False []"


def test_an_sdk_is_found_without_importing_it(
    stand_in_sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not sdk_is_installed()
    (stand_in_sdk / "opentelemetry" / "sdk" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.setattr(sys, "path", [*sys.path, str(stand_in_sdk)])
    assert sdk_is_installed()
