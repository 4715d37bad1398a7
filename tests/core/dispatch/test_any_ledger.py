"""Whatever happens to the batches of a run, its ledger verifies, and nothing is left of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from midturn_core.batches import ToolBatches
from midturn_core.call_runner import PendingCall, denied
from midturn_core.conversation import Conversation, ConversationChange
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.reaction import StopLimits
from midturn_core.dispatch.runner import BatchSignals
from midturn_core.dispatch.types import BatchOutcome
from midturn_core.ids import AgentRuntimeId
from midturn_core.interceptors.interceptor import (
    AfterAnswer,
    Amend,
    BeforeAnswer,
    Deny,
    InterceptedCall,
    Proceed,
    ToolInterceptor,
    ToolInterceptors,
)
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.ledger.check import verify
from midturn_core.ledger.entries import LedgerBatch
from midturn_core.model.messages import JsonObject, Outcome, TextBlock, ToolUse, ToolUseResult
from midturn_core.session.ledger_codec import batch_from_json, batch_to_json
from midturn_core.tool import ToolContext, ToolResult
from midturn_tools.bash import BashTool
from tests.core.dispatch.kit import Bench, reader, safe, shell, writer
from tests.support.processes import child_processes
from tests.support.virtual_time import VirtualTimeLoop

LIMITS = StopLimits(join=0.05, grace=0.01)
FATES = ("done", "done", "error", "raise", "flaky", "hang", "stubborn", "obedient", "cancelled")
BLOCKING = ("blocking", "stuck")
TOOLS = ("Read", "Grep", "Read", "Grep", "Edit", "Bash", "Reed")
BEFORE = ("rewrite", "spoil", "deny", "raise", "hang", "block")
AFTER = ("amend", "raise", "hang", "block")
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
REAL_DEADLINE = 30.0
"""Seconds in which threads and children must be gone."""


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Thousands of calls that fail on purpose are not worth a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass(frozen=True)
class Blow:
    """Something from outside, ``at`` seconds after a batch has begun."""

    at: float
    what: CancelReason | str
    """A reason that trips the batch's signal; ``turn``, ``call``, ``cancel`` or ``configure``."""


@dataclass(frozen=True)
class Plan:
    config: ToolConcurrencyConfig
    other_config: ToolConcurrencyConfig
    contexts: tuple[tuple[tuple[tuple[tuple[str, JsonObject], ...], tuple[Blow, ...]], ...], ...]
    """For each context its batches: the calls (tool and input), and the blows."""
    closes: bool
    """The dispatcher is closed under the last batches."""
    streams: bool = False
    """Calls are heard while their message streams; there are no interceptors then (D24)."""


@st.composite
def configs(draw: st.DrawFn) -> ToolConcurrencyConfig:
    cap = draw(st.integers(1, 5))
    share = st.none() | st.integers(1, cap)
    return ToolConcurrencyConfig(
        enabled=draw(st.sampled_from([True, True, False])),
        max_concurrency=cap,
        per_batch_max=draw(share),
        per_context_max=draw(share),
        max_calls=draw(st.sampled_from([50, 3])),
        mixed=draw(st.sampled_from(["sequential", "segments"])),
        fail_fast=draw(st.booleans()),
        retry_failed=draw(st.booleans()),
        timeout_per_call=0.05,
        timeout_per_batch=draw(st.sampled_from([0.03, 0.12, 10.0])),
    )


@st.composite
def calls(draw: st.DrawFn, fates: tuple[str, ...]) -> tuple[str, JsonObject]:
    milliseconds = draw(st.integers(0, 60))
    given: JsonObject = {
        "fate": draw(st.sampled_from(fates)),
        "seconds": milliseconds / 1000,
        "permit": draw(st.sampled_from(["yes"] * 6 + ["no", "slow"])),
        "before": draw(st.sampled_from(["pass"] * 12 + [*BEFORE])),
        "after": draw(st.sampled_from(["pass"] * 8 + [*AFTER])),
    }
    return draw(st.sampled_from(TOOLS)), given


@st.composite
def plans(draw: st.DrawFn, fates: tuple[str, ...] = FATES) -> Plan:
    whats = st.sampled_from([*CancelReason, "turn", "call", "cancel", "configure"])
    blow = st.builds(Blow, st.integers(0, 150).map(lambda ms: ms / 1000), whats)
    batch = st.tuples(
        st.lists(calls(fates), min_size=1, max_size=7).map(tuple),
        st.lists(blow, max_size=2).map(tuple),
    )
    contexts = st.lists(st.lists(batch, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2)
    closes = draw(st.sampled_from([False] * 5 + [True]))
    config, streams = draw(configs()), draw(st.booleans())
    if streams:
        config = replace(config, mixed="segments", start="streaming")
    return Plan(config, draw(configs()), tuple(draw(contexts)), closes, streams)


@dataclass
class World:
    """One run of a plan: the tools, the interceptor and the permission obey the calls' inputs."""

    released: threading.Event = field(default_factory=threading.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    tries: Counter[str] = field(default_factory=Counter[str])
    bash: BashTool = field(default_factory=BashTool)

    async def tool(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(float(str(tool_input["seconds"])))
        self.tries[context.tool_use_id] += 1
        match tool_input["fate"]:
            case "error":
                return ToolResult(error="failed")
            case "flaky" if self.tries[context.tool_use_id] == 1:
                return ToolResult(error="failed once")
            case "obedient":
                await context.signal.wait()
                return ToolResult("half", stopped=True)
            case fate:
                await self._meet(str(fate), context)
        return ToolResult(f"done by {context.tool_use_id}")

    async def _meet(self, fate: str, context: ToolContext) -> None:
        match fate:
            case "raise":
                raise LookupError("nothing here")
            case "cancelled":
                raise asyncio.CancelledError
            case "hang":
                await asyncio.Event().wait()
            case "stubborn":
                await self._refuse_to_stop()
            case "blocking":
                await context.run_blocking(lambda: "worked")
            case "stuck":
                await context.run_blocking(self.released.wait)
            case "child":
                await self.bash.run({"command": "sleep 60 & wait", "description": ""}, context)
            case _:
                pass

    async def permit(self, pending: PendingCall) -> ToolUseResult | None:
        match pending.call.tool_use.input["permit"]:
            case "no":
                return denied(pending.call.tool_use, "no")
            case "slow":
                await asyncio.sleep(0.04)
            case _:
                pass
        return None

    async def before(self, call: InterceptedCall) -> BeforeAnswer:
        match call.tool_use.input["before"]:
            case "rewrite":
                return Proceed({**call.tool_use.input, "rewritten": True})
            case "spoil":
                return Proceed({"bad": True})
            case "deny":
                return Deny("no")
            case _:
                await self._intercept(call.tool_use.input["before"])
        return None

    async def after(self, call: InterceptedCall, result: ToolUseResult) -> AfterAnswer:
        if call.tool_use.input["after"] == "amend":
            return Amend(f"amended {result.content}", "with a note")
        await self._intercept(call.tool_use.input["after"])
        return None

    async def _intercept(self, how: object) -> None:
        match how:
            case "raise":
                raise LookupError("no list")
            case "hang":
                await asyncio.Event().wait()
            case "block":
                await asyncio.sleep(0.01)
            case _:
                pass

    async def _refuse_to_stop(self) -> None:
        while not self.free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.free.wait()


def on_a_thread(call: InterceptedCall, result: ToolUseResult | None = None) -> None:
    """The blocking half of the interceptors."""


class Run:
    """A plan on its way: one dispatcher, one ledger, a history for each context."""

    def __init__(self, plan: Plan, world: World) -> None:
        self.plan = plan
        self.ledger: list[LedgerBatch] = []
        self.finished = 0
        self.interceptors = ToolInterceptors()
        if not plan.streams:
            lively = ToolInterceptor("lively", world.before, world.after, time_limit=0.03)
            self.interceptors.add(lively)
        if not plan.streams and any("block" in given.values() for _, given in self._calls()):
            blocking = ToolInterceptor("blocking", on_a_thread, on_a_thread, time_limit=0.03)
            self.interceptors.add(blocking)
        self.bench = Bench(
            safe("Grep", world.tool),
            reader("Read", world.tool),
            writer("Edit", world.tool),
            shell("Bash", world.tool, 0.07),
            config=plan.config,
            limits=LIMITS,
            authorize=world.permit,
            interceptors=self.interceptors,
        )

    async def to_its_end(self) -> list[tuple[str, list[ConversationChange]]]:
        numbers = range(len(self.plan.contexts))
        contexts = [asyncio.create_task(self.context(number)) for number in numbers]
        if self.plan.closes:
            await asyncio.sleep(0.05)
            await self.bench.dispatcher.close(0.02)
        histories = [await context for context in contexts]
        await self.bench.dispatcher.close(0.02)
        return histories

    async def context(self, number: int) -> tuple[str, list[ConversationChange]]:
        """All batches of a context; returns whose history it is, and the history."""
        context_id = AgentRuntimeId("any", f"agent-{number}")
        journal: list[ConversationChange] = []
        conversation = Conversation(journal.append)
        batches = ToolBatches(
            context_id,
            self.bench.registry,
            self.bench.dispatcher,
            self.bench.runner,
            self.bench.emit,
            self.ledger.append,
        )
        for step, (asked, blows) in enumerate(self.plan.contexts[number], start=1):
            uses = [
                ToolUse(f"{context_id.agent}-{step}-{n}", *call) for n, call in enumerate(asked)
            ]
            conversation.add_user_text("go on")
            async with batches.listening(step, lambda use_id, _: use_id) as listener:
                for use in uses if self.plan.streams else ():
                    listener.complete(use)
                    await asyncio.sleep(0.005)
                message = conversation.add_assistant([TextBlock("so"), *uses])
                assert message is not None
                turn = SignalSource()
                signals = BatchSignals.under(turn)
                batch = asyncio.create_task(batches.run(message.tool_uses, step, signals))
                self._strike(batch, blows, turn, signals, message.tool_uses)
                try:
                    conversation.add_results((await batch).results)
                    self.finished += 1
                except asyncio.CancelledError:
                    conversation.close_pending("stopped: the program is closing", Outcome.STOPPED)
                    break
        return context_id.agent, journal

    def _strike(
        self,
        batch: asyncio.Task[BatchOutcome],
        blows: tuple[Blow, ...],
        turn: SignalSource,
        signals: BatchSignals,
        uses: tuple[ToolUse, ...],
    ) -> None:
        dispatcher, loop = self.bench.dispatcher, asyncio.get_running_loop()
        acts: dict[CancelReason | str, Callable[[], object]] = {
            "turn": lambda: turn.trip(CancelReason.INTERRUPT),
            "call": lambda: dispatcher.cancel_call(uses[-1].id),
            "cancel": batch.cancel,
            "configure": lambda: dispatcher.configure(self.plan.other_config),
        }
        for blow in blows:
            if isinstance(blow.what, CancelReason):
                loop.call_later(blow.at, signals.batch.trip, blow.what)
            else:
                loop.call_later(blow.at, acts[blow.what])

    def _calls(self) -> list[tuple[str, JsonObject]]:
        return [call for batches in self.plan.contexts for asked, _ in batches for call in asked]


async def live(plan: Plan) -> int:
    """Run a plan and check everything; returns how many batches there were."""
    # Another test may have left a worker to a dispatcher that nobody closed.
    others = frozenset(tool_threads())
    world = World()
    run = Run(plan, world)
    try:
        async with asyncio.timeout(10_000):
            histories = await run.to_its_end()
    finally:
        world.free.set()
        world.released.set()
        run.interceptors.close()
    for agent, changes in histories:
        found = verify(changes, run.ledger, agent)
        assert [problem.text for problem in found.problems] == []
        assert (found.before_ledger, found.open) == (0, 0)
    assert len(run.ledger) == run.finished
    assert run.bench.dispatcher.slots_in_use == 0
    for entry in run.ledger:
        assert batch_from_json(json.loads(json.dumps(batch_to_json(entry)))) == entry
    await nothing_is_left(others)
    return sum(map(len, plan.contexts))


async def nothing_is_left(others: frozenset[threading.Thread]) -> None:
    end = time.monotonic() + REAL_DEADLINE
    while left := [
        *(asyncio.all_tasks() - {asyncio.current_task()}),
        *(frozenset(tool_threads()) - others),
    ]:
        assert time.monotonic() < end, left
        await asyncio.sleep(0.001)


def tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tool-")]


def run_on_virtual_time(plan: Plan) -> int:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(live(plan))


@given(plan=plans())
@settings(max_examples=100, suppress_health_check=SLOW_TO_DRAW)
def test_the_ledger_of_any_run_verifies(plan: Plan) -> None:
    run_on_virtual_time(plan)


@given(plan=plans((*FATES, *BLOCKING)))
@settings(max_examples=20, suppress_health_check=SLOW_TO_DRAW)
def test_the_ledger_of_any_run_with_threads_verifies(plan: Plan) -> None:
    run_on_virtual_time(plan)


@pytest.mark.slow
def test_nothing_is_left_after_a_thousand_batches() -> None:
    counts: list[int] = []
    others = frozenset(tool_threads())
    # The first child brings a guard with it, which stays.
    run_on_virtual_time(one_batch(("Bash", call_that("child"))))
    before = child_processes()

    @given(plan=plans((*FATES, *BLOCKING, "child")))
    @settings(
        max_examples=100, database=None, phases=[Phase.generate], suppress_health_check=SLOW_TO_DRAW
    )
    def any_run(plan: Plan) -> None:
        counts.append(run_on_virtual_time(plan))

    while sum(counts) < 1_000:
        any_run()
    assert child_processes() <= before
    assert frozenset(tool_threads()) <= others


def call_that(fate: str) -> JsonObject:
    return {"fate": fate, "seconds": 0.01, "permit": "yes", "before": "pass", "after": "pass"}


def one_batch(*asked: tuple[str, JsonObject]) -> Plan:
    config = ToolConcurrencyConfig(enabled=True, timeout_per_call=0.05)
    return Plan(config, config, (((asked, ()),),), closes=False)


def test_the_checker_sees_what_a_dispatcher_without_limits_does() -> None:
    """The same run, with a ledger that claims stricter limits than were kept: it must not pass."""

    async def run() -> list[str]:
        run = Run(one_batch(*[("Read", call_that("done"))] * 4), World())
        agent, changes = await run.context(0)
        (entry,) = run.ledger
        claimed = replace(entry, limits=replace(entry.limits, max_concurrency=3))
        await run.bench.dispatcher.close()
        return [problem.text for problem in verify(changes, [claimed], agent).problems]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        (problem,) = runner.run(run())
    assert "4 calls ran at once, where max_concurrency allows 3" in problem
