"""``InterceptorStage``: the interceptors of one call, before its tool and after it (D30)."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from midturn_core.dispatch.runner import BatchCall
from midturn_core.interceptors.interceptor import (
    Amend,
    Deny,
    InterceptedCall,
    Proceed,
    ToolInterceptor,
    ToolInterceptors,
)
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonObject, ToolUse, ToolUseResult
from midturn_core.tool import ToolContext

log = logging.getLogger(__name__)

_unwatched: set[asyncio.Task[object]] = set()
"""Interceptors that nobody waits for any more, until they end by themselves."""


class InterceptorFailure(Exception):
    """An interceptor gave no answer that can be used; the text says why."""


class InterceptorStage:
    """Runs the interceptors that were registered when the call began, one after another."""

    def __init__(
        self, interceptors: ToolInterceptors, call: BatchCall, context: ToolContext
    ) -> None:
        self._chain = interceptors.current
        self._threads = interceptors.threads
        self._rewake = interceptors.rewake
        self._call = call
        self._context_id = context.context_id
        self._attributes = MappingProxyType(dict(context.attributes))
        self._use = call.tool_use

    async def before(self) -> Proceed | Deny:
        """What all of them say: the final input (None: it is unchanged), and why to ask."""
        reasons: list[str] = []
        changed = False
        for interceptor in self._chain:
            if interceptor.before is None:
                continue
            try:
                answer = await self._run(interceptor, interceptor.before)
                decision = _proceeding(answer)
            except InterceptorFailure as failure:
                log.warning("%s failed before %s: %s", interceptor.name, self._use.id, failure)
                return Deny(f"{interceptor.name} could not check this call ({failure})")
            if isinstance(decision, Deny):
                return Deny(f"{interceptor.name} denied this call: {decision.reason}")
            if decision.tool_input is not None:
                changed = True
                self._use = replace(self._use, input=decision.tool_input)
            if decision.ask:
                reasons.append(f"{interceptor.name}: {decision.ask}")
        return Proceed(self._use.input if changed else None, "; ".join(reasons))

    async def after(self, result: ToolUseResult) -> ToolUseResult:
        """The result with what they add; the last one registered sees it first."""
        for interceptor in reversed(self._chain):
            if interceptor.after is None:
                continue
            try:
                answer = await self._run(interceptor, interceptor.after, result)
                result = _amended(result, answer)
            except InterceptorFailure as failure:
                log.warning("%s failed after %s: %s", interceptor.name, self._use.id, failure)
        return result

    async def _run(
        self, interceptor: ToolInterceptor, function: Callable[..., object], *more: object
    ) -> object:
        """Its answer, awaited for its time limit at most."""
        patience = SignalSource()
        arguments = (self._intercepted(patience), *more)
        task = asyncio.create_task(self._invoke(function, *arguments))
        try:
            await asyncio.wait((task,), timeout=interceptor.time_limit)
        finally:
            overdue = not task.done()
            if overdue:
                patience.trip(self._call.signal.reason or CancelReason.TIMEOUT)
                _let_go(task)
        if overdue:
            raise InterceptorFailure(f"no answer after {interceptor.time_limit:g} s")
        if task.cancelled():
            raise InterceptorFailure("it was cancelled")
        if (error := task.exception()) is not None:
            raise InterceptorFailure(f"{type(error).__name__}: {error}") from error
        return task.result()

    async def _invoke(self, function: Callable[..., object], *arguments: object) -> object:
        try:
            if _is_coroutine_function(function):
                answer = function(*arguments)
            else:
                answer = await self._threads.run(lambda: function(*arguments))
            return (
                await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer
            )
        except SystemExit as leaving:
            # It would end the event loop, and the session with it.
            raise InterceptorFailure(f"it tried to leave with {leaving.code}") from leaving

    def _intercepted(self, patience: SignalSource) -> InterceptedCall:
        call = self._call
        return InterceptedCall(
            context_id=self._context_id,
            batch_id=call.batch_id,
            step=call.step,
            tool_index=call.index,
            count=call.count,
            tool_use=_own_copy(self._use),
            attributes=self._attributes,
            signal=patience,
            rewake=self._rewake,
        )


def _own_copy(use: ToolUse) -> ToolUse:
    """The input is a tree of lists and mappings, which the history and the tool hold too."""
    return replace(use, input=deepcopy(use.input))


def _proceeding(answer: object) -> Proceed | Deny:
    match answer:
        case None:
            return Proceed()
        case Deny():
            return answer
        case Proceed(tool_input=None):
            return answer
        case Proceed(tool_input=given):
            # A copy of what is judged, so that nobody changes it between permission and tool.
            return replace(answer, tool_input=_as_json(given))
        case _:
            raise InterceptorFailure(f"its answer is a {type(answer).__name__}")


def _as_json(value: JsonObject | None) -> JsonObject:
    try:
        copied: Any = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InterceptorFailure(f"its input is no JSON: {error}") from error
    if not isinstance(copied, dict):
        raise InterceptorFailure("its input is no JSON object")
    return cast("JsonObject", copied)


def _amended(result: ToolUseResult, answer: object) -> ToolUseResult:
    match answer:
        case None:
            return result
        case Amend(content=str() | None as content, note=str(note)):
            kept = result.content if content is None else content
            return replace(result, content="\n\n".join(filter(None, [kept, note])))
        case _:
            raise InterceptorFailure(f"its answer is a {type(answer).__name__}")


def _is_coroutine_function(function: Callable[..., object]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # an object whose call is a coroutine
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _let_go(task: asyncio.Task[object]) -> None:
    _unwatched.add(task)
    task.add_done_callback(_forget)
    task.cancel()


def _forget(task: asyncio.Task[object]) -> None:
    _unwatched.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it as lost
