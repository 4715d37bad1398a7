"""What running the calls of one response together gains, and what the dispatcher costs.

Batches of the real tools run through the real dispatcher, the pages come from a site on loopback
in a process of its own, each after a fixed delay. Everything is a ratio within one run: of a batch
to its slowest call, and of a turn to T_par of S4.2, whose model time is assumed (``--model-ms``).
A fetch needs the processor too, some milliseconds: on a busy machine its ratio is the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("cli", "core", "tools"))]

from midturn_core.call_runner import PendingCall, ToolCallRunner  # noqa: E402
from midturn_core.config import WebConfig  # noqa: E402
from midturn_core.dispatch.config import CallStart, ToolConcurrencyConfig  # noqa: E402
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher  # noqa: E402
from midturn_core.dispatch.report import replay, time_one_by_one, time_together  # noqa: E402
from midturn_core.dispatch.runner import BatchCall, BatchSignals, ToolBatch  # noqa: E402
from midturn_core.dispatch.types import BatchReport  # noqa: E402
from midturn_core.events import BatchFinished  # noqa: E402
from midturn_core.ids import AgentRuntimeId, new_id  # noqa: E402
from midturn_core.interrupt import SignalSource  # noqa: E402
from midturn_core.model.client import BlockFinished, ModelEvent, ModelRequest  # noqa: E402
from midturn_core.model.messages import JsonObject, Outcome, ToolUse, ToolUseResult  # noqa: E402
from midturn_core.read_files import ReadFiles  # noqa: E402
from midturn_core.tool import (  # noqa: E402
    BlockingRunner,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
)
from midturn_tools.grep import GrepTool  # noqa: E402
from midturn_tools.read import ReadTool  # noqa: E402
from midturn_tools.web_fetch import WebFetchTool  # noqa: E402
from tests.core.dispatch.kit import Bench as ToolBench  # noqa: E402
from tests.core.dispatch.kit import safe  # noqa: E402
from tests.support.batch_agent import agent_over  # noqa: E402
from tests.support.scripted_model import ScriptedModel, Step, calls, text, use  # noqa: E402

CONTEXT = AgentRuntimeId("benchmark")
DELAY_MS = 200.0
EARLY_CALLS, WRITING_MS = 4, 150.0
MAX_CALLS = 50
SOME_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 20, 50)
SOME_CAPS = (1, 2, 4, 8, 10)
ALL_SIZES, ALL_CAPS = range(1, MAX_CALLS + 1), range(1, 11)
HOSTS = [f"127.0.0.{number}" for number in range(1, 11)]
"""Several, since what one host is asked for at once has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A tool and its inputs, as many as a batch may have calls."""

    tool: Tool
    inputs: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class Batch:
    """One run: ``wall_ms`` is all of it, from the call of the dispatcher to its return."""

    wall_ms: float
    report: BatchReport

    @property
    def durations(self) -> list[float]:
        return [call.duration_ms for call in self.report.calls]

    @property
    def slowest_ms(self) -> float:
        return max(self.durations)


@dataclass(slots=True)
class Bench:
    """Runs batches of one tool in a workspace."""

    workspace: Path
    model_ms: float
    reads: ReadFiles = field(default_factory=ReadFiles)

    async def run(self, subject: Subject, count: int, cap: int) -> Batch:
        uses = tuple(
            ToolUse(new_id("use"), subject.tool.name, tool_input)
            for tool_input in subject.inputs[:count]
        )
        registry = ToolRegistry([subject.tool])
        runner = ToolCallRunner(registry, allow, self._context)
        signals = BatchSignals.under(SignalSource())
        async with DefaultParallelToolDispatcher(ToolConcurrencyConfig.on(cap)) as dispatcher:
            began = time.perf_counter()
            outcome = await dispatcher.dispatch(
                ToolBatch(uses, registry, CONTEXT), runner, lambda _: None, signals
            )
            wall_ms = (time.perf_counter() - began) * 1000
        failed = [result for result in outcome.results if result.outcome is not Outcome.SUCCEEDED]
        if failed:
            raise RuntimeError(f"{subject.tool.name} failed: {failed[0].content}")
        return Batch(wall_ms, outcome.report)

    def _context(self, call: BatchCall, run_blocking: BlockingRunner) -> ToolContext:
        return ToolContext(
            context_id=CONTEXT,
            workspace=self.workspace,
            read_files=self.reads,
            signal=call.signal,
            run_blocking=run_blocking,
            progress=call.progress,
            tool_use_id=call.tool_use.id,
        )


async def pause(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    """A call that needs nothing but time: whatever a batch of them takes besides is ours."""
    await asyncio.sleep(DELAY_MS / 1000)
    return ToolResult()


async def allow(_: PendingCall) -> ToolUseResult | None:
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true", help="n = 1..50 by max_concurrency 1..10")
    parser.add_argument("--model-ms", type=float, default=900.0, help="one round trip of the model")
    parser.add_argument("--runs", type=int, default=5, help="of what is judged by a bound")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return
    sizes, caps = (ALL_SIZES, ALL_CAPS) if arguments.every else (SOME_SIZES, SOME_CAPS)
    with tempfile.TemporaryDirectory() as folder, site() as port:
        bench = Bench(Path(folder).resolve(), arguments.model_ms)
        subjects = make_subjects(bench.workspace, port)
        asyncio.run(compare(bench, subjects, sizes, caps))
        print(f"\nbounds, for calls of {DELAY_MS:.0f} ms; the median of {arguments.runs}")
        pauses = Subject(safe("Pause", pause), [{"n": number} for number in range(MAX_CALLS)])
        for subject in (pauses, subjects[-1]):
            asyncio.run(judge(bench, subject, arguments.runs))
        asyncio.run(judge_early_start(arguments.runs))


def make_subjects(workspace: Path, port: int) -> list[Subject]:
    for number in range(MAX_CALLS):
        (workspace / f"{number}.txt").write_text(f"line of file {number}\n" * 2_000)
    hosts = tuple(f"{host}:{port}" for host in HOSTS)
    web = WebFetchTool(WebConfig(allow_hosts=hosts))
    pages = [f"http://{hosts[number % len(hosts)]}/{number}/" for number in range(MAX_CALLS)]
    return [
        Subject(ReadTool(), [{"file_path": f"{number}.txt"} for number in range(MAX_CALLS)]),
        Subject(GrepTool(), [{"pattern": f"file {number}$"} for number in range(MAX_CALLS)]),
        Subject(web, [{"url": page} for page in pages]),
    ]


async def compare(
    bench: Bench, subjects: Sequence[Subject], sizes: Sequence[int], caps: Sequence[int]
) -> None:
    for subject in subjects:
        alone = await one_call(bench, subject)
        print(f"\n{subject.tool.name}: one call alone {alone:.0f} ms")
        columns = "".join(f"{cap:>7}" for cap in caps)
        print("              assumed turn    batch / slowest call, by max_concurrency")
        print(f"  n    T_seq ms    T_par ms {columns}   best turn / T_par  T_seq / best turn")
        for count in sizes:
            batches = [await bench.run(fresh(subject), count, cap) for cap in caps]
            print(row(bench, count, alone, batches))


def row(bench: Bench, count: int, alone: float, batches: Sequence[Batch]) -> str:
    one_by_one = time_one_by_one(bench.model_ms, [alone] * count)
    together = time_together(bench.model_ms, [alone] * count)
    best = 2 * bench.model_ms + min(batch.wall_ms for batch in batches)
    ratios = "".join(f"{batch.wall_ms / batch.slowest_ms:7.2f}" for batch in batches)
    return (
        f"{count:3} {one_by_one:11,.0f} {together:11,.0f} {ratios}"
        f"{best / together:20.2f}{one_by_one / best:19.2f}"
    )


async def one_call(bench: Bench, subject: Subject) -> float:
    await bench.run(fresh(subject), 1, 1)
    return statistics.median([(await bench.run(fresh(subject), 1, 1)).wall_ms for _ in range(5)])


async def judge(bench: Bench, subject: Subject, runs: int) -> None:
    """The bounds, on calls of equal length."""
    name = subject.tool.name
    alone = await one_call(bench, subject)
    ratios = {count: await ratio_to_one(bench, subject, count, runs) for count in range(2, 9)}
    worst = max(ratios, key=lambda count: ratios[count])
    shown = f"{ratios[worst]:.3f} x one call at n = {worst}"
    print_bound(f"{name}, n = 2..8 with enough slots", shown, "<= 1.10")
    for cap in (10, 4):
        batches = [await bench.run(fresh(subject), MAX_CALLS, cap) for _ in range(runs)]
        share = 100 * statistics.median(overhead_ms(batch, cap) for batch in batches) / alone
        what = f"{name}, overhead per call, {MAX_CALLS} calls, {cap} at once"
        print_bound(what, f"{share:.2f} % of one call", "<= 1 %")


def overhead_ms(batch: Batch, cap: int) -> float:
    """Per call: what the batch took beyond a schedule of its tools' own times without any gap."""
    ideal = replay(batch.durations, ToolConcurrencyConfig.on(cap))
    return (batch.wall_ms - ideal) / len(batch.durations)


async def ratio_to_one(bench: Bench, subject: Subject, count: int, runs: int) -> float:
    """The median over pairs of a call alone and a batch right after it, with enough slots."""
    pairs = [
        (await bench.run(fresh(subject), 1, 1), await bench.run(fresh(subject), count, count))
        for _ in range(runs)
    ]
    return statistics.median(batch.wall_ms / one.wall_ms for one, batch in pairs)


async def judge_early_start(runs: int) -> None:
    """How much of the tools' time that fits under the rest of the stream an early start hides."""
    turns = [(await turn("complete"), await turn("streaming")) for _ in range(runs)]
    fitting_ms = (EARLY_CALLS - 1) * WRITING_MS
    hidden = statistics.median(early.overlap_ms / fitting_ms for _, early in turns)
    print_bound("early start, hidden of what fits", f"{100 * hidden:.0f} %", ">= 80 %")
    ratio = statistics.median(early.wall_ms / late.wall_ms for late, early in turns)
    print_bound("early start, turn / the same with a late one", f"{ratio:.2f}", "< 1")


@dataclass(frozen=True, slots=True)
class Turn:
    wall_ms: float
    overlap_ms: float


async def turn(start: CallStart) -> Turn:
    """One turn of ``EARLY_CALLS`` calls, each of which takes the model ``WRITING_MS`` to write.

    Each runs as long as the model writes those after it.
    """
    config = replace(ToolConcurrencyConfig.on(EARLY_CALLS), mixed="segments", start=start)
    tools = ToolBench(safe("Pause", pause_as_told), config=config)
    kit = agent_over(tools, WritingModel(*written(), text("done")))
    began = time.perf_counter()
    await kit.agent.run_turn([kit.item("go")], kit.interrupt)
    wall_ms = (time.perf_counter() - began) * 1000
    await tools.dispatcher.close()
    [finished] = kit.of(BatchFinished)
    return Turn(wall_ms, finished.report.overlap_ms)


def written() -> list[Sequence[Step]]:
    after = [EARLY_CALLS - number for number in range(1, EARLY_CALLS + 1)]
    return [calls(*(use(f"call-{n}", "Pause", {"ms": n * WRITING_MS}) for n in after))]


async def pause_as_told(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(float(str(tool_input["ms"])) / 1000)
    return ToolResult()


class WritingModel(ScriptedModel):
    """Takes its time to write each call."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with contextlib.aclosing(super().stream(request)) as events:
            async for event in events:
                if isinstance(event, BlockFinished) and isinstance(event.block, ToolUse):
                    await asyncio.sleep(WRITING_MS / 1000)
                yield event


def print_bound(name: str, value: str, target: str) -> None:
    print(f"{name:52} {value:28} (target: {target})")


def fresh(subject: Subject) -> Subject:
    """The same calls, with addresses that are in no cache yet."""
    mark = new_id("page")
    inputs = [
        {**tool_input, "url": f"{tool_input['url']}{mark}"} if "url" in tool_input else tool_input
        for tool_input in subject.inputs
    ]
    return Subject(subject.tool, inputs)


@contextlib.contextmanager
def site() -> Generator[int]:
    """The port of a site, in a process of its own, whose pages take ``DELAY_MS``."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


async def serve() -> None:
    """Be the site until standard input ends."""
    first = await asyncio.start_server(answer, HOSTS[0], 0)
    port = first.sockets[0].getsockname()[1]
    await asyncio.start_server(answer, HOSTS[1:], port)
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(DELAY_MS / 1000)
    page = b"<html><body><p>A page.</p></body></html>"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + page)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


if __name__ == "__main__":
    main()
