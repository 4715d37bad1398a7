"""The variables that Midturn was started with: what others can see of them, and what it keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_tools import _start_environment

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, subprocess
from pathlib import Path
from midturn_tools._start_environment import blank_start_environment
os.environ["OTHER_TOKEN"] = "changed"
blank_start_environment()
blank_start_environment()
shown = Path("/proc/self/environ").read_bytes()
print(b"open-sesame" in shown, b"PLAIN=stays" in shown)
print(os.environ["MY_TOKEN"], os.environ["OTHER_TOKEN"])
print(subprocess.run("echo $MY_TOKEN $OTHER_TOKEN", shell=True, capture_output=True, text=True).stdout)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file shows them")
def test_secrets_vanish_from_the_start_variables_and_stay_in_use() -> None:
    """MB-0714: a child with the variables of Midturn, such as an editor, has them as before."""
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "tools"))
    secrets = {"MY_TOKEN": "open-sesame", "OTHER_TOKEN": "open-sesame", "EMPTY_TOKEN": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "PLAIN": "stays", **secrets},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.split() == ["False", "True", *["open-sesame", "changed"] * 2]


@pytest.mark.parametrize("told", [b"", b"1 (python) S 1 1 1"])
def test_a_system_that_tells_less_of_a_process_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bytes
) -> None:
    status = tmp_path / "stat"
    status.write_bytes(told)
    monkeypatch.setattr(_start_environment, "_STATUS", status)
    monkeypatch.setenv("MY_TOKEN", "open-sesame")
    _start_environment.blank_start_environment.__wrapped__()
    assert os.environ["MY_TOKEN"] == "open-sesame"
