"""``PermissionStage``: what stands between a valid call and its slot (D30)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch import results
from midturn_core.events import CallPhase
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import JsonObject, ToolUseResult
from midturn_core.permission.access import Access, CommandAccess, HostAccess, PathAccess
from midturn_core.permission.ask import Ask
from midturn_core.permission.authorizer import (
    Allowed,
    Authorizer,
    Denied,
    PermissionRequest,
    Withdrawn,
)
from midturn_core.permission.decision import Verdict
from midturn_core.permission.gate import Pointless
from midturn_core.tool import ForeseeingTool, PreviewingTool, ToolContext


class PermissionStage:
    """The ``Authorize`` of a call runner: one per agent, over the authorizer of the session.

    ``speaker`` names the agent in its questions; empty for the main agent.
    """

    def __init__(
        self, authorizer: Authorizer, context_id: AgentRuntimeId, speaker: str = ""
    ) -> None:
        self._authorizer = authorizer
        self._context_id = context_id
        self._speaker = speaker

    async def __call__(self, pending: PendingCall) -> ToolUseResult | None:
        """None permits the call; a result answers it instead."""
        call, use = pending.call, pending.call.tool_use
        request = self._request(pending)
        outcome = await self._authorizer.authorize(
            request,
            call.signal,
            on_asking=lambda: call.announce(CallPhase.ASKING),
            look=partial(self._look, pending),
        )
        match outcome:
            case Allowed():
                call.announce(CallPhase.WAITING)
                return None
            case Denied(reason):
                return denied(use, reason)
            case Pointless(error):
                return results.failed(use, error)
            case Withdrawn(reason):
                return results.skipped(use, reason)

    async def _look(self, pending: PendingCall, ask: Ask) -> Ask | Pointless:
        looked_at = pending.context if self._may_be_told(pending) else None
        if not isinstance(pending.tool, ForeseeingTool | PreviewingTool):
            return ask
        return await asyncio.to_thread(_seen, pending, ask, looked_at)

    def _may_be_told(self, pending: PendingCall) -> bool:
        """Whether an error may say what is there: the model could read it, or has read it."""
        context = pending.context
        return context is not None and all(
            isinstance(access, PathAccess)
            and (
                context.read_files.get(access.resolved) is not None
                or self._authorizer.may_read(access)
            )
            for access in pending.accesses
        )

    def permits(self, pending: PendingCall) -> bool:
        """Whether the call would be permitted now, without a question."""
        return self._authorizer.decide(self._request(pending)).verdict is Verdict.ALLOW

    def _request(self, pending: PendingCall) -> PermissionRequest:
        call, use = pending.call, pending.call.tool_use
        described = pending.tool.describe(use.input)
        body = question_body(pending.accesses, use.input)
        # What the body begins with is not said in the title too.
        title = use.name if body.startswith(described) else f"{use.name}: {described}"
        return PermissionRequest(
            context_id=self._context_id,
            tool_use_id=use.id,
            tool=use.name,
            title=f"{self._speaker}: {title}" if self._speaker else title,
            body=body,
            accesses=pending.accesses,
            index=call.index,
            count=call.count,
            order=(call.step, call.index),
            must_ask=pending.must_ask,
        )


def _seen(pending: PendingCall, ask: Ask, looked_at: ToolContext | None) -> Ask | Pointless:
    """What the preview shows is not said a second time by the texts of the input."""
    tool, tool_input = pending.tool, pending.call.tool_use.input
    if looked_at is not None and isinstance(tool, ForeseeingTool):
        error = tool.foreseen_error(tool_input, looked_at)
        if error is not None:
            return Pointless(error)
    if not isinstance(tool, PreviewingTool):
        return ask
    detail = tool.preview(tool_input, pending.accesses)
    return replace(ask, detail=detail, body=question_body(pending.accesses, {}))


def question_body(accesses: Sequence[Access], tool_input: JsonObject) -> str:
    """All that a person must see to judge a call: what it touches, in full and resolved, and
    every text that it was given.
    """
    texts = (
        f"{name}:\n{value}"
        for name, value in tool_input.items()
        if isinstance(value, str)
        and value
        and not any(_is_shown_by(access, value) for access in accesses)
    )
    return "\n".join([*map(_described, accesses), *texts])


def _described(access: Access) -> str:
    match access:
        case CommandAccess(command):
            return command
        case HostAccess(url):
            return url
        case PathAccess(written, resolved) if written != resolved:
            return f"{resolved} (through {written})"
        case PathAccess(_, resolved):
            return str(resolved)


def _is_shown_by(access: Access, value: str) -> bool:
    match access:
        case CommandAccess(text) | HostAccess(text):
            return value == text
        case PathAccess(written):
            # The model may have written it relative or with a ~; its end is the same.
            return Path(value).parts[-1:] == written.parts[-1:] and "\n" not in value
