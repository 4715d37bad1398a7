"""How live the input line is while an answer streams, and what that costs.

Everything is measured in one run, on pseudo-terminals, with the real command against a scripted
service on loopback. The yardstick is a bare prompt_toolkit prompt that does nothing but echo: a
ratio to it says the same on a slow and on a fast machine. Typed are letters that occur in no
output; a key's latency is the time until the terminal has received its letter.

Keys beside eight searches are compared with a bare prompt that runs the same searches, in its own
session and niced as Midturn's are: a busy machine makes every program wait for a time slice, and
only what comes on top of that is ours. The bound is 3 times: two frames may be in the way of a key,
and each waits for its slice like the bare prompt. That no key is missed has no tolerance.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("cli", "core", "tools"))]

from tests.support.live_midturn import GLYPH, LiveMidturn, Start  # noqa: E402
from tests.support.messages_script import Calls, RawBytes, Reply, Says  # noqa: E402
from tests.support.messages_server import MessagesServer  # noqa: E402
from tests.support.midturn_process import midturn_environment  # noqa: E402
from tests.support.pty_harness import PtySession  # noqa: E402
from tests.support.terminal_log import Flicker, Latency  # noqa: E402

BARE_PROMPT = 'from prompt_toolkit import PromptSession; PromptSession("› ").prompt()'
READING = 0.01
"""Seconds between tokens as a service streams them; 0 sends as fast as they are taken."""
SEARCHES = "searches"
STREAM_AND_SEARCHES = "stream and searches"
KEY_SECONDS = 0.04
QUIET_SECONDS = 10.0
SETTLING_SECONDS = 15.0
"""After these an idle session has done with what its start made it look at."""
WORDS = ("stream ", "goes ", "on ", "and ", "on, ") * 8
ROW = ("{:03} ", "this ", *WORDS, "to ", "its ", "end", ".\n\n")
NUMBERS = 1000
"""Rows are numbered, and after so many the numbers begin again."""
ROUNDS = 500
TOKENS_PER_CHUNK = 46
"""How many tokens one network chunk of the flood holds."""
UNSEEN = Flicker(0, 0, 0, False)
GREPS = 8
GREPS_PER_STEP = 48
"""More than run at once, so that the searches last for most of the measurement."""
GREP_STEPS = 40
EARLY_SEARCHES = '[parallel]\nmixed = "segments"\nstart = "streaming"\n'
"""Searches start as soon as their call is whole, while the answer goes on."""
WORDS_BETWEEN = ("searching ", "once ", "more.\n\n")
SEARCH_PACE = 0.003
"""Seconds between the events of an answer whose searches run beside it: some 40 calls a second, and
100 tokens.
"""
NICENESS = "10"
TREE_FILES = 100
FILE_BYTES = 500_000
LINE = "plain words of a file that is searched from its beginning to its end 12345\n"
BESIDE = "while kill -0 $0; do {} >/dev/null; done"
"""Again and again until the process whose id is the first argument has ended."""
NOT_THERE = r"(\w+\s+)+\d{7}"
BARE_READER = """
import asyncio, sys, time
import anthropic

async def main():
    client = anthropic.AsyncAnthropic(api_key="none", base_url=sys.argv[1])
    said = [{"role": "user", "content": "go"}]
    stream = await client.messages.create(model="m", max_tokens=9, messages=said, stream=True)
    events, started = 0, 0.0
    async for event in stream:
        events += 1
        if events == 100:
            started = time.process_time()
        if events == 100 + int(sys.argv[2]):
            break
    print((time.process_time() - started) / int(sys.argv[2]))

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What streaming took while no key was pressed."""

    seconds: float
    cpu_seconds: float
    tokens: int
    bytes: int
    flicker: Flicker
    """Of all moments at which a terminal could paint."""
    torn: Flicker
    """Of those outside a synchronized frame."""

    @property
    def cpu_percent(self) -> float:
        return 100 * self.cpu_seconds / self.seconds


@dataclass(frozen=True, slots=True)
class IdleCost:
    """What a session takes in which nothing happens."""

    bytes: int
    cpu_percent: float
    """Of one core."""
    wake_ups: float
    """Per second, of all threads together."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100, help="keys per measurement")
    parser.add_argument("--serve", metavar="PACE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve in (SEARCHES, STREAM_AND_SEARCHES):
        serve_searches(streams=arguments.serve == STREAM_AND_SEARCHES)
        return
    if arguments.serve is not None:
        serve(float(arguments.serve))
        return
    with isolated_home():
        report(arguments.keys)


def report(keys: int) -> None:
    bare = bare_echo(keys)
    idle = idle_cost()
    with streaming(READING) as (live, address):
        reading_echo, reading = live.echo(keys, KEY_SECONDS), cost(live)
        slow_reader = bare_reader_ms(address, 500)
    with streaming(0.0) as (live, address):
        flood_echo, flood = live.echo(keys, KEY_SECONDS), cost(live, looking=False)
        fast_reader = bare_reader_ms(address, 30_000)
    busy_bare, _ = bare_echo_with_searches(keys)
    searching, searches = searching_echo(keys, SEARCHES)
    stream_and_searching, searches_beside = searching_echo(keys, STREAM_AND_SEARCHES)
    print_echo("bare prompt_toolkit prompt", bare, bare)
    print_echo(f"midturn, {rate(reading)}", reading_echo, bare)
    print_echo(f"midturn, {rate(flood)}", flood_echo, bare)
    print_echo(f"bare prompt with {GREPS} searches", busy_bare, busy_bare)
    print_echo(f"midturn, {searches:.1f} Greps at a time", searching, busy_bare)
    print_echo(f"midturn, stream, {searches_beside:.1f} Greps", stream_and_searching, busy_bare)
    print_cost(f"CPU, {rate(reading)}", f"{reading.cpu_percent:.1f} % of a core", "<= 15 %")
    print_cost("CPU of 1,000 of these tokens", against(reading, slow_reader), "")
    print_cost("CPU of 1,000 tokens of a flood", against(flood, fast_reader), "<= 5x")
    print_cost("bytes per token", f"{reading.bytes / reading.tokens:.1f}", "<= 40")
    print_cost("prompt missing when painted", share(reading.flicker), "<= 2 %")
    print_cost("prompt missing outside frames", share(reading.torn), "0 %")
    awake = f"CPU {idle.cpu_percent:.3f} %, {idle.wake_ups:.1f} wake-ups/s"
    print_cost("idle", f"{idle.bytes} bytes, {awake}", "0 bytes, < 1 %, <= 1.1/s")


def print_echo(name: str, echo: Latency, bare: Latency) -> None:
    p50, p95 = echo.p50_ms / bare.p50_ms, echo.p95_ms / bare.p95_ms
    keys = echo.count + echo.missed
    print(
        f"{name:32} echo p50 {echo.p50_ms:6.1f} ms = {p50:4.1f}x"
        f"   p95 {echo.p95_ms:6.1f} ms = {p95:4.1f}x   missed {echo.missed} of {keys}"
    )


def print_cost(name: str, value: str, target: str) -> None:
    print(f"{name:32} {value:28}" + (f" (target: {target})" if target else ""))


def against(cost: Cost, reader_ms: float) -> str:
    milliseconds = 1e6 * cost.cpu_seconds / cost.tokens
    return f"{milliseconds:.0f} ms = {milliseconds / reader_ms:.1f}x a bare reader"


def rate(cost: Cost) -> str:
    return f"{cost.tokens / cost.seconds:,.0f} tokens/s"


def share(flicker: Flicker) -> str:
    return f"{100 * flicker.missing / max(1, flicker.boundaries):.2f} % of {flicker.boundaries}"


def bare_echo(keys: int) -> Latency:
    with PtySession([sys.executable, "-c", BARE_PROMPT]) as session:
        session.wait(GLYPH, timeout=60)
        return session.echo(keys, KEY_SECONDS)


def idle_cost() -> IdleCost:
    """Of a session in which nothing was typed and nothing waits."""
    with session_on("http://127.0.0.1:1") as live:
        live.see("default")
        live.wait_idle(quiet=1.0)
        time.sleep(SETTLING_SECONDS)
        start, (busy, woken), began = live.mark(), scheduled(live), time.perf_counter()
        time.sleep(QUIET_SECONDS)
        seconds, (busy_then, woken_then) = time.perf_counter() - began, scheduled(live)
        return IdleCost(
            bytes=live.mark() - start,
            cpu_percent=100 * (busy_then - busy) / seconds,
            wake_ups=(woken_then - woken) / seconds,
        )


def scheduled(session: PtySession) -> tuple[float, int]:
    """Seconds on a processor, and how often a thread fell asleep; of all threads that live.

    The scheduler counts nanoseconds. The ticks of ``cpu_seconds`` are 10 ms, more than an idle
    session uses in all.
    """
    seconds, asleep = 0.0, 0
    for task in Path(f"/proc/{session.process.pid}/task").iterdir():
        with suppress(FileNotFoundError):
            seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
            found = re.search(
                r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.M
            )
            asleep += int(found[1]) if found else 0
    return seconds, asleep


def cost(live: LiveMidturn, *, looking: bool = True) -> Cost:
    """Of the next seconds; ``looking`` is for output that can be replayed in a short time."""
    live.wait_idle(quiet=0.02, timeout=0.1)
    start, cpu, began = live.mark(), live.cpu_seconds(), time.perf_counter()
    time.sleep(QUIET_SECONDS)
    seconds, used, end = time.perf_counter() - began, live.cpu_seconds() - cpu, live.mark()
    return Cost(
        seconds=seconds,
        cpu_seconds=used,
        tokens=len(ROW) * rows_in(bytes(live.log.data[start:end])),
        bytes=end - start,
        flicker=live.flicker(GLYPH, start, end) if looking else UNSEEN,
        torn=live.flicker(GLYPH, start, end, honour_sync=True) if looking else UNSEEN,
    )


def rows_in(data: bytes) -> int:
    """How many rows of the stream were shown in these bytes; repainted ones count once."""
    shown = 0
    numbers = [int(number) for number in re.findall(rb"\b(\d{3}) this", data)]
    newest = numbers[0] if numbers else 0
    for number in numbers:
        ahead = (number - newest) % NUMBERS
        if ahead < NUMBERS // 2:
            shown, newest = shown + ahead, number
    return shown


@contextmanager
def streaming(pace: float) -> Generator[tuple[LiveMidturn, str]]:
    """A session in the middle of an answer that outlasts every measurement; the service."""
    with service(str(pace)) as address, session_on(address) as live:
        live.enter("go")
        live.wait("001 .*this", timeout=60)
        yield live, address


@contextmanager
def service(kind: str) -> Generator[str]:
    """The address of a service in a process of its own."""
    command = [sys.executable, __file__, "--serve", kind]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def bare_echo_with_searches(keys: int) -> tuple[Latency, float]:
    """Of a bare prompt while eight searches over 50 MB run again and again, as Midturn runs them."""
    program = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
    search = f"{shlex.quote(program)} --json -e {shlex.quote(NOT_THERE)} ."
    searches = f"nice -n {NICENESS} sh -c {shlex.quote(BESIDE.format(search))} $$ &" * GREPS
    prompt = shlex.join(["exec", sys.executable, "-c", BARE_PROMPT])
    with tempfile.TemporaryDirectory() as folder:
        grow_tree(Path(folder))
        with PtySession(["sh", "-c", f"{searches} {prompt}"], cwd=folder) as session:
            session.wait(GLYPH, timeout=60)
            return echo_and_searches(session, keys)


def searching_echo(keys: int, kind: str) -> tuple[Latency, float]:
    """Of Midturn while up to eight searches over 50 MB run at a time."""
    write_config(EARLY_SEARCHES if kind == STREAM_AND_SEARCHES else "")
    arguments = ("--parallel", "--max-concurrency", str(GREPS))
    with service(kind) as address, session_on(address, arguments) as live:
        grow_tree(live.workspace)
        live.enter("go")
        live.wait("Grep", timeout=60)
        return echo_and_searches(live, keys)


def echo_and_searches(session: PtySession, keys: int) -> tuple[Latency, float]:
    """The echo of keys, and how many searches of the session ran meanwhile, on average."""
    counts: list[int] = []
    done = threading.Event()

    def count() -> None:
        while not done.wait(KEY_SECONDS):
            counts.append(searches_in(session.process.pid))

    counting = threading.Thread(target=count)
    counting.start()
    try:
        echo = session.echo(keys, KEY_SECONDS)
    finally:
        done.set()
        counting.join()
    return echo, sum(counts) / len(counts)


def searches_in(session: int) -> int:
    running = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, fields = status.read_text().partition("(")[2].rpartition(")")
            running += name == "rg" and fields.split()[3] == str(session)
    return running


def write_config(text: str) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "midturn"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def grow_tree(folder: Path) -> None:
    for number in range(TREE_FILES):
        text = LINE * (FILE_BYTES // len(LINE))
        (folder / f"part-{number:03}.txt").write_text(text, encoding="utf-8")


def bare_reader_ms(address: str, events: int) -> float:
    """CPU of taking 1,000 events with the SDK alone, in milliseconds; of so many."""
    command = [sys.executable, "-c", BARE_READER, address, str(events)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return 1e6 * float(done.stdout)


@contextmanager
def session_on(address: str, arguments: tuple[str, ...] = ()) -> Generator[LiveMidturn]:
    environ = midturn_environment(ANTHROPIC_BASE_URL=address, ANTHROPIC_API_KEY="none")
    with tempfile.TemporaryDirectory() as folder:
        live = LiveMidturn(Path(folder), Start(arguments, cols=100, rows=30), environ)
        with live:
            live.see(GLYPH)
            yield live


def serve(pace: float) -> None:
    """Be the service, in a process of its own, until standard input ends."""
    tokens = [piece.format(row) for row in range(NUMBERS) for piece in ROW]
    size = 1 if pace else TOKENS_PER_CHUNK
    chunks = [
        RawBytes(b"".join(map(delta, tokens[start : start + size])))
        for start in range(0, len(tokens), size)
    ]
    answer = Reply(Says("It begins.\n\n", *chunks * ROUNDS), pace=pace)
    with MessagesServer(answer, answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def serve_searches(*, streams: bool) -> None:
    """Be a service whose every answer searches; ``streams``: while it still comes."""
    search = Calls("Grep", None, json.dumps({"pattern": NOT_THERE, "path": "."}))
    step = [search, Says(*WORDS_BETWEEN)] if streams else [search]
    reply = Reply(*step * GREPS_PER_STEP, pace=SEARCH_PACE if streams else 0.0)
    with MessagesServer(*[reply] * GREP_STEPS) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def delta(token: str) -> bytes:
    """One event of the stream; the text block it belongs to is the first."""
    text = {"type": "text_delta", "text": token}
    event = {"type": "content_block_delta", "index": 0, "delta": text}
    return f"event: content_block_delta\ndata: {json.dumps(event)}\n\n".encode()


@contextmanager
def isolated_home() -> Generator[None]:
    with tempfile.TemporaryDirectory() as home:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIDTURN_", "ANTHROPIC_"))}
        folders = {name: home for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        os.environ.clear()
        os.environ.update(kept, **folders, NO_PROXY="127.0.0.1")
        yield


if __name__ == "__main__":
    main()
