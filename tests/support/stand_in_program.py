"""Programs of the machine, replaced by scripts that remember what they were given."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class StandIn:
    """A script on the search path."""

    path: Path

    @property
    def taken(self) -> bytes | None:
        """What it was given on its standard input; None when it never ran."""
        file = self.path.with_suffix(".stdin")
        return file.read_bytes() if file.exists() else None

    @property
    def arguments(self) -> list[str]:
        return self.path.with_suffix(".argv").read_text().splitlines()


def stand_in(folder: Path, name: str, after: str = "") -> StandIn:
    """Put a script ``name`` into ``folder``; ``after`` is Python that it runs at the end."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, sys, time\n"
        "me = os.path.splitext(os.path.abspath(__file__))[0]\n"
        "data = sys.stdin.buffer.read()\n"
        "open(me + '.argv', 'w').write('\\n'.join(sys.argv[1:]))\n"
        "open(me + '.part', 'wb').write(data)\n"
        "os.replace(me + '.part', me + '.stdin')\n"
        f"{after}\n"
    )
    path.chmod(0o755)
    return StandIn(path)


def search_only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the search path be this folder, and the machine be used from afar: none of its own
    clipboard programs is in reach of a test.
    """
    monkeypatch.setenv("PATH", os.fspath(folder))
    monkeypatch.setenv("SSH_TTY", "/dev/pts/0")
