"""Interceptors: what they decide, in which order, and what a broken or slow one costs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.runner import ToolBatch
from midturn_core.events import ToolPhaseChanged, ToolResultReady
from midturn_core.interceptors.interceptor import (
    AfterAnswer,
    Amend,
    Before,
    BeforeAnswer,
    Deny,
    InterceptedCall,
    Proceed,
    ToolInterceptor,
    ToolInterceptors,
)
from midturn_core.interceptors.threads import InterceptorThreads
from midturn_core.interrupt import CancelReason
from midturn_core.model.messages import JsonObject, Outcome, ToolUse, ToolUseResult
from midturn_core.tool import ToolContext, ToolResult
from tests.core.dispatch.kit import (
    CONTEXT,
    DEADLINE,
    Bench,
    Latch,
    contents,
    outcomes,
    safe,
    writer,
)

Answer = Callable[[InterceptedCall], BeforeAnswer]


def before(answer: Before, name: str = "check", time_limit: float = DEADLINE) -> ToolInterceptor:
    return ToolInterceptor(name, before=answer, time_limit=time_limit)


def bench_of(*interceptors: ToolInterceptor, parallel: int = 8) -> Bench:
    return Bench(
        safe("Read", echo),
        writer("Edit", echo),
        config=ToolConcurrencyConfig.on(parallel),
        interceptors=ToolInterceptors(*interceptors),
    )


async def echo(tool_input: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult(f"{context.tool_use_id} got {tool_input}")


async def test_the_stages_of_a_call_come_in_their_order() -> None:
    order: list[str] = []

    def tell(word: str) -> Callable[..., None]:
        return lambda *_: order.append(word)

    async def permit(pending: PendingCall) -> ToolUseResult | None:
        order.append("permission")
        return None

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        order.append("tool")
        return ToolResult("done")

    bench = Bench(
        safe("Read", body),
        authorize=permit,
        interceptors=ToolInterceptors(
            ToolInterceptor("one", tell("before one"), tell("after one")),
            ToolInterceptor("two", tell("before two"), tell("after two")),
        ),
    )
    await bench.run("Read")
    assert order == ["before one", "before two", "permission", "tool", "after two", "after one"]


async def test_a_denied_call_never_reaches_permission_or_tool() -> None:
    asked: list[str] = []

    async def permit(pending: PendingCall) -> ToolUseResult | None:
        asked.append(pending.call.tool_use.id)
        return None

    interceptors = ToolInterceptors(before(lambda call: Deny("not on a Friday"), "calendar"))
    bench = Bench(safe("Read"), authorize=permit, interceptors=interceptors)
    outcome = await bench.run("Read")
    assert outcomes(outcome) == ["denied"]
    assert contents(outcome) == ["Error: calendar denied this call: not on a Friday"]
    assert asked == []
    assert "running" not in bench.phases("call-0")


async def test_permission_and_tool_get_the_input_that_was_put_in_place() -> None:
    seen: list[JsonObject] = []

    async def permit(pending: PendingCall) -> ToolUseResult | None:
        seen.append(pending.call.tool_use.input)
        return None

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        seen.append(tool_input)
        return ToolResult("")

    def add(key: str) -> Answer:
        return lambda call: Proceed({**call.tool_use.input, key: 1})

    bench = Bench(
        safe("Read", body),
        authorize=permit,
        interceptors=ToolInterceptors(before(add("a")), before(add("b"))),
    )
    await bench.run("Read")
    assert seen == [{"n": 0, "a": 1, "b": 1}] * 2


async def test_a_changed_input_is_validated_again() -> None:
    outcome = await bench_of(before(lambda call: Proceed({"bad": 1}))).run("Read")
    assert contents(outcome) == [
        "Error: an interceptor changed the input, which is now invalid input for Read: "
        "'bad' is not allowed; allowed: nothing"
    ]


async def test_nobody_changes_an_input_after_it_was_judged() -> None:
    kept: list[dict[str, object]] = []

    def rewrite(call: InterceptedCall) -> BeforeAnswer:
        cast("dict[str, object]", call.tool_use.input)["n"] = "changed in place"
        mine: dict[str, object] = {"path": ["a"]}
        kept.append(mine)
        return Proceed(cast("JsonObject", mine))

    async def permit(pending: PendingCall) -> ToolUseResult | None:
        cast("list[str]", kept[0]["path"]).append("b")
        return None

    use = ToolUse("call-0", "Read", {"n": 0})
    bench = Bench(
        safe("Read", echo), authorize=permit, interceptors=ToolInterceptors(before(rewrite))
    )
    outcome = await bench.run_batch(ToolBatch((use,), bench.registry, CONTEXT))
    assert contents(outcome) == ["call-0 got {'path': ['a']}"]
    assert use.input == {"n": 0}


async def test_what_an_interceptor_wants_asked_reaches_the_permission_stage() -> None:
    reasons: list[str] = []

    async def permit(pending: PendingCall) -> ToolUseResult | None:
        reasons.append(pending.must_ask)
        return denied(pending.call.tool_use, "no")

    interceptors = ToolInterceptors(
        before(lambda call: Proceed(ask="it is late"), "clock"),
        before(lambda call: None),
        before(lambda call: Proceed(ask="it is Friday"), "calendar"),
    )
    bench = Bench(safe("Read"), authorize=permit, interceptors=interceptors)
    assert outcomes(await bench.run("Read")) == ["denied"]
    assert reasons == ["clock: it is late; calendar: it is Friday"]


async def test_an_interceptor_knows_the_place_of_its_call() -> None:
    seen: list[InterceptedCall] = []

    async def look(call: InterceptedCall) -> None:
        seen.append(call)

    bench = bench_of(before(look))
    batch = ToolBatch(bench.batch("Read", "Read").uses, bench.registry, CONTEXT, step=3)
    await bench.run_batch(batch)
    assert sorted(call.sort_key for call in seen) == [(3, 0), (3, 1)]
    first = min(seen, key=lambda call: call.sort_key)
    assert (first.context_id, first.batch_id, first.count) == (CONTEXT, batch.batch_id, 2)
    assert first.tool_use == batch.uses[0]
    assert first.attributes == {"of": "the bench"}
    with pytest.raises(TypeError):
        first.attributes["more"] = 1  # type: ignore[index]  # this is what must not be possible


async def test_the_last_registered_sees_the_result_first_and_the_model_gets_what_is_left() -> None:
    def note(text: str) -> Callable[[InterceptedCall, ToolUseResult], AfterAnswer]:
        return lambda call, result: Amend(note=f"{text} saw {result.content!r}")

    bench = bench_of(
        ToolInterceptor("first", after=note("first")),
        ToolInterceptor("second", after=lambda call, result: Amend("cut", "by second")),
    )
    outcome = await bench.run("Read")
    assert contents(outcome) == ["cut\n\nby second\n\nfirst saw 'cut\\n\\nby second'"]
    assert bench.of(ToolResultReady)[0].result == outcome.results[0]


async def test_what_follows_the_tool_holds_no_slot_and_takes_none_of_its_time() -> None:
    latch = Latch()
    inside: list[str] = []
    all_inside = asyncio.Event()

    async def wait(call: InterceptedCall, result: ToolUseResult) -> None:
        inside.append(call.tool_use.id)
        if len(inside) == 3:
            all_inside.set()
        await all_inside.wait()

    bench = Bench(
        safe("Read", latch),
        config=ToolConcurrencyConfig.on(1),
        interceptors=ToolInterceptors(ToolInterceptor("wait", after=wait)),
    )
    latch.open()
    outcome = await bench.run("Read", "Read", "Read")
    assert outcomes(outcome) == ["succeeded"] * 3
    assert latch.peak == 1
    spans = sorted((call.started or 0, call.ended or 0) for call in outcome.report.calls)
    assert all(ended <= started for (_, ended), (started, _) in zip(spans, spans[1:], strict=False))


async def test_what_precedes_the_tool_holds_no_slot() -> None:
    barrier = asyncio.Barrier(3)

    async def meet(call: InterceptedCall) -> None:
        await barrier.wait()

    outcome = await bench_of(before(meet), parallel=1).run("Read", "Read", "Read")
    assert outcomes(outcome) == ["succeeded"] * 3


def raising(call: InterceptedCall) -> BeforeAnswer:
    raise LookupError("no such list")


async def raising_later(call: InterceptedCall) -> BeforeAnswer:
    raise LookupError("no such list")


async def cancelling_itself(call: InterceptedCall) -> BeforeAnswer:
    raise asyncio.CancelledError


async def hanging(call: InterceptedCall) -> BeforeAnswer:
    await asyncio.Event().wait()
    return None


def leaving(call: InterceptedCall) -> BeforeAnswer:
    raise SystemExit(3)


async def leaving_later(call: InterceptedCall) -> BeforeAnswer:
    raise SystemExit(3)


def nonsense(call: InterceptedCall) -> BeforeAnswer:
    return cast("BeforeAnswer", True)


def no_json(call: InterceptedCall) -> BeforeAnswer:
    return Proceed(cast("JsonObject", {"path": object()}))


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (raising, "LookupError: no such list"),
        (raising_later, "LookupError: no such list"),
        (cancelling_itself, "it was cancelled"),
        (hanging, "no answer after 0.01 s"),
        (leaving, "SystemExit: 3"),
        (leaving_later, "it tried to leave with 3"),
        (nonsense, "its answer is a bool"),
        (no_json, "its input is no JSON"),
    ],
)
async def test_a_broken_check_denies_its_call_and_no_other(broken: Before, why: str) -> None:
    def first_only(call: InterceptedCall) -> BeforeAnswer | Awaitable[BeforeAnswer]:
        return broken(call) if call.tool_index == 0 else None

    limit = 0.01 if broken is hanging else DEADLINE
    bench = bench_of(before(first_only, "guard", limit))
    outcome = await bench.run("Read", "Read")
    assert outcomes(outcome) == ["denied", "succeeded"]
    assert contents(outcome)[0].startswith("Error: guard could not check this call (")
    assert why in contents(outcome)[0]
    assert "running" not in bench.phases("call-0")


@pytest.mark.parametrize(
    "broken", [raising, raising_later, cancelling_itself, hanging, leaving, leaving_later, nonsense]
)
async def test_a_result_outlives_whatever_breaks_after_it(broken: Before) -> None:
    after = ToolInterceptor("audit", after=lambda call, result: broken(call), time_limit=0.05)  # type: ignore[arg-type, return-value]  # nonsense on purpose
    outcome = await bench_of(after).run("Read")
    assert contents(outcome) == ["call-0 got {'n': 0}"]


async def test_an_interrupt_while_an_interceptor_thinks_means_no() -> None:
    bench = bench_of(before(hanging))
    batch = bench.start("Read", "Read")
    await bench.until(lambda: bool(bench.of(ToolPhaseChanged)))
    bench.turn.trip(CancelReason.INTERRUPT)
    assert contents(await batch) == ["skipped: the user interrupted the turn"] * 2


@pytest.mark.parametrize("reason", [CancelReason.INTERRUPT, CancelReason.SHUTDOWN])
async def test_an_interrupt_after_the_tool_leaves_its_result(reason: CancelReason) -> None:
    reached = asyncio.Event()

    async def hang(call: InterceptedCall, result: ToolUseResult) -> None:
        reached.set()
        await asyncio.Event().wait()

    bench = bench_of(ToolInterceptor("slow", after=hang))
    batch = bench.start("Read")
    await asyncio.wait_for(reached.wait(), DEADLINE)
    bench.signals.batch.trip(reason)
    assert contents(await batch) == ["call-0 got {'n': 0}"]


async def test_a_message_of_the_user_does_not_keep_a_result_from_being_completed() -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def wait(call: InterceptedCall, result: ToolUseResult) -> AfterAnswer:
        reached.set()
        await go_on.wait()
        return Amend("without secrets")

    bench = bench_of(ToolInterceptor("redact", after=wait))
    batch = bench.start("Read")
    await asyncio.wait_for(reached.wait(), DEADLINE)
    bench.signals.batch.trip(CancelReason.USER_MESSAGE)
    for _ in range(20):
        await asyncio.sleep(0)
    go_on.set()
    assert contents(await batch) == ["without secrets"]


async def test_cancelling_the_batch_after_the_tool_tells_the_truth_about_it() -> None:
    reached = asyncio.Event()

    async def hang(call: InterceptedCall, result: ToolUseResult) -> None:
        reached.set()
        await asyncio.Event().wait()

    bench = bench_of(ToolInterceptor("slow", after=hang))
    batch = bench.start("Read")
    await asyncio.wait_for(reached.wait(), DEADLINE)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert [event.result.outcome for event in bench.of(ToolResultReady)] == [Outcome.SUCCEEDED]


async def test_a_call_keeps_the_interceptors_that_it_began_with() -> None:
    calls: list[str] = []
    removers: list[Callable[[], None]] = []

    async def newcomer(call: InterceptedCall) -> None:
        calls.append("newcomer before")

    def first(call: InterceptedCall) -> None:
        calls.append("first before")
        interceptors.add(before(newcomer))
        removers[0]()

    def first_after(call: InterceptedCall, result: ToolUseResult) -> None:
        calls.append("first after")

    interceptors = ToolInterceptors()
    removers.append(interceptors.add(ToolInterceptor("first", first, first_after)))
    bench = Bench(safe("Read", echo), interceptors=interceptors)
    await bench.run("Read")
    assert calls == ["first before", "first after"]
    await bench.run("Read")
    assert calls == ["first before", "first after", "newcomer before"]
    interceptors.close()


async def test_blocking_interceptors_run_on_threads_of_their_own() -> None:
    names: set[str] = set()

    def look(call: InterceptedCall) -> None:
        names.add(threading.current_thread().name)

    async def body(tool_input: JsonObject, context: ToolContext) -> ToolResult:
        await context.run_blocking(lambda: names.add(threading.current_thread().name))
        return ToolResult("")

    interceptors = ToolInterceptors(before(look))
    bench = Bench(safe("Read", body), interceptors=interceptors)
    await bench.run("Read")
    assert {name.rpartition("-")[0] for name in names if name[-1].isdecimal()} == {
        "tool-interceptor"
    }
    assert "tool-io-worker" in names
    interceptors.close()
    assert interceptors.threads.size == 0


async def test_more_blocking_interceptors_than_workers_do_not_wait_for_each_other() -> None:
    """Each waits for all the others; fewer threads than calls would wait for ever (S1.41)."""
    barrier = threading.Barrier(20)

    def meet(call: InterceptedCall) -> None:
        barrier.wait(DEADLINE)

    bench = bench_of(before(meet), parallel=2)
    outcome = await bench.run(*["Read"] * 20)
    assert outcomes(outcome) == ["succeeded"] * 20


async def test_an_interceptor_may_wait_for_calls_that_have_interceptors() -> None:
    """Nested submits: every level waits on its thread for the next one (S1.41)."""
    loop = asyncio.get_running_loop()
    depth = 0

    def nest(call: InterceptedCall) -> BeforeAnswer:
        nonlocal depth
        depth += 1
        if depth == 12:
            return None
        inner = asyncio.run_coroutine_threadsafe(bench.run("Read"), loop).result(DEADLINE)
        return None if outcomes(inner) == ["succeeded"] else Deny("the inner call failed")

    bench = bench_of(before(nest), parallel=1)
    assert outcomes(await bench.run("Read")) == ["succeeded"]
    assert depth == 12


async def test_an_interceptor_is_told_when_nobody_waits_for_it_any_more() -> None:
    told: list[CancelReason] = []

    async def hang(call: InterceptedCall) -> None:
        call.signal.on_trip(told.append)
        await asyncio.Event().wait()

    assert "no answer" in contents(await bench_of(before(hang, time_limit=0.01)).run("Read"))[0]
    assert told == [CancelReason.TIMEOUT]


async def test_threads_that_hang_are_refused_in_the_end_not_waited_for() -> None:
    threads, released = InterceptorThreads(limit=2), threading.Event()
    loop, begun = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def hang() -> None:
        loop.call_soon_threadsafe(begun.release)
        released.wait(DEADLINE)

    hanging = [asyncio.create_task(threads.run(hang)) for _ in range(2)]
    for _ in hanging:
        await asyncio.wait_for(begun.acquire(), DEADLINE)
    for task in hanging:
        task.cancel()
    await asyncio.wait(hanging)
    with pytest.raises(RuntimeError, match="2 blocking interceptors are busy already"):
        await threads.run(lambda: None)
    released.set()
    threads.close()
