"""What 10,000 waiting inputs cost the screen: keys and Enter, as ratios to an empty queue.

The real command on a pseudo-terminal, idle and while an answer streams, with the queue in memory
and in its file. For each, two programs run side by side and are measured in turns, so that whatever
else the machine does falls on both. A key's latency is the time until the terminal has received its
letter; that of an Enter, until the row of the input stands above the input line. Target: at most
1.5 times that of an empty queue. A part of that is no matter of how many wait: a queue that is not
empty has a few rows on screen, and they are there with ten inputs as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("cli", "core", "tools"))]

from benchmarks.terminal import KEY_SECONDS, READING, isolated_home, service  # noqa: E402
from tests.support.full_midturn import CONFIG, COUNT  # noqa: E402
from tests.support.live_midturn import GLYPH, LiveMidturn, Start  # noqa: E402
from tests.support.midturn_process import midturn_environment  # noqa: E402

WAITING = 10_000
TARGET = 1.5
KEYS_PER_ROUND = 20
ENTERS_PER_ROUND = 5
FULL_MIDTURN = (sys.executable, "-m", "tests.support.full_midturn")


@dataclass(slots=True)
class Samples:
    """Milliseconds of one program."""

    keys: list[float] = field(default_factory=list[float])
    enters: list[float] = field(default_factory=list[float])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    with isolated_home():
        for backend in ("memory", "sqlite"):
            report(backend, rounds)


def report(backend: str, rounds: int) -> None:
    with service(str(READING)) as address, ExitStack() as stack:
        empty, full = (
            stack.enter_context(session_with(count, backend, address)) for count in (0, WAITING)
        )
        idle = measure(empty, full, rounds, enters=False)
        for live in (empty, full):
            live.enter("go")
            live.wait("001 .*this", timeout=60)
        busy = measure(empty, full, rounds, enters=True)
    show(f"{backend}, idle: key", *(samples.keys for samples in idle))
    show(f"{backend}, answer streams: key", *(samples.keys for samples in busy))
    show(f"{backend}, answer streams: Enter", *(samples.enters for samples in busy))


def measure(
    empty: LiveMidturn, full: LiveMidturn, rounds: int, *, enters: bool
) -> tuple[Samples, Samples]:
    both = Samples(), Samples()
    for _ in range(rounds):
        for live, samples in zip((empty, full), both, strict=True):
            samples.keys += echo_ms(live)
            samples.enters += [enter_ms(live) for _ in range(ENTERS_PER_ROUND if enters else 0)]
    return both


def echo_ms(live: LiveMidturn) -> list[float]:
    samples = [seen for seen in live.echo_samples(KEYS_PER_ROUND, KEY_SECONDS) if seen is not None]
    assert len(samples) == KEYS_PER_ROUND, "a key was missed"
    return [1e3 * seen for seen in samples]


def enter_ms(live: LiveMidturn) -> float:
    """From Enter to the row above the input line that shows what waits."""
    text = f"steer{time.monotonic_ns()}"
    live.type(f"/later {text}")
    start, sent = live.mark(), time.perf_counter()
    live.key("enter")
    seen = live.log.wait_bytes(text.encode(), start, 60.0)
    assert seen is not None
    return 1e3 * (seen - sent)


def show(name: str, empty: list[float], full: list[float]) -> None:
    parts: list[str] = []
    for word, of in (("p50", statistics.median), ("p95", p95)):
        base, loaded = of(empty), of(full)
        parts.append(f"{word} {base:6.1f} -> {loaded:6.1f} ms = {loaded / base:4.2f}x")
    print(f"{name:32} {'   '.join(parts)}   (target: p50 <= {TARGET})")


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


@contextmanager
def session_with(count: int, backend: str, address: str) -> Generator[LiveMidturn]:
    config = CONFIG + f'backend = "{backend}"\n'
    path = os.pathsep.join((str(ROOT), midturn_environment()["PYTHONPATH"]))
    settings = {
        "PYTHONPATH": path,
        COUNT: str(count),
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "none",
    }
    environ = midturn_environment(**settings)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        write_config(home, config)
        environ |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home)}
        start = Start(command=FULL_MIDTURN, cols=100, rows=30)
        with LiveMidturn(Path(folder), start, environ) as live:
            live.see(GLYPH)
            live.see(f"{count} LATER" if count else "default")
            live.wait_idle(quiet=1.0, timeout=60)
            yield live


def write_config(home: Path, text: str) -> None:
    file = home / "midturn" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


if __name__ == "__main__":
    main()
