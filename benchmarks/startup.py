"""How long until the input line takes keys, as a ratio to importing the input library alone.

Both are whole processes of one run, taken in turns: ``midturn demo`` in a pseudo-terminal from its
start to the echo of a key that was typed at once, and ``python -c "import asyncio,
prompt_toolkit"``. Target: at most 1.6.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = "import asyncio, prompt_toolkit"
LETTER = "ž"
DEADLINE = 60.0


def baseline() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", BASELINE], check=True, env=environment())
    return time.perf_counter() - began


def echoing(command: list[str], home: str) -> float:
    """Seconds from the start of the command to the echo of a key typed into it."""
    master, slave = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=home,
        env=environment(HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home),
        start_new_session=True,
    )
    os.close(slave)
    try:
        wait_for(master, "›".encode())
        os.write(master, LETTER.encode())
        wait_for(master, LETTER.encode())
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        os.close(master)


def wait_for(descriptor: int, needle: bytes) -> None:
    seen = b""
    until = time.perf_counter() + DEADLINE
    while needle not in seen:
        if time.perf_counter() > until or not select.select([descriptor], [], [], DEADLINE)[0]:
            raise TimeoutError(f"no {needle!r} within {DEADLINE} s; got {seen[-300:]!r}")
        seen += os.read(descriptor, 65536)


def environment(**extra: str) -> dict[str, str]:
    """Ours with this tree, and with bytecode: without it the figures are those of the compiler."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    folders = os.pathsep.join(str(ROOT / name) for name in ("cli", "core", "tools"))
    return {**kept, "TERM": "xterm-256color", "PYTHONPATH": folders, **extra}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    command = [sys.executable, "-m", "midturn_cli.main", "demo"]
    with tempfile.TemporaryDirectory() as home:
        echoing(command, home)  # writes the bytecode
        pairs = [(baseline(), echoing(command, home)) for _ in range(runs)]
    base = statistics.median(first for first, _ in pairs)
    ours = statistics.median(second for _, second in pairs)
    print(f'python -c "{BASELINE}"    {base * 1000:7.0f} ms  (median of {runs})')
    print(f"midturn demo, key echoed                  {ours * 1000:7.0f} ms")
    print(f"ratio                                     {ours / base:7.2f}     (target: <= 1.60)")


if __name__ == "__main__":
    main()
